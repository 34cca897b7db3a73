"""Brightness and contrast as TensorFlow changes them on floating-point images, and colours as torchvision does.

The scale is that of the images, 0 to 255, and nothing is clipped, as in TensorFlow's CIFAR-10 tutorial, which casts
to float before it augments. So the result is floating point even where the images were uint8. `Colour`, as
torchvision's, gives shades from 0 to 255.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from softtargets.data.augment.base import (
    Augmentation,
    Drawn,
    Shape,
    between,
    exact_mean,
    per_image,
    symmetric,
)


@dataclass(frozen=True)
class Brightness(Augmentation):
    """Adds one number from U(-delta, delta) to all of an image: ``tf.image.random_brightness``.

    >>> Brightness().apply(torch.tensor([[[[250]]]], dtype=torch.uint8), {"delta": torch.tensor([10.5])}).item()
    260.5
    """

    delta: float = 63.0

    def draw(self, words: Tensor, shape: Shape) -> Drawn:
        """What to add."""
        return {"delta": symmetric(words[..., 0], self.delta)}

    def apply(self, images: Tensor, drawn: Drawn) -> Tensor:
        """x + delta."""
        return images + per_image(drawn["delta"])


# Factors are counted in so many parts, so that everything is whole numbers and every device gives the same pixels.
_PARTS = 1 << 12
_LUMA = (299, 587, 114)  # of red, green and blue in a thousand, as Pillow weighs them


@dataclass(frozen=True)
class Colour(Augmentation):
    """``torchvision.transforms.ColorJitter`` without hue, always in the order brightness, contrast, saturation.

    Each mixes an image with black, with its mean shade of grey, and with itself in grey: f x + (1 - f) other, rounded
    and cut off at 0 and 255, with f from U(max(0, 1 - x), 1 + x). Grey images have no saturation.

    >>> same, half = torch.tensor([4096]), torch.tensor([2048])
    >>> drawn = {"brightness": same, "contrast": half, "saturation": same}
    >>> Colour().apply(torch.tensor([[[[10, 30]]]], dtype=torch.uint8), drawn)
    tensor([[[[15, 25]]]], dtype=torch.uint8)
    """

    brightness: float = 0.4
    contrast: float = 0.4
    saturation: float = 0.4

    def draw(self, words: Tensor, shape: Shape) -> Drawn:
        """The three factors, in parts."""
        most = {"brightness": self.brightness, "contrast": self.contrast, "saturation": self.saturation}
        return {
            name: (between(words[..., place], max(0.0, 1 - x), 1 + x).double() * _PARTS).round().int()
            for place, (name, x) in enumerate(most.items())
        }

    def apply(self, images: Tensor, drawn: Drawn) -> Tensor:
        """Images of whole shades; those that had fractions are rounded first."""
        shades = (images.round().clamp(0, 255) if images.is_floating_point() else images).int()
        shades = _mixed(shades, torch.zeros_like(shades[:, :1, :1, :1]), drawn["brightness"])
        grey = _grey(shades)
        pixels = grey.shape[2] * grey.shape[3]
        mean = (2 * grey.sum((1, 2, 3), keepdim=True) + pixels) // (2 * pixels)
        shades = _mixed(shades, mean.int(), drawn["contrast"])
        if shades.shape[1] == len(_LUMA):
            shades = _mixed(shades, _grey(shades), drawn["saturation"])
        return shades.to(images.dtype)


def _mixed(shades: Tensor, other: Tensor, factor: Tensor) -> Tensor:
    own = per_image(factor)
    return ((own * shades + (_PARTS - own) * other + _PARTS // 2) >> 12).clamp(0, 255)


def _grey(shades: Tensor) -> Tensor:
    """(M, 1, H, W)."""
    if shades.shape[1] != len(_LUMA):
        return shades[:, :1]
    red, green, blue = (shades[:, place : place + 1] * weight for place, weight in enumerate(_LUMA))
    return (red + green + blue + 500) // 1000


@dataclass(frozen=True)
class Contrast(Augmentation):
    """Scales the distance to the mean of each channel by f from U(low, high): ``tf.image.random_contrast``.

    (x - m) * f + m, with m the mean of the channel of the image.

    >>> Contrast().apply(torch.tensor([[[[10, 30]]]], dtype=torch.uint8), {"factor": torch.tensor([1.5])})
    tensor([[[[ 5., 35.]]]])
    """

    low: float = 0.2
    high: float = 1.8

    def draw(self, words: Tensor, shape: Shape) -> Drawn:
        """The factor."""
        return {"factor": between(words[..., 0], self.low, self.high)}

    def apply(self, images: Tensor, drawn: Drawn) -> Tensor:
        """(x - m) * f + m."""
        mean = exact_mean(images, (-2, -1)).to(torch.promote_types(images.dtype, torch.float32))
        return (images - mean) * per_image(drawn["factor"]) + mean
