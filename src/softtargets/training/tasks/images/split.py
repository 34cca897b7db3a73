"""Labelled images on a device or on their way to it, and how they are standardised."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from softtargets.data import Decoding, Examples, ImageIndex, Patient, remembered
from softtargets.data.augment import exact_mean
from softtargets.training.tasks.images.streaming import Pictures, Streamed

_AT_A_TIME = 1024  # images that are copied to a larger type


@dataclass(frozen=True)
class Split:
    """Examples: images as stored (uint8), labels as trained or measured on, and labels as read.

    The two kinds of label differ where a recipe asks for synthetic noise. Human labels (CIFAR-N) are read. Images are
    on the device or, where there are too many, streamed there from their files. `sizes` (examples, 2) are there for
    pictures on the device that lie in the corners of squares.
    """

    images: Tensor | Streamed
    labels: Tensor
    clean_labels: Tensor
    sizes: Tensor | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def at(self, places: Tensor) -> Pictures:
        """The images at some places; those in files are decoded now."""
        if isinstance(self.images, Streamed):
            return self.images.at(places.tolist())
        return Pictures(self.images[places], None if self.sizes is None else self.sizes[places])

    def parts(self, size: int) -> Iterator[Pictures]:
        """All images, so many at a time; each part is to be used before the next one is asked for."""
        if isinstance(self.images, Streamed):
            yield from self.images.split(size)
            return
        none = [None] * -(-len(self) // size)
        sizes = none if self.sizes is None else self.sizes.split(size)
        yield from map(Pictures, self.images.split(size), sizes)

    def first(self, count: int) -> Split:
        """The first so many, with labels as read."""
        labels = self.clean_labels[:count]
        if isinstance(self.images, Streamed):
            index = self.images.index.take(range(min(count, len(self))))
            return Split(replace(self.images, index=index), labels, labels)
        return Split(self.images[:count], labels, labels, None if self.sizes is None else self.sizes[:count])


def to_device(examples: Examples, which: slice, device: torch.device) -> Split:
    """Some of the examples as a split on a device."""
    labels = torch.from_numpy(examples.labels[which]).to(device)
    sizes = None if examples.sizes is None else torch.from_numpy(examples.sizes[which]).to(device)
    return Split(torch.from_numpy(examples.images[which]).to(device), labels, labels, sizes)


def streamed(index: ImageIndex, which: slice, how: Decoding, device: torch.device) -> Split:
    """Some of the files as a split that is never on the device as a whole."""
    part = index.take(range(*which.indices(len(index))))
    labels = torch.from_numpy(part.labels).to(device)
    return Split(Streamed(part, how, device), labels, labels)


def standardiser(kind: str, training: Split) -> Callable[[Tensor], Tensor]:
    """How images as stored become what nets are shown; see `ImageDataset.standardise`."""
    if kind == "unit":
        return lambda images: images.float() / 255
    if kind == "image":
        return _per_image
    # Exact sums make the result the same on every device.
    total, squares, count = _channel_sums(training)
    mean = total / count
    deviation = (squares / count - mean.square()).clamp(min=1e-12).sqrt()
    shape = (1, -1, 1, 1)
    centre_, scale = (value.float().view(shape).to(training.images.device) for value in (mean, deviation))
    return lambda images: images.to(torch.get_default_dtype(), copy=True).sub_(centre_).div_(scale)


def _channel_sums(training: Split) -> tuple[Tensor, Tensor, int]:
    """Of each channel the sum of its shades and of their squares, and how many there are.

    Of files these are remembered: decoding all of ImageNet takes minutes, and they would be needed at every start.
    """
    files = training.images
    total, squares, count = (
        remembered("shades", files.stamp(), lambda: _summed(training))
        if isinstance(files, Streamed)
        else _summed(training)
    )
    return torch.tensor(total, dtype=torch.float64), torch.tensor(squares, dtype=torch.float64), count


def _summed(training: Split) -> tuple[list[int], list[int], int]:
    total, squares = (torch.zeros(training.images.shape[1], dtype=torch.int64) for _ in range(2))
    count = 0
    listener = Patient()
    listener.start("means of the channels of the training images", len(training), 0)
    for block, sizes in training.parts(_AT_A_TIME):
        # A smaller type would overflow; sums of whole numbers are exact in any order.
        values = block.to(torch.int64)
        total += values.sum((0, 2, 3)).cpu()
        squares += values.square().sum((0, 2, 3)).cpu()
        # Around pictures that are smaller than their squares all is 0, and does not count.
        count += values[:, 0].numel() if sizes is None else int(sizes.long().prod(-1).sum())
        listener.advance(len(block))
    listener.finish()
    return total.tolist(), squares.tolist(), count


def _per_image(images: Tensor) -> Tensor:
    # TensorFlow's per_image_standardization, on values from 0 to 255: the deviation is at least
    # 1/sqrt(number of values), so that a flat image does not blow up.
    whole = (1, 2, 3)
    mean, square = exact_mean(images, whole), exact_mean(images.double().square(), whole)
    deviation = (square - mean.square()).clamp(min=1 / images[0].numel()).sqrt()
    return (images.float() - mean.float()) / deviation.float()
