"""What is done to the labels before a model is trained on them."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, Literal

from softtargets.arrays import WRITTEN, wrong_row
from softtargets.exceptions import RecipeError
from softtargets.recipes.schema import Part, Probability

__all__ = ["ClassConditional", "Clean", "Instance", "Noise", "Pair", "Symmetric"]


Matrix = tuple[tuple[Probability, ...], ...]


def check_matrix(matrix: Matrix, tolerance: float) -> None:
    """Refuse a matrix that is not square, for two classes or more, or whose rows do not add up to 1."""
    if len(matrix) < 2:
        raise RecipeError(f"needs a row for each of at least two classes, not {len(matrix)}", "matrix")
    if wrong := wrong_row(matrix, tolerance):
        raise RecipeError(wrong[1], f"matrix.{wrong[0]}")


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


class Clean(Noise, name="none"):
    """The labels as they are."""


class Synthetic(Noise):
    """Noise that is drawn by the recipe's seed.

    `type` follows Chen et al. 2020: ``alpha`` corrupts the training labels only; ``beta`` also corrupts validation
    and test labels, with independent draws of the same noise.
    """

    type: Literal["alpha", "beta"] = "alpha"

    @property
    def on_held_out(self) -> bool:
        """Of beta type."""
        return self.type == "beta"


class Symmetric(Synthetic, name="symmetric"):
    """With probability `rate` a label becomes one of the K-1 others, each equally likely."""

    rate: Probability = 0.2


class Pair(Synthetic, name="pair"):
    """With probability `rate` label k becomes k + 1, the last becomes the first."""

    rate: Probability = 0.2


class ClassConditional(Synthetic, name="class_conditional"):
    """Label i becomes j with probability `matrix` [i][j]; a row for each class, which adds up to 1."""

    matrix: Matrix

    def check(self) -> None:
        """What becomes of a label adds up to 1."""
        check_matrix(self.matrix, WRITTEN)


class Instance(Synthetic, name="instance"):
    """A label is wrong with probability `rate` on average, and what the image looks like decides what it becomes.

    After Xia et al. 2020, on images with each channel standardised, whatever the model is shown.
    """

    rate: Probability = 0.2
