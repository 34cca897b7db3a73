"""How the weights move: optimisers and learning-rate schedules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from softtargets.exceptions import RecipeError
from softtargets.recipes.schema import Count, Index, NonNegative, Part, Positive, ProperFraction

Unit = Literal["epoch", "step"]


@dataclass(frozen=True, kw_only=True)
class Optimiser(Part):
    """The slot for an optimiser; every one has a learning rate, which the schedule scales."""

    lr: Positive = 0.1


@dataclass(frozen=True, kw_only=True)
class SGD(Optimiser):
    """Stochastic gradient descent. Momentum 0.9 with dampening 0.9 is the papers' gradient smoothing."""

    name: ClassVar[str] = "sgd"
    momentum: ProperFraction = 0.0
    dampening: ProperFraction = 0.0
    nesterov: bool = False
    weight_decay: NonNegative = 0.0

    def check(self) -> None:
        """Nesterov's look-ahead is defined only with momentum and without dampening."""
        if self.nesterov and (self.momentum == 0 or self.dampening != 0):
            raise RecipeError("true needs momentum above 0 and dampening 0", "nesterov")


@dataclass(frozen=True, kw_only=True)
class Adam(Optimiser):
    """Adam; `decoupled` makes the weight decay that of AdamW."""

    name: ClassVar[str] = "adam"
    lr: Positive = 1e-3
    betas: tuple[ProperFraction, ProperFraction] = (0.9, 0.999)
    eps: Positive = 1e-8
    weight_decay: NonNegative = 0.0
    decoupled: bool = False


@dataclass(frozen=True, kw_only=True)
class Schedule(Part):
    """The slot for a learning-rate schedule. `warmup` units rise linearly to the full rate first."""

    warmup: Index = 0
    unit: Unit = "step"


@dataclass(frozen=True, kw_only=True)
class Constant(Schedule):
    """The same rate throughout."""

    name: ClassVar[str] = "constant"


@dataclass(frozen=True, kw_only=True)
class Step(Schedule):
    """The rate is multiplied by `factor` at each milestone."""

    name: ClassVar[str] = "step"
    milestones: tuple[Count, ...] = ()
    factor: Positive = 0.1
    unit: Unit = "epoch"

    def check(self) -> None:
        """Milestones that do not rise are a typing mistake."""
        if list(self.milestones) != sorted(set(self.milestones)):
            raise RecipeError(f"{list(self.milestones)} must rise from one to the next", "milestones")


@dataclass(frozen=True, kw_only=True)
class Linear(Schedule):
    """The rate falls on a straight line to `end` times its start."""

    name: ClassVar[str] = "linear"
    end: NonNegative = 0.0


@dataclass(frozen=True, kw_only=True)
class Cosine(Schedule):
    """The rate falls along half a cosine to `end` times its start."""

    name: ClassVar[str] = "cosine"
    end: NonNegative = 0.0
