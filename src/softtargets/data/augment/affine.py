"""Rotation, translation, scaling and shear about the centre of each image, as torchvision does them.

Pixels are taken from the nearest place in the original, and zeros fill the gap. A pixel of the result is looked up
where the inverse of the map puts its centre: with source = [a b c; d e f] and pixels being squares of side 1,

    column = floor(a (x + 1/2) + b (y + 1/2) + c),    row = floor(d (x + 1/2) + e (y + 1/2) + f).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from softtargets.data.augment.base import Augmentation, Drawn, Shape, between, symmetric, take

Matrix = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


@dataclass(frozen=True)
class Affine(Augmentation):
    """Moves, turns, scales and shears each image: ``torchvision.transforms.RandomAffine``.

    Rotates by U(-degrees, degrees) degrees, clockwise if positive, shears in x by U(-shear, shear) degrees, scales by
    a factor from U(low, high) with ``scale = (low, high)``, and moves by up to `translate` of width and height.

    Moves are rounded to whole pixels, as torchvision does; so with ``translate`` = 2/28 of 28 pixels moves by 2 are
    half as likely as moves by 1 or 0, unlike those of `Shift`.

    >>> drawn = {"angle": torch.tensor([90.0]), "shear": torch.zeros(1), "scale": torch.ones(1)}
    >>> drawn |= {"right": torch.zeros(1), "down": torch.zeros(1)}
    >>> Affine(degrees=90).apply(torch.tensor([[[[1, 2], [3, 4]]]]), drawn)
    tensor([[[[3, 1],
              [4, 2]]]])
    """

    blocks: ClassVar[int] = 2

    degrees: float = 0.0
    translate: float = 0.0
    scale: Sequence[float] | None = None
    shear: float = 0.0

    def draw(self, words: Tensor, shape: Shape) -> Drawn:
        """Angle and shear in degrees, scale, and whole pixels to the right and down."""
        _, height, width = shape
        low, high = self.scale or (1.0, 1.0)
        return {
            "angle": symmetric(words[..., 0], self.degrees),
            "right": symmetric(words[..., 1], self.translate * width).round().int(),
            "down": symmetric(words[..., 2], self.translate * height).round().int(),
            "scale": between(words[..., 3], low, high),
            "shear": symmetric(words[..., 4], self.shear),
        }

    def apply(self, images: Tensor, drawn: Drawn) -> Tensor:
        """The images, moved, turned, scaled and sheared."""
        if not self.degrees and not self.shear and not self.scale:
            # Whole pixels only: rows and columns are moved apart, without a place for every pixel.
            y, x = _grid(images)
            return take(images, y - drawn["down"][:, None, None], x - drawn["right"][:, None, None])
        names = ("angle", "right", "down", "scale", "shear")
        return transform(images, inverse_matrix(images.shape[-2:], *(drawn[name] for name in names)))


@dataclass(frozen=True)
class Rotation(Augmentation):
    """``torchvision.transforms.RandomRotation``: rotates by U(-degrees, degrees), anticlockwise if positive.

    >>> Rotation(degrees=90).apply(torch.tensor([[[[1, 2], [3, 4]]]]), {"angle": torch.tensor([90.0])})
    tensor([[[[2, 4],
              [1, 3]]]])
    """

    degrees: float = 15.0

    def draw(self, words: Tensor, shape: Shape) -> Drawn:
        """The angle in degrees."""
        return {"angle": symmetric(words[..., 0], self.degrees)}

    def apply(self, images: Tensor, drawn: Drawn) -> Tensor:
        """The images, rotated."""
        angle = drawn["angle"]
        none = torch.zeros_like(angle)
        return transform(images, inverse_matrix(images.shape[-2:], -angle, none, none, none + 1, none))


def inverse_matrix(
    size: Sequence[int], angle: Tensor, right: Tensor, down: Tensor, scale: Tensor, shear: Tensor
) -> Matrix:
    """From a place in the result to its place in the original: six numbers (M,) in double precision.

    The map is T C R S C^-1: with the centre (C) as origin shear in x (S), then rotate and scale (R), then move (T).

        S = [1 -tan(shear); 0 1],    R = scale [cos -sin; sin cos]
    """
    cy, cx = (length / 2 for length in size)
    angle, scale, shear = angle.double().deg2rad(), scale.double(), shear.double().deg2rad()
    cos, sin, tan = angle.cos() / scale, angle.sin() / scale, shear.tan()
    # S^-1 R^-1, with S^-1 = [1 tan; 0 1] and R^-1 = [cos sin; -sin cos] / scale.
    a, b = cos - tan * sin, sin + tan * cos
    d, e = -sin, cos
    x, y = cx + right, cy + down
    return a, b, cx - a * x - b * y, d, e, cy - d * x - e * y


def transform(images: Tensor, inverse: Matrix) -> Tensor:
    """Look each pixel up where the inverse puts it.

    In fixed point with 16 bits after the point, as Pillow does it: on every device the very same pixels.
    """
    a, b, c, d, e, f = inverse
    y, x = _grid(images)
    columns = _fixed(c + (a + b) / 2) + _fixed(a) * x + _fixed(b) * y
    rows = _fixed(f + (d + e) / 2) + _fixed(d) * x + _fixed(e) * y
    return take(images, rows >> 16, columns >> 16)


def _fixed(numbers: Tensor) -> Tensor:
    # The bounds are far outside any image; times 2**15 pixels in x and in y they still fit into 64 bits.
    rounded = (numbers * 2**16 + 0.5).floor().clamp(-(2.0**46), 2.0**46)
    return rounded.long()[:, None, None]


def _grid(images: Tensor) -> tuple[Tensor, Tensor]:
    height, width = images.shape[-2:]
    y = torch.arange(height, device=images.device)[:, None]
    return y, torch.arange(width, device=images.device)
