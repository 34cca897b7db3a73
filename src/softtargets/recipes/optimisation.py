"""How the weights move: optimisers and learning-rate schedules."""

from __future__ import annotations

from typing import ClassVar, Literal

from softtargets.exceptions import RecipeError
from softtargets.recipes.schema import Count, Index, NonNegative, Part, Positive, ProperFraction

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "Constant",
    "Cosine",
    "InverseSqrt",
    "Linear",
    "Optimiser",
    "Schedule",
    "Step",
]

Unit = Literal["epoch", "step"]
# Patterns of parameter names, such as "head.*" or "*.bias", and a number for each.
Factors = tuple[tuple[str, NonNegative], ...]


class Optimiser(Part):
    """Every optimiser has a learning rate `lr`, which the schedule scales, and `weight_decay`.

    `rates` multiplies the learning rate of some layers: ``{"head.*": 0.1}`` slows the last one down, 0 stops it. The
    first pattern that matches a parameter counts, so their order is part of the recipe. `decay_on` are patterns of
    the parameters that are decayed; none means all. `decay_form` says how: ``gradient`` adds weight_decay * w to the
    gradient after clipping, as torch does; ``loss`` adds half of weight_decay * sum(w**2) to the loss, as TensorFlow
    does, so that its gradient is clipped too; ``norm`` adds weight_decay * ||w|| of each parameter, without the
    square, as the replication of Müller et al. 2019 does.
    """

    lr: Positive = 0.1
    rates: Factors = ()
    weight_decay: NonNegative = 0.0
    decay_on: tuple[str, ...] = ()
    decay_form: Literal["gradient", "loss", "norm"] = "gradient"


class SGD(Optimiser, name="sgd"):
    """Stochastic gradient descent. Momentum 0.9 with dampening 0.9 is the papers' gradient smoothing."""

    momentum: ProperFraction = 0.0
    dampening: ProperFraction = 0.0
    nesterov: bool = False

    def check(self) -> None:
        """Nesterov's look-ahead is defined only with momentum and without dampening."""
        if self.nesterov and (self.momentum == 0 or self.dampening != 0):
            raise RecipeError("true needs momentum above 0 and dampening 0", "nesterov")


class Adam(Optimiser, name="adam"):
    """Adam; `decoupled` makes the weight decay that of AdamW."""

    lr: Positive = 1e-3
    betas: tuple[ProperFraction, ProperFraction] = (0.9, 0.999)
    eps: Positive = 1e-8
    decoupled: bool = False

    def check(self) -> None:
        """AdamW's decay goes past the gradient, and so past the loss."""
        if self.decoupled and self.decay_form != "gradient":
            raise RecipeError(
                f"{self.decay_form} is part of the loss, but decoupled decay is not; use gradient, or decoupled: "
                "false",
                "decay_form",
            )


class AdamW(Optimiser, name="adamw"):
    """AdamW: Adam with weight decay outside the gradient, w <- (1 - lr * weight_decay) w (Loshchilov & Hutter 2019).

    Defaults are those of ``torch.optim.AdamW``. The same as ``adam`` with `decoupled`, which keeps its name in recipes
    that have it.
    """

    decoupled: ClassVar[bool] = True

    lr: Positive = 1e-3
    weight_decay: NonNegative = 0.01
    betas: tuple[ProperFraction, ProperFraction] = (0.9, 0.999)
    eps: Positive = 1e-8

    def check(self) -> None:
        """Its decay is no part of the loss."""
        if self.decay_form != "gradient":
            raise RecipeError(
                f"{self.decay_form} is part of the loss, but the decay of adamw is not; leave decay_form out, or use "
                "adam",
                "decay_form",
            )


class Schedule(Part):
    """Every schedule may begin with a warm-up: over `warmup` units the rate rises linearly to the full one."""

    warmup: Index = 0
    unit: Unit = "step"


class Constant(Schedule, name="constant"):
    """The same rate throughout."""


class Step(Schedule, name="step"):
    """The rate is multiplied by `factor` at each milestone."""

    milestones: tuple[Count, ...] = ()
    factor: Positive = 0.1
    unit: Unit = "epoch"

    def check(self) -> None:
        """Milestones that do not rise are a typing mistake."""
        if list(self.milestones) != sorted(set(self.milestones)):
            raise RecipeError(f"{list(self.milestones)} must be in increasing order", "milestones")


class Linear(Schedule, name="linear"):
    """The rate falls on a straight line to `end` times its start."""

    end: NonNegative = 0.0


class Cosine(Schedule, name="cosine"):
    """The rate falls along half a cosine to `end` times its start."""

    end: NonNegative = 0.0


class InverseSqrt(Schedule, name="inverse_sqrt"):
    """The rate falls with one over the square root of time, from 1 at the end of the warm-up: sqrt(warmup / now).

    The schedule of the Transformer (Vaswani et al. 2017, section 5.3) with the learning rate given at its peak.
    """

    warmup: Count = 1
