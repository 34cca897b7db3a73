"""What is done to the images that a model is trained on, each time anew."""

from __future__ import annotations

from typing import Annotated

from softtargets.exceptions import RecipeError
from softtargets.recipes.schema import Count, Index, NonNegative, Part, Positive, Probability, Range

__all__ = [
    "Affine",
    "Augmentation",
    "Brightness",
    "Colour",
    "Contrast",
    "Crop",
    "Flip",
    "ResizedCrop",
    "Rotation",
    "Shift",
]

Fraction = Annotated[float, Range(0, 1, open_low=True)]
Degrees = Annotated[float, Range(0, 360)]


class Augmentation(Part):
    """The slot for one step of augmentation; a recipe has a list of them, applied in order."""


class Shift(Augmentation, name="shift"):
    """Moves each image by -pixels..pixels in x and y, every offset equally likely; zeros fill the gap."""

    pixels: Count = 2


class Flip(Augmentation, name="flip"):
    """Mirrors each image left to right with the given probability."""

    probability: Probability = 0.5


class Crop(Augmentation, name="crop"):
    """Pads with zeros, then cuts a random square of `size` (default: the size of the image).

    Evaluation takes the middle of the unpadded image, so `size` may be smaller than the image.
    """

    padding: Index = 4
    size: Count | None = None


class ResizedCrop(Augmentation, name="resized_crop"):
    """Cuts a part of random size, proportions and place out of each picture and resizes it to `size` x `size`.

    torchvision's ``RandomResizedCrop``, the usual augmentation of ImageNet: `scale` is the smallest and the largest
    share of the picture, `ratio` of width to height. With ``keep: picture`` in the data, the part is cut from the
    whole picture, otherwise from the square in its middle. Evaluation takes the square in the middle whose side is
    `middle` of the picture's shorter one.
    """

    size: Count | None = None
    scale: tuple[Fraction, Fraction] = (0.08, 1.0)
    ratio: tuple[Positive, Positive] = (3 / 4, 4 / 3)
    middle: Fraction = 0.875

    def check(self) -> None:
        """A range goes from its lower to its higher end."""
        for field in ("scale", "ratio"):
            low, high = getattr(self, field)
            if low > high:
                raise RecipeError(f"[{low:g}, {high:g}] must have the smaller number first", field)


class Colour(Augmentation, name="colour"):
    """Changes brightness, contrast and saturation, in this order, each by a factor from 1 - x to 1 + x (at least 0).

    torchvision's ``ColorJitter`` without hue, which draws the order too; 0.4 each is usual for ImageNet.
    """

    brightness: NonNegative = 0.4
    contrast: NonNegative = 0.4
    saturation: NonNegative = 0.4


class Brightness(Augmentation, name="brightness"):
    """Adds one number from -delta..delta to each image, on the scale from 0 to 255 and without clipping.

    TensorFlow's ``random_brightness``; the default is that of its CIFAR-10 tutorial.
    """

    delta: NonNegative = 63.0


class Contrast(Augmentation, name="contrast"):
    """Scales each channel's distance to its mean by a factor from low..high, without clipping.

    TensorFlow's ``random_contrast``; the defaults are those of its CIFAR-10 tutorial.
    """

    low: NonNegative = 0.2
    high: NonNegative = 1.8

    def check(self) -> None:
        """A range goes from its lower to its higher end."""
        if self.low > self.high:
            raise RecipeError(f"{self.low:g} is above high, which is {self.high:g}; swap them", "low")


class Affine(Augmentation, name="affine"):
    """Turns by -degrees..degrees, shears in x by -shear..shear degrees, scales, and moves; zeros fill the gap.

    torchvision's ``RandomAffine`` with the nearest pixel. `translate` is the largest move as a fraction of width and
    height, rounded to whole pixels; `scale` is the smallest and the largest factor.
    """

    degrees: Degrees = 0.0
    translate: Probability = 0.0
    scale: tuple[Positive, Positive] | None = None
    shear: Annotated[float, Range(0, 90, open_high=True)] = 0.0

    def check(self) -> None:
        """A range goes from its lower to its higher end."""
        if self.scale and self.scale[0] > self.scale[1]:
            low, high = self.scale
            raise RecipeError(f"[{low:g}, {high:g}] must have the smaller factor first", "scale")


class Rotation(Augmentation, name="rotation"):
    """Turns each image by -degrees..degrees about its centre; zeros fill the corners.

    torchvision's ``RandomRotation`` with the nearest pixel; the default is that of TF-KD's recipe for CIFAR-100.
    """

    degrees: Degrees = 15.0
