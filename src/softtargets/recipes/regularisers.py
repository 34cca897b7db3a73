"""Where the training target comes from; `softtargets.losses` computes with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

from softtargets.arrays.stochastic import wrong_row
from softtargets.arrays.tolerances import TARGET
from softtargets.exceptions import RecipeError
from softtargets.recipes.schema import Index, NonNegative, Part, Positive, Probability, Range

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
    """Moves `alpha` of the mass from the label to all K classes, or to the K-1 others (`spread`).

    With a `matrix` S the mass for label y goes where row y of S says; alpha 1 trains on S itself.
    """

    name: ClassVar[str] = "label_smoothing"
    alpha: Probability = 0.1
    spread: Literal["all", "others"] = "all"
    matrix: tuple[tuple[Probability, ...], ...] | None = None

    def check(self) -> None:
        """A matrix is square, its rows add up to 1, and without the label something is left of them if need be."""
        if self.matrix is None:
            return
        classes = len(self.matrix)
        if classes < 2:
            raise RecipeError(f"needs a row for each of at least two classes, not {classes}", "matrix")
        if wrong := wrong_row(self.matrix, TARGET):
            raise RecipeError(wrong[1], f"matrix.{wrong[0]}")
        for position, row in enumerate(self.matrix):
            if self.spread == "others" and row[position] >= 1:
                raise RecipeError(
                    "has nothing for other classes, which spread: others needs; give it some, or spread: all",
                    f"matrix.{position}",
                )


@dataclass(frozen=True, kw_only=True)
class Distillation(Regulariser):
    """Targets from a teacher: (1 - beta) H(y, p) + beta H(teacher(T), p(T)).

    The teacher is a whole recipe, so a student's identity says exactly how its teacher was trained.
    `student_temperature` false keeps the student at T = 1, as Müller et al. do (appendix A.1). `scale_gradients`
    multiplies the soft part by T squared; `match` logits makes it half the squared difference of the logits.
    """

    name: ClassVar[str] = "distillation"
    teacher: Recipe
    temperature: Positive = 1.0
    beta: Probability = 1.0
    student_temperature: bool = False
    scale_gradients: bool = False
    match: Literal["probabilities", "logits"] = "probabilities"


@dataclass(frozen=True, kw_only=True)
class ConfidencePenalty(Regulariser):
    """Hard targets; `beta` times the entropy of the prediction is subtracted from the loss."""

    name: ClassVar[str] = "confidence_penalty"
    beta: NonNegative = 0.1


@dataclass(frozen=True, kw_only=True)
class Focal(Regulariser):
    """Hard targets, weighed by (1 - p) ** gamma; `detach` lets no gradient through that factor."""

    name: ClassVar[str] = "focal"
    gamma: NonNegative = 2.0
    detach: bool = False


@dataclass(frozen=True, kw_only=True)
class AntiFocal(Regulariser):
    """Hard targets, weighed by (1 + alpha p) ** gamma; `detach` lets no gradient through that factor."""

    name: ClassVar[str] = "anti_focal"
    gamma: NonNegative = 1.0
    alpha: NonNegative = 0.5
    detach: bool = True


@dataclass(frozen=True, kw_only=True)
class LABO(Regulariser):
    """Moves mass to the net's own opinion at temperature `tau`: `alpha` of it, or as the entropy says (`reading`).

    The first `warmup_steps` steps smooth uniformly with `warmup_alpha` (default: `alpha`, or 0.1).
    """

    name: ClassVar[str] = "labo"
    tau: Positive = 1.25
    rho: Probability = 0.5
    alpha: Probability | None = None
    warmup_steps: Index = 0
    reading: Literal["literal", "reversed"] = "literal"
    warmup_alpha: Probability | None = None


@dataclass(frozen=True, kw_only=True)
class TFReg(Regulariser):
    """Distillation from a teacher made by hand: `correct` on the label, the rest on the others, softened."""

    name: ClassVar[str] = "tf_reg"
    alpha: Probability = 0.1
    temperature: Positive = 20.0
    multiplier: NonNegative = 100.0
    correct: Probability = 0.99
    student_temperature: bool = False
    divergence: Literal["mean", "batchmean"] = "mean"


@dataclass(frozen=True, kw_only=True)
class CSKD(Regulariser):
    """Agreement with what the net says of another training example of the same class; a second forward pass."""

    name: ClassVar[str] = "cs_kd"
    temperature: Positive = 4.0
    strength: NonNegative = 1.0


@dataclass(frozen=True, kw_only=True)
class BetaSmoothing(Regulariser):
    """Smoothing of random strength, least for examples that an average of the net over time is sure of."""

    name: ClassVar[str] = "beta_smoothing"
    alpha: Probability = 0.6
    beta: Positive = 3.0
    decay: Probability = 0.999


@dataclass(frozen=True, kw_only=True)
class OnlineLabelSmoothing(Regulariser):
    """Moves `alpha` to what the net said of the class in the epoch before; `freeze` keeps rows that are sure."""

    name: ClassVar[str] = "online_label_smoothing"
    alpha: Probability = 0.5
    freeze: Annotated[float, Range(0, 1, open_low=True)] | None = None


@dataclass(frozen=True, kw_only=True)
class KnowledgeRefinery(Regulariser):
    """Agreement about the wrong classes with a table that is learnt meanwhile, at the rate `table_lr`."""

    name: ClassVar[str] = "knowledge_refinery"
    alpha: NonNegative = 1.0
    table_lr: NonNegative = 0.1


@dataclass(frozen=True, kw_only=True)
class ForwardCorrection(Regulariser):
    """Lets the net's opinion go through the label noise, which the recipe's own `noise` says, before it is judged."""

    name: ClassVar[str] = "forward_correction"


@dataclass(frozen=True, kw_only=True)
class LogitSmoothing(Regulariser):
    """Moves `alpha` of each logit to all classes: a temperature of 1 / (1 - alpha)."""

    name: ClassVar[str] = "logit_smoothing"
    alpha: Probability = 0.1


@dataclass(frozen=True, kw_only=True)
class DisturbLabel(Regulariser):
    """Replaces a label by a random one with probability `alpha`, anew in every step."""

    name: ClassVar[str] = "disturb_label"
    alpha: Probability = 0.1


@dataclass(frozen=True, kw_only=True)
class MaxSup(Regulariser):
    """Adds `alpha` times how far the largest logit lies above the mean."""

    name: ClassVar[str] = "max_sup"
    alpha: NonNegative = 0.1
