"""What every kind of augmentation does, and what several are made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

import torch
from torch import Tensor

from softtargets.randomness import uniforms

Shape = tuple[int, int, int]
Drawn = dict[str, Tensor]

_STEPS = 2.0**16


class Augmentation(ABC):
    """One kind with its options. Drawing is apart from applying, so that draws can be stored and looked at."""

    # How many blocks of four random words a sample takes.
    blocks: ClassVar[int] = 1
    # Whether what is drawn depends on how large the picture was; `draw` is then given that too.
    by_size: ClassVar[bool] = False

    @abstractmethod
    def draw(self, words: Tensor, shape: Shape) -> Drawn:
        """From words (..., 4 * blocks) the numbers of each sample, tensors (...); `shape` is that of an image."""

    @abstractmethod
    def apply(self, images: Tensor, drawn: Drawn) -> Tensor:
        """Change images (M, C, H, W), uint8 or floating, by the numbers drawn for each, tensors (M,)."""

    def output_shape(self, shape: Shape) -> Shape:
        """The shape of an image of this shape afterwards."""
        return shape


def by_hand(images: Tensor) -> bool:
    """Whether a CPU may go through images one by one, which it does faster, and which cannot be compiled."""
    return images.device.type == "cpu" and not torch.compiler.is_compiling()


def symmetric(word: Tensor, limit: float) -> Tensor:
    """Words as numbers from -limit to just below limit, all equally likely.

    2u - 1 is exact in single precision, so there is only one rounding, and every device rounds it the same way.
    """
    return (uniforms(word) * 2 - 1) * limit


def between(word: Tensor, low: float, high: float) -> Tensor:
    """Words as numbers from low to high, all equally likely."""
    return (low + uniforms(word).double() * (high - low)).float()


def per_image(values: Tensor) -> Tensor:
    """One number for each image, (M,), in the shape that broadcasts over (M, C, H, W)."""
    return values[:, None, None, None]


def exact_mean(values: Tensor, dims: tuple[int, ...]) -> Tensor:
    """The mean in double precision, kept as dimensions of 1: the same however a device orders the sum.

    Whole numbers have exact sums in double precision, and so has what is rounded to steps of 2^-16, a hundred
    thousandth of a shade.

    >>> exact_mean(torch.tensor([[0.5, 0.25, 0.75]]), (1,))
    tensor([[0.5000]], dtype=torch.float64)
    """
    if not values.is_floating_point():
        return values.mean(dims, keepdim=True, dtype=torch.float64)
    return (values.double() * _STEPS).round().mean(dims, keepdim=True) / _STEPS


def take(images: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
    """The one gather under the kinds that move pixels.

    Pixel (i, j) of result m is pixel (rows[m, i, j], columns[m, i, j]) of image m, and 0 if that is outside.

    rows and columns are int64 and broadcast against each other to (M, new height, new width). There is no padded
    copy: indices from outside are clamped, and what they bring is masked.

    >>> image = torch.tensor([[[[1, 2], [3, 4]]]])
    >>> take(image, torch.tensor([[[0], [1]]]), torch.tensor([[[1, 2]]]))
    tensor([[[[2, 0],
              [4, 0]]]])
    """
    count, channels, height, width = images.shape
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    places = rows.clamp(0, height - 1) * width + columns.clamp(0, width - 1)
    # Sizes are spelt out since none can be inferred for an empty batch.
    index = places.reshape(count, 1, places.shape[1] * places.shape[2]).expand(-1, channels, -1)
    found = images.reshape(count, channels, height * width).gather(2, index)
    found = found.reshape(count, channels, *places.shape[1:])
    return torch.where(inside[:, None], found, 0)
