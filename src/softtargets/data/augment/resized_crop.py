"""Parts of pictures, of random size, proportions and place, resized to one size: what ImageNet is trained on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from softtargets.data.augment.base import Augmentation, Drawn, Shape
from softtargets.randomness import below, uniforms

# Places in a stored image are counted in so many parts of a pixel.
_PARTS = 1 << 12
# Weights are whole numbers that add up to this: with shades of eight bits sums stay below 2**31.
_BITS = 22
_WHOLE = 1 << _BITS
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
        top, left, rows, columns = (each.gather(-1, first).squeeze(-1) for each in box)
        return _stored(top, left, rows, columns, height, width, shape)

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
        narrow = _resized(images, 3, drawn["left"], drawn["columns"], columns)
        return _resized(narrow, 2, drawn["top"], drawn["rows"], rows)

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


def _resized(images: Tensor, dim: int, begin: Tensor, extent: Tensor, count: int) -> Tensor:
    """Make `count` pixels along one dimension of what lies between begin and begin + extent there."""
    places, weights = _taps(begin, extent, count, images.shape[dim])
    by_rows = images.device.type == "cpu" and len(images)
    return (_row_by_row if by_rows else _gathered)(images, dim, places, weights)


def _gathered(images: Tensor, dim: int, places: Tensor, weights: Tensor) -> Tensor:
    """Sums over the pixels that each new one is made of."""
    count = places.shape[1]
    shape, size = [len(images), 1, 1, 1], [*images.shape]
    shape[dim] = size[dim] = count
    sums = torch.zeros((), dtype=torch.int32, device=images.device)
    for place, weight in zip(places.unbind(-1), weights.unbind(-1), strict=True):
        sums = sums + _whole(images.gather(dim, place.view(shape).expand(size))) * weight.view(shape)
    return _shades(sums, images.dtype)


def _row_by_row(images: Tensor, dim: int, places: Tensor, weights: Tensor) -> Tensor:
    """The same, image by image: a CPU copies whole rows much faster than it gathers pixels."""
    made = []
    for image, place, weight in zip(images, places, weights, strict=True):
        rows = image.transpose(1, 2).contiguous() if dim == 3 else image
        taps = zip(place.unbind(-1), weight.unbind(-1), strict=True)
        sums = torch.zeros((), dtype=torch.int32)
        for where, share in taps:
            sums = sums + _whole(rows.index_select(1, where)).mul_(share[:, None])
        found = _shades(sums, images.dtype)
        made.append(found.transpose(1, 2) if dim == 3 else found)
    return torch.stack(made)


def _whole(shades: Tensor) -> Tensor:
    return (shades.round() if shades.is_floating_point() else shades).int()


def _shades(sums: Tensor, dtype: torch.dtype) -> Tensor:
    return (sums + _WHOLE // 2 >> _BITS).to(dtype)


def _taps(begin: Tensor, extent: Tensor, count: int, length: int) -> tuple[Tensor, Tensor]:
    """Which of `length` pixels each of `count` new ones is made of, and how much each counts: (M, count, taps).

    A triangle about the centre of the new pixel, as wide as one old or one new pixel on either side, whichever is
    wider, of which only what lies between begin and begin + extent counts.
    """
    begin, extent = (each.long()[:, None, None] for each in (begin, extent))
    new = torch.arange(count, device=begin.device)[:, None]
    centre = begin + (2 * new + 1) * extent // (2 * count)
    reach = (extent // count).clamp(min=_PARTS)
    # No part is larger than the image, so that no new pixel is made of more than this many.
    most = 2 * max(1, math.ceil(length / count)) + 1
    first = (centre - reach + _PARTS // 2) // _PARTS
    places = first + torch.arange(most, device=begin.device)
    old = places * _PARTS + _PARTS // 2
    triangle = (reach - (old - centre).abs()).clamp(min=0)
    triangle = torch.where((places >= 0) & (places < length), triangle, 0)
    inside = torch.where((old >= begin) & (old <= begin + extent), triangle, 0)
    # Of a part that is narrower than a pixel there may be no centre inside.
    kept = torch.where(inside.sum(-1, keepdim=True) > 0, inside, triangle)
    upto = kept.cumsum(-1)
    shares = (upto * (2 * _WHOLE) + upto[..., -1:]) // (
        2 * upto[..., -1:]
    )  # rounded, and the last one is the whole
    weights = shares.diff(dim=-1, prepend=torch.zeros_like(shares[..., :1]))
    return places.clamp(0, length - 1), weights.int()
