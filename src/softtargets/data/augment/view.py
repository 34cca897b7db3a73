"""All steps of augmentation of a recipe, one after another."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softtargets.data.augment.base import Augmentation, Drawn, Shape
from softtargets.data.augment.resized_crop import ResizedCrop
from softtargets.data.boxes import Tries
from softtargets.randomness import words

# Places in the random numbers that each step of the list has for itself.
_BLOCKS_PER_KIND = 16


class View:
    """The augmentation of a recipe as a whole: a list of kinds, applied in order to images of one shape.

    What a sample is given depends on the key, its index in the training set, the epoch and the place of the kind in
    the list, and on nothing else: not on the batch, the order, or other runs.

    >>> from softtargets.data.augment import Crop, Flip
    >>> from softtargets.randomness import key_words
    >>> view = View([Crop(padding=0, size=24), Flip()], (3, 32, 32))
    >>> drawn = view.draw(key_words(0, "augmentation"), torch.tensor([5, 17]), epoch=3)
    >>> view.apply(torch.zeros(2, 3, 32, 32, dtype=torch.uint8), drawn).shape
    torch.Size([2, 3, 24, 24])
    """

    def __init__(self, kinds: Sequence[Augmentation], shape: Shape) -> None:
        self.kinds = tuple(kinds)
        # The shape each kind meets, and last the one the net sees.
        self.shapes = [shape]
        for kind in self.kinds:
            if kind.blocks > _BLOCKS_PER_KIND:
                raise ValueError(f"{kind} needs {kind.blocks} blocks, but there are only {_BLOCKS_PER_KIND}")
            self.shapes.append(kind.output_shape(self.shapes[-1]))

    @property
    def output_shape(self) -> Shape:
        """Channels, height and width of an augmented image."""
        return self.shapes[-1]

    def draw(
        self, key: Tensor, indices: Tensor, epoch: int | Tensor, sizes: Tensor | None = None
    ) -> list[Drawn]:
        """The numbers of each kind for each sample, tensors (..., n).

        key (..., 2) is that of each run, indices (..., n) are places in its training set, epoch is an int or (...).
        The words of a kind are those at (index, epoch, 16 * number of the kind + block). `sizes` (..., n, 2), height
        and width, are those of pictures that lie in the corners of squares; the first kind cuts them out.
        """
        if not self.kinds:
            return []
        device = key.device
        if not isinstance(epoch, Tensor):
            # Filled on the device: a copy from the host would wait for it.
            epoch = torch.full((), epoch, dtype=torch.int64, device=device)
        first = [_BLOCKS_PER_KIND * number for number in range(len(self.kinds))]
        blocks = [
            torch.arange(start, start + kind.blocks, device=device)
            for start, kind in zip(first, self.kinds, strict=True)
        ]
        # One call for all kinds: (..., n, blocks of all, 4).
        found = words(key[..., None, None, :], indices[..., None], epoch[..., None, None], torch.cat(blocks))
        parts = found.split([kind.blocks for kind in self.kinds], dim=-2)
        drawn: list[Drawn] = []
        for kind, part, shape in zip(self.kinds, parts, self.shapes[:-1], strict=True):
            if kind.by_size:
                drawn.append(kind.draw(part.flatten(-2), shape, sizes))  # type: ignore[call-arg]
                sizes = None
            else:
                drawn.append(kind.draw(part.flatten(-2), shape))
        return drawn

    def tries(self, key: Tensor, indices: Tensor, epoch: Tensor) -> list[Tries] | None:
        """What decoders need to cut parts out of pictures where that is the first kind, else None; one run or several.

        They are the parts that `draw` gives once the sizes of the pictures are known: an entry for each of the indices.
        """
        if not self.kinds or not isinstance(self.kinds[0], ResizedCrop):
            return None
        blocks = torch.arange(self.kinds[0].blocks)
        found = words(key[..., None, None, :], indices[..., None], epoch[..., None, None], blocks)
        return self.kinds[0].tries(found.flatten(-2).flatten(0, -2))

    def apply(self, images: Tensor, drawn: list[Drawn], first: int = 0) -> Tensor:
        """Images (M, C, H, W), changed by every kind in turn; the drawn tensors are flattened to (M,).

        Kinds before the `first` have been applied where images were decoded.
        However they lay in memory, they lie by channels then: layers add up in an order that goes by that.
        """
        for kind, numbers in [*zip(self.kinds, drawn, strict=True)][first:]:
            images = kind.apply(images, {name: values.reshape(-1) for name, values in numbers.items()})
        return images.contiguous()
