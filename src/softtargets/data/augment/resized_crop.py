"""Parts of pictures, of random size, proportions and place, resized to one size: what ImageNet is trained on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from torch import Tensor

from softtargets.data.augment.base import Augmentation, Drawn, Shape, by_hand
from softtargets.data.boxes import Tries
from softtargets.data.decoding import resized
from softtargets.randomness import below, uniforms

# Weights are counted in so many parts, as Pillow counts them: with shades of eight bits sums stay below 2**31.
_BITS = 22
_WHOLE = 1 << _BITS
_TRIES = 10


@dataclass(frozen=True)
class ResizedCrop(Augmentation):
    """``torchvision.transforms.RandomResizedCrop``: ten tries for a part that lies inside, and then the middle.

    Stored images may be pictures in the upper left corners of squares; their `sizes` (height, width) say how far they
    go. Without, the whole image is the picture.

    Resized by Pillow, bilinear with antialiasing, from the pixels of the part alone, across and then down: on a CPU by
    Pillow itself, on a GPU by the same whole numbers. So every device gives the same pixels.

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
        """A box in the picture: where it begins and how far it goes, in pixels."""
        height, width = _sides(shape, sizes, words[..., 0])
        tries = words.unflatten(-1, (_TRIES, 4))
        area = height * width
        share, ratio = self._drawn(tries)
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
        top, left, rows, columns = (each.gather(-1, first).squeeze(-1).int() for each in box)
        return {"top": top, "left": left, "rows": rows, "columns": columns}

    def tries(self, words: Tensor) -> list[Tries]:
        """The same for pictures whose sizes are not known yet, from words (n, 4 * blocks); `box` finds the boxes."""
        tries = words.unflatten(-1, (_TRIES, 4))
        share, ratio = (each.tolist() for each in self._drawn(tries))
        places = zip(tries[..., 2].tolist(), tries[..., 3].tolist(), strict=True)
        each = (
            list(zip(*drawn, *place, strict=True))
            for drawn, place in zip(zip(share, ratio, strict=True), places, strict=True)
        )
        return [Tries(one, self.ratio) for one in each]

    def _drawn(self, tries: Tensor) -> tuple[Tensor, Tensor]:
        """Of each try the share of the area, and the ratio of width to height."""
        share = self.scale[0] + uniforms(tries[..., 0]).double() * (self.scale[1] - self.scale[0])
        low, high = (math.log(end) for end in self.ratio)
        return share, (low + uniforms(tries[..., 1]).double() * (high - low)).exp()

    def _last_resort(self, height: Tensor, width: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The largest part about the centre with proportions that are allowed."""
        low, high = self.ratio
        rows = torch.minimum(height, (width.double() / low).round().long().clamp(min=1))
        columns = torch.minimum(width, (height.double() * high).round().long().clamp(min=1))
        return (height - rows) // 2, (width - columns) // 2, rows, columns

    def centred(self, images: Tensor, sizes: Tensor | None) -> Tensor:
        """What evaluation sees: the middle."""
        shape = (images.shape[1], images.shape[2], images.shape[3])
        height, width = _sides(
            shape, sizes, torch.zeros(len(images), dtype=torch.int64, device=images.device)
        )
        side = (torch.minimum(height, width).double() * self.middle).round().long().clamp(min=1)
        top, left = (height - side) // 2, (width - side) // 2
        return self.apply(images, {"top": top, "left": left, "rows": side, "columns": side})

    def apply(self, images: Tensor, drawn: Drawn) -> Tensor:
        """The parts, resized."""
        _, _, height, width = images.shape
        rows, columns = (self.size or length for length in (height, width))
        if by_hand(images) and images.dtype == torch.uint8:
            return _by_pillow(images, drawn, (columns, rows))
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


def _by_pillow(images: Tensor, drawn: Drawn, size: tuple[int, int]) -> Tensor:
    """The parts, cut and resized one by one; colours together where they lie together in memory."""
    from PIL import Image

    count, channels = images.shape[:2]
    together = channels == 3 and images.stride(1) == 1
    planes = images.numpy()
    pictures = planes.transpose(0, 2, 3, 1)[:, None] if together else planes
    boxes = [drawn[name].tolist() for name in ("top", "left", "rows", "columns")]
    columns, rows = size
    found = np.empty((count, rows, columns, 3) if together else (count, channels, rows, columns), np.uint8)
    for place, (top, left, high, wide) in enumerate(zip(*boxes, strict=True)):
        for picture, result in zip(
            pictures[place], found[place][None] if together else found[place], strict=True
        ):
            part = Image.fromarray(picture[top : top + high, left : left + wide])
            result[...] = resized(part, *size)
    made = torch.from_numpy(found)
    return made.permute(0, 3, 1, 2) if together else made


def _resized(images: Tensor, dim: int, begin: Tensor, extent: Tensor, count: int) -> Tensor:
    """Make `count` pixels along one dimension of what lies between begin and begin + extent there."""
    places, weights = _taps(begin, extent, count, images.shape[dim])
    shape, size = [len(images), 1, 1, 1], [*images.shape]
    shape[dim] = size[dim] = count
    sums = torch.zeros((), dtype=torch.int32, device=images.device)
    for place, weight in zip(places.unbind(-1), weights.unbind(-1), strict=True):
        sums = sums + _whole(images.gather(dim, place.view(shape).expand(size))) * weight.view(shape)
    return _shades(sums, images.dtype)


def _whole(shades: Tensor) -> Tensor:
    return (shades.round() if shades.is_floating_point() else shades).int()


def _shades(sums: Tensor, dtype: torch.dtype) -> Tensor:
    return (sums + _WHOLE // 2 >> _BITS).to(dtype)


def _taps(begin: Tensor, extent: Tensor, count: int, length: int) -> tuple[Tensor, Tensor]:
    """Which of `length` pixels each of `count` new ones is made of, and how much each counts: (M, count, taps).

    A triangle about the centre of the new pixel, as wide as one old or one new pixel on either side, whichever is
    wider, of which only what lies in the part counts. Pillow divides in double precision and rounds; no quotient of
    whole numbers this small lies close enough to a half for that to matter, so that whole numbers give the same.
    """
    begin, extent = (each.long()[:, None, None] for each in (begin, extent))
    # From the beginning of the part, in such units that everything is whole: 2 * count of them are an old pixel.
    centre = (2 * torch.arange(count, device=begin.device)[:, None] + 1) * extent
    reach = 2 * extent.clamp(min=count)
    # No part is larger than the image, so that no new pixel is made of more than this many.
    most = 2 * max(1, math.ceil(length / count)) + 1
    places = (centre - reach + count) // (2 * count) + torch.arange(most, device=begin.device)
    triangle = (reach - ((2 * places + 1) * count - centre).abs()).clamp(min=0)
    triangle = torch.where((places >= 0) & (places < extent), triangle, 0)
    whole = triangle.sum(-1, keepdim=True)
    weights = (2 * _WHOLE * triangle + whole) // (2 * whole)
    return (begin + places).clamp(0, length - 1), weights.int()
