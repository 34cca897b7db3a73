"""Brightness and contrast as TensorFlow changes them on images of floating-point numbers.

The scale is that of the images, 0 to 255, and nothing is clipped, as in TensorFlow's CIFAR-10 tutorial, which casts
to float before it augments. So the result is floating point even where the images were uint8.
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
