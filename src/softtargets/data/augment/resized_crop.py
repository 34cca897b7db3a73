"""Parts of pictures, of random size, proportions and place, resized to one size: what ImageNet is trained on."""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from softtargets.data.augment.base import Augmentation, Drawn, Shape
from softtargets.randomness import below, uniforms

# Places in a stored image are counted in so many parts of a pixel.
_PARTS = 1 << 12
# Weights are whole numbers that add up to this. It, and each of them, has eleven significant bits or fewer, and a shade
# has eight: so products and sums are exact in float32 and in TF32, in whatever order they are added.
_WHOLE = 1 << 11
_TRIES = 10


@dataclass(frozen=True)
class ResizedCrop(Augmentation):
    """``torchvision.transforms.RandomResizedCrop``: ten tries for a part that lies inside, and then the middle.

    Stored images may be whole pictures squeezed into squares: with their `sizes` (height, width) boxes are drawn in the
    picture as it was, and then found in the square. Without, the square itself is the picture.

    Resized as Pillow does it, bilinear with antialiasing, from the pixels of the part alone, columns first, with shades
    rounded in between. All of it is whole numbers, so that every device gives the same pixels.

    >>> from softtargets.randomness import key_words, words
    >>> kind = ResizedCrop(size=4)
    >>> found = words(key_words(0, "example"), torch.arange(2)[:, None], 0, torch.arange(10))
    >>> drawn = kind.draw(found.flatten(-2), (3, 8, 8))
    >>> kind.apply(torch.zeros(2, 3, 8, 8, dtype=torch.uint8), drawn).shape
    torch.Size([2, 3, 4, 4])
    """

    blocks: ClassVar[int] = _TRIES
    by_size: ClassVar[bool] = True

    size: int | None = None
    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    middle: float = 0.875

    def draw(self, words: Tensor, shape: Shape, sizes: Tensor | None = None) -> Drawn:
        """A box in the stored image: where it begins and how far it goes, in parts of a pixel."""
        height, width = _sides(shape, sizes, words[..., 0])
        tries = words.unflatten(-1, (_TRIES, 4))
        area = height * width
        share = self.scale[0] + uniforms(tries[..., 0]).double() * (self.scale[1] - self.scale[0])
        low, high = (math.log(end) for end in self.ratio)
        ratio = (low + uniforms(tries[..., 1]).double() * (high - low)).exp()
        columns = (area[..., None] * share * ratio).sqrt().round().long()
        rows = (area[..., None] * share / ratio).sqrt().round().long()
        inside = (columns > 0) & (columns <= width[..., None]) & (rows > 0) & (rows <= height[..., None])
        top = below(tries[..., 2], (height[..., None] - rows).clamp(min=0) + 1)
        left = below(tries[..., 3], (width[..., None] - columns).clamp(min=0) + 1)
        # The first that lies inside; where there is none, the last resort, which comes after all of them.
        box = [
            torch.cat((found, resort[..., None]), -1)
            for found, resort in zip(
                (top, left, rows, columns), self._last_resort(height, width), strict=True
            )
        ]
        any_inside = torch.cat((inside, torch.ones_like(inside[..., :1])), -1)
        first = any_inside.int().argmax(-1, keepdim=True)
        return _stored(*(each.gather(-1, first).squeeze(-1) for each in box), height, width, shape)

    def _last_resort(self, height: Tensor, width: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The largest part about the centre with proportions that are allowed."""
        low, high = self.ratio
        rows = torch.minimum(height, (width / low).round().long())
        columns = torch.minimum(width, (height * high).round().long())
        return (height - rows) // 2, (width - columns) // 2, rows, columns

    def centred(self, images: Tensor, sizes: Tensor | None) -> Tensor:
        """What evaluation sees: the middle."""
        shape = (images.shape[1], images.shape[2], images.shape[3])
        height, width = _sides(
            shape, sizes, torch.zeros(len(images), dtype=torch.int64, device=images.device)
        )
        # In parts of a pixel of the picture, since the middle need not be whole pixels.
        side = (torch.minimum(height, width) * self.middle * _PARTS).round().long()
        top, left = (height * _PARTS - side) // 2, (width * _PARTS - side) // 2
        rows = {
            "top": top * shape[1] // height,
            "left": left * shape[2] // width,
            "rows": side * shape[1] // height,
            "columns": side * shape[2] // width,
        }
        return self.apply(images, rows)

    def apply(self, images: Tensor, drawn: Drawn) -> Tensor:
        """The parts, resized."""
        _, _, height, width = images.shape
        rows, columns = (self.size or length for length in (height, width))
        across = _weights(drawn["left"], drawn["columns"], columns, width)
        down = _weights(drawn["top"], drawn["rows"], rows, height)
        with _in_full(images.device.type):
            narrow = _rounded(torch.matmul(images.float(), across.mT[:, None]), images.dtype)
            return _rounded(torch.matmul(down[:, None], narrow.float()), images.dtype)

    def output_shape(self, shape: Shape) -> Shape:
        """Channels and the size of the result."""
        channels, height, width = shape
        return channels, self.size or height, self.size or width


def _sides(shape: Shape, sizes: Tensor | None, like: Tensor) -> tuple[Tensor, Tensor]:
    """Height and width of each picture."""
    if sizes is None:
        _, height, width = shape
        return torch.full_like(like, height), torch.full_like(like, width)
    return sizes[..., 0].long(), sizes[..., 1].long()


def _stored(
    top: Tensor, left: Tensor, rows: Tensor, columns: Tensor, height: Tensor, width: Tensor, shape: Shape
) -> Drawn:
    """From whole pixels of the picture to parts of a pixel of what is stored of it."""
    _, high, wide = shape
    return {
        "top": (top * high * _PARTS // height).int(),
        "left": (left * wide * _PARTS // width).int(),
        "rows": (rows * high * _PARTS // height).int(),
        "columns": (columns * wide * _PARTS // width).int(),
    }


def _weights(begin: Tensor, extent: Tensor, count: int, length: int) -> Tensor:
    """How much each of `length` pixels counts for each of `count` new ones: whole numbers (M, count, length).

    A triangle about the centre of the new pixel, as wide as one old or one new pixel on either side, whichever is
    wider, of which only what lies between begin and begin + extent counts.
    """
    begin, extent = (each.long()[:, None, None] for each in (begin, extent))
    new = torch.arange(count, device=begin.device)[:, None]
    old = torch.arange(length, device=begin.device) * _PARTS + _PARTS // 2
    centre = begin + (2 * new + 1) * extent // (2 * count)
    reach = (extent // count).clamp(min=_PARTS)
    triangle = (reach - (old - centre).abs()).clamp(min=0)
    inside = torch.where((old >= begin) & (old <= begin + extent), triangle, 0)
    # Of a part that is narrower than a pixel there may be no centre inside.
    kept = torch.where((inside.sum(-1, keepdim=True) > 0), inside, triangle)
    upto = kept.cumsum(-1)
    shares = (upto * (2 * _WHOLE) + upto[..., -1:]) // (
        2 * upto[..., -1:]
    )  # rounded, and the last one is the whole
    return shares.diff(dim=-1, prepend=torch.zeros_like(shares[..., :1])).float()


def _rounded(sums: Tensor, dtype: torch.dtype) -> Tensor:
    """Weighted sums as whole shades."""
    return (sums / _WHOLE + 0.5).floor().to(dtype)


def _in_full(device: str) -> AbstractContextManager[object]:
    """Also where a net around it computes in lower precision."""
    return torch.autocast(device, enabled=False) if device in ("cpu", "cuda") else nullcontext()
