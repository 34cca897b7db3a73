"""What is done to the inputs (augmentation) and to the training labels (noise)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from softtargets.exceptions import RecipeError
from softtargets.recipes.schema import Count, Index, NonNegative, Part, Positive, Probability, Range

Degrees = Annotated[float, Range(0, 360)]


@dataclass(frozen=True, kw_only=True)
class Augmentation(Part):
    """The slot for one step of augmentation; a recipe has a list of them, applied in order."""


@dataclass(frozen=True, kw_only=True)
class Shift(Augmentation):
    """Moves each image by -pixels..pixels in x and y, every offset equally likely; zeros fill the gap."""

    name: ClassVar[str] = "shift"
    pixels: Count = 2


@dataclass(frozen=True, kw_only=True)
class Flip(Augmentation):
    """Mirrors each image left to right with the given probability."""

    name: ClassVar[str] = "flip"
    probability: Probability = 0.5


@dataclass(frozen=True, kw_only=True)
class Crop(Augmentation):
    """Pads with zeros, then cuts a random square of `size` (default: the size of the image).

    Evaluation takes the middle of the unpadded image, so `size` may be smaller than the image.
    """

    name: ClassVar[str] = "crop"
    padding: Index = 4
    size: Count | None = None


@dataclass(frozen=True, kw_only=True)
class Brightness(Augmentation):
    """Adds one number from -delta..delta to each image, on the scale from 0 to 255 and without clipping.

    TensorFlow's ``random_brightness``; the default is that of its CIFAR-10 tutorial.
    """

    name: ClassVar[str] = "brightness"
    delta: NonNegative = 63.0


@dataclass(frozen=True, kw_only=True)
class Contrast(Augmentation):
    """Scales each channel's distance to its mean by a factor from low..high, without clipping.

    TensorFlow's ``random_contrast``; the defaults are those of its CIFAR-10 tutorial.
    """

    name: ClassVar[str] = "contrast"
    low: NonNegative = 0.2
    high: NonNegative = 1.8

    def check(self) -> None:
        """A range goes from its lower to its higher end."""
        if self.low > self.high:
            raise RecipeError(f"{self.low:g} is above high, {self.high:g}; exchange them", "low")


@dataclass(frozen=True, kw_only=True)
class Affine(Augmentation):
    """Turns by -degrees..degrees, shears in x by -shear..shear degrees, scales, and moves; zeros fill the gap.

    torchvision's ``RandomAffine`` with the nearest pixel. `translate` is the largest move as a fraction of width and
    height, rounded to whole pixels; `scale` is the smallest and the largest factor.
    """

    name: ClassVar[str] = "affine"
    degrees: Degrees = 0.0
    translate: Probability = 0.0
    scale: tuple[Positive, Positive] | None = None
    shear: Annotated[float, Range(0, 90, open_high=True)] = 0.0

    def check(self) -> None:
        """A range goes from its lower to its higher end."""
        if self.scale and self.scale[0] > self.scale[1]:
            low, high = self.scale
            raise RecipeError(f"[{low:g}, {high:g}] must go from the smallest factor to the largest", "scale")


@dataclass(frozen=True, kw_only=True)
class Rotation(Augmentation):
    """Turns each image by -degrees..degrees about its centre; zeros fill the corners.

    torchvision's ``RandomRotation`` with the nearest pixel; the default is that of TF-KD's recipe for CIFAR-100.
    """

    name: ClassVar[str] = "rotation"
    degrees: Degrees = 15.0


@dataclass(frozen=True, kw_only=True)
class Noise(Part):
    """The slot for label noise; only training labels are touched, validation and test stay as they are read."""


@dataclass(frozen=True, kw_only=True)
class Clean(Noise):
    """The labels as they are."""

    name: ClassVar[str] = "none"


@dataclass(frozen=True, kw_only=True)
class Symmetric(Noise):
    """With probability `rate` a label becomes one of the K-1 others, each equally likely."""

    name: ClassVar[str] = "symmetric"
    rate: Probability = 0.2


@dataclass(frozen=True, kw_only=True)
class Pair(Noise):
    """With probability `rate` label k becomes k + 1, the last becomes the first."""

    name: ClassVar[str] = "pair"
    rate: Probability = 0.2
