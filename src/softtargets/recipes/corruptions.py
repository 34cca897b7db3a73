"""What is done to the inputs (augmentation) and to the training labels (noise)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from softtargets.recipes.schema import Count, Index, Part, Probability


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
