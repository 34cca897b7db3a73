"""Where the training target comes from; `softtargets.losses` computes with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from softtargets.recipes.schema import Part, Positive, Probability

if TYPE_CHECKING:
    from softtargets.recipes.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class Regulariser(Part):
    """The slot for a label regulariser."""


@dataclass(frozen=True, kw_only=True)
class CrossEntropy(Regulariser):
    """Hard targets: all mass on the given label."""

    name: ClassVar[str] = "cross_entropy"


@dataclass(frozen=True, kw_only=True)
class LabelSmoothing(Regulariser):
    """Moves `alpha` of the mass from the label to all K classes, or to the K-1 others (`spread`)."""

    name: ClassVar[str] = "label_smoothing"
    alpha: Probability = 0.1
    spread: Literal["all", "others"] = "all"


@dataclass(frozen=True, kw_only=True)
class Distillation(Regulariser):
    """Targets from a teacher: (1 - beta) H(y, p) + beta H(teacher(T), p(T)).

    The teacher is a whole recipe, so a student's identity says exactly how its teacher was trained.
    `student_temperature` false keeps the student at T = 1, as Müller et al. do (appendix A.1).
    """

    name: ClassVar[str] = "distillation"
    teacher: Recipe
    temperature: Positive = 1.0
    beta: Probability = 1.0
    student_temperature: bool = False
