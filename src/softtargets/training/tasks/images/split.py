"""Labelled images on a device, and how they are standardised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from softtargets.data import Examples
from softtargets.data.augment import exact_mean


@dataclass(frozen=True)
class Split:
    """Examples on the device: images as stored (uint8), labels as trained or measured on, and labels as read.

    The two kinds of label differ where a recipe asks for synthetic noise. Human labels (CIFAR-N) are read.
    """

    images: Tensor
    labels: Tensor
    clean_labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)


def to_device(examples: Examples, which: slice, device: torch.device) -> Split:
    """Some of the examples as a split on a device."""
    labels = torch.from_numpy(examples.labels[which]).to(device)
    return Split(torch.from_numpy(examples.images[which]).to(device), labels, labels)


def standardiser(kind: str, training_images: Tensor) -> Callable[[Tensor], Tensor]:
    """How images as stored become what nets are shown; see `ImageDataset.standardise`."""
    if kind == "unit":
        return lambda images: images.float() / 255
    if kind == "image":
        return _per_image
    # Blocks keep the float64 copy small; exact sums make the result the same on every device.
    total = torch.zeros(training_images.shape[1], dtype=torch.float64)
    squares = torch.zeros_like(total)
    for block in training_images.split(4096):
        values = block.to(torch.int64)
        total += values.sum((0, 2, 3)).cpu()
        squares += values.square().sum((0, 2, 3)).cpu()
    count = training_images[:, 0].numel()
    mean = total / count
    deviation = (squares / count - mean.square()).clamp(min=1e-12).sqrt()
    shape = (1, -1, 1, 1)
    centre_, scale = (value.float().view(shape).to(training_images.device) for value in (mean, deviation))
    return lambda images: (images.float() - centre_) / scale


def _per_image(images: Tensor) -> Tensor:
    # TensorFlow's per_image_standardization, on values from 0 to 255: the deviation is at least
    # 1/sqrt(number of values), so that a flat image does not blow up.
    whole = (1, 2, 3)
    mean, square = exact_mean(images, whole), exact_mean(images.double().square(), whole)
    deviation = (square - mean.square()).clamp(min=1 / images[0].numel()).sqrt()
    return (images.float() - mean.float()) / deviation.float()
