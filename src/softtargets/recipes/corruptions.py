"""What is done to the inputs (augmentation) and to the labels (noise)."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Literal

from softtargets.arrays.stochastic import wrong_row
from softtargets.arrays.tolerances import WRITTEN
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
    """The slot for label noise. Human labels are not noise here but labels of a dataset: CIFAR-10's `labels`."""

    @property
    def on_held_out(self) -> bool:
        """Whether validation and test labels are corrupted too."""
        return False

    def options(self) -> dict[str, Any]:
        """The fields that only this kind has: what the noise room must be told."""
        shared = {field.name for field in fields(Synthetic)}
        return {f.name: getattr(self, f.name) for f in fields(self) if f.name not in shared}


@dataclass(frozen=True, kw_only=True)
class Clean(Noise):
    """The labels as they are."""

    name: ClassVar[str] = "none"


@dataclass(frozen=True, kw_only=True)
class Synthetic(Noise):
    """Noise that is drawn, by the recipe's seed.

    `type` is that of Chen et al. 2020: ``alpha`` corrupts training labels only, validation and test stay as they are
    read; ``beta`` corrupts those too, with the same noise, drawn independently.
    """

    type: Literal["alpha", "beta"] = "alpha"

    @property
    def on_held_out(self) -> bool:
        """Of beta type."""
        return self.type == "beta"


@dataclass(frozen=True, kw_only=True)
class Symmetric(Synthetic):
    """With probability `rate` a label becomes one of the K-1 others, each equally likely."""

    name: ClassVar[str] = "symmetric"
    rate: Probability = 0.2


@dataclass(frozen=True, kw_only=True)
class Pair(Synthetic):
    """With probability `rate` label k becomes k + 1, the last becomes the first."""

    name: ClassVar[str] = "pair"
    rate: Probability = 0.2


@dataclass(frozen=True, kw_only=True)
class ClassConditional(Synthetic):
    """Label i becomes j with probability `matrix` [i][j]; a row for each class, which adds up to 1."""

    name: ClassVar[str] = "class_conditional"
    matrix: tuple[tuple[Probability, ...], ...]

    def check(self) -> None:
        """Square, for two classes or more, and what becomes of a label adds up to 1."""
        classes = len(self.matrix)
        if classes < 2:
            raise RecipeError(f"needs a row for each of at least two classes, not {classes}", "matrix")
        if wrong := wrong_row(self.matrix, WRITTEN):
            raise RecipeError(wrong[1], f"matrix.{wrong[0]}")


@dataclass(frozen=True, kw_only=True)
class Instance(Synthetic):
    """A label is wrong with probability `rate` on average, and what the image looks like decides what it becomes.

    After Xia et al. 2020, on images with each channel standardised, whatever the net is shown.
    """

    name: ClassVar[str] = "instance"
    rate: Probability = 0.2
