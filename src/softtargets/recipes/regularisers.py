"""Where the training target comes from; `softtargets.losses` computes with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from softtargets.arrays import TARGET
from softtargets.exceptions import RecipeError
from softtargets.recipes.noise import Matrix, check_matrix
from softtargets.recipes.schema import Index, NonNegative, Part, Positive, Probability, Range

__all__ = [
    "CSKD",
    "LABO",
    "AntiFocal",
    "BetaSmoothing",
    "ConfidencePenalty",
    "CrossEntropy",
    "Distillation",
    "DisturbLabel",
    "Focal",
    "ForwardCorrection",
    "KnowledgeRefinery",
    "LabelSmoothing",
    "LogitSmoothing",
    "MaxSup",
    "OnlineLabelSmoothing",
    "Regulariser",
    "TFReg",
]

if TYPE_CHECKING:
    from softtargets.recipes.recipe import Recipe


class Regulariser(Part):
    """The slot for a label regulariser."""


class CrossEntropy(Regulariser, name="cross_entropy"):
    """Trains on hard targets: all mass on the given label."""


class LabelSmoothing(Regulariser, name="label_smoothing"):
    """Moves `alpha` of the mass from the label to all K classes, or to the K-1 others (`spread`).

    With a `matrix` S the mass for label y goes where row y of S says; alpha 1 trains on S itself. With the `prior`
    unigram it goes to classes as often as they are labels in the training set (Pereyra et al. 2017).
    """

    alpha: Probability = 0.1
    spread: Literal["all", "others"] = "all"
    matrix: Matrix | None = None
    prior: Literal["uniform", "unigram"] = "uniform"

    def check(self) -> None:
        """A matrix is square, its rows add up to 1, and without the label something is left of them if need be."""
        if self.matrix is None:
            return
        if self.prior != "uniform":
            raise RecipeError(
                f"{self.prior} and a matrix both say where the mass goes; leave one out", "prior"
            )
        check_matrix(self.matrix, TARGET)
        for position, row in enumerate(self.matrix):
            if self.spread == "others" and row[position] >= 1:
                raise RecipeError(
                    "has no mass for other classes, which spread: others needs; give it some, or use spread: all",
                    f"matrix.{position}",
                )


class Distillation(Regulariser, name="distillation"):
    """Trains on a teacher's predictions: the loss is (1 - beta) H(y, p) + beta H(teacher(T), p(T)).

    The teacher is a whole recipe, so a student's identity says exactly how its teacher was trained.
    `student_temperature` false keeps the student at T = 1, as Müller et al. do (appendix A.1). `scale_gradients`
    multiplies the soft part by T squared; with `student_temperature` true, that is the text-book loss of Hinton et al.
    2015. `match` logits makes the soft part half the squared difference of the logits.

    `view` says which images the teacher is asked about. `student`: those that the student sees, augmented as for the
    student. `teacher`: the same examples, cut and turned anew in every epoch by the teacher's own augmentation, at its
    own size. `stored`: the same examples without augmentation, so that the teacher is asked once. Each is standardised
    as the teacher's own data are.
    """

    teacher: Recipe
    temperature: Positive = 1.0
    beta: Probability = 1.0
    student_temperature: bool = False
    scale_gradients: bool = False
    match: Literal["probabilities", "logits"] = "probabilities"
    view: Literal["student", "teacher", "stored"] = "student"


class ConfidencePenalty(Regulariser, name="confidence_penalty"):
    """Subtracts `beta` times the entropy of the prediction from the loss of hard targets."""

    beta: NonNegative = 0.1


class Focal(Regulariser, name="focal"):
    """Weights the loss of hard targets by (1 - p) ** gamma: less for likely labels. `detach` stops its gradient."""

    gamma: NonNegative = 2.0
    detach: bool = False


class AntiFocal(Regulariser, name="anti_focal"):
    """Weights the loss of hard targets by (1 + alpha p) ** gamma: more for likely ones. `detach` stops its gradient."""

    gamma: NonNegative = 1.0
    alpha: NonNegative = 0.5
    detach: bool = True


class LABO(Regulariser, name="labo"):
    """Moves mass to the model's own prediction at temperature `tau`: `alpha` of it, or by its entropy (`reading`).

    The first `warmup_steps` steps smooth uniformly with `warmup_alpha` (default: `alpha`, or 0.1), or, with
    `warmup` adaptive, with each example's own alpha, as after the warm-up. `hypergradient` includes alpha in the
    gradient.
    """

    tau: Positive = 1.25
    rho: Probability = 0.5
    alpha: Probability | None = None
    warmup_steps: Index = 0
    reading: Literal["literal", "reversed"] = "literal"
    warmup_alpha: Probability | None = None
    warmup: Literal["constant", "adaptive"] = "constant"
    hypergradient: bool = False

    def check(self) -> None:
        """In the warm-up alpha is a constant or follows the model, not both."""
        if self.warmup == "adaptive" and self.warmup_alpha is not None:
            raise RecipeError(
                f"{self.warmup_alpha:g} is only for warmup: constant, but warmup is adaptive; leave one of them out",
                "warmup_alpha",
            )


class TFReg(Regulariser, name="tf_reg"):
    """Distils from a hand-made teacher: `correct` on the label, the rest on the others, softened."""

    alpha: Probability = 0.1
    temperature: Positive = 20.0
    multiplier: NonNegative = 100.0
    correct: Probability = 0.99
    student_temperature: bool = False
    divergence: Literal["mean", "batchmean"] = "mean"


class CSKD(Regulariser, name="cs_kd"):
    """Makes the model agree with its prediction for another training example of the class; a second forward pass."""

    temperature: Positive = 4.0
    strength: NonNegative = 1.0


class BetaSmoothing(Regulariser, name="beta_smoothing"):
    """Smooths by a random amount, least for examples that a moving average of the model is confident of."""

    alpha: Probability = 0.6
    beta: Positive = 3.0
    decay: Probability = 0.999


class OnlineLabelSmoothing(Regulariser, name="online_label_smoothing"):
    """Moves `alpha` to the model's average prediction for the class in the last epoch. `freeze` fixes rows."""

    alpha: Probability = 0.5
    freeze: Annotated[float, Range(0, 1, open_low=True)] | None = None
    start: Literal["uniform", "zeros"] = "uniform"


class KnowledgeRefinery(Regulariser, name="knowledge_refinery"):
    """Makes the model agree about the wrong classes with a table that is learnt at the rate `table_lr`."""

    alpha: NonNegative = 1.0
    table_lr: NonNegative = 0.1


class ForwardCorrection(Regulariser, name="forward_correction"):
    """Passes the prediction through the label noise of the recipe (`noise`) before the loss is computed."""


class LogitSmoothing(Regulariser, name="logit_smoothing"):
    """Moves `alpha` of each logit to all classes: a temperature of 1 / (1 - alpha)."""

    alpha: Probability = 0.1


class DisturbLabel(Regulariser, name="disturb_label"):
    """Replaces a label by a random one with probability `alpha`, drawn again in every step."""

    alpha: Probability = 0.1


class MaxSup(Regulariser, name="max_sup"):
    """Penalises the largest logit: adds `alpha` times its distance above the mean of the logits."""

    alpha: NonNegative = 0.1
