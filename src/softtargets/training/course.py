"""When a training does what, and at which rate: pure functions of its recipe and the steps of its epochs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

from softtargets.recipes import Constant, Cosine, InverseSqrt, Linear, Recipe, Schedule, Step
from softtargets.training.tasks import Epoch, Task


@dataclass(frozen=True)
class Course:
    """The steps of one training, counted from 0.

    >>> import torch
    >>> from softtargets.recipes import Digits, MLP
    >>> from softtargets.training.tasks import prepare
    >>> recipe = Recipe(data=Digits(limit=250), model=MLP(), epochs=2, batch=100)
    >>> course = Course(recipe, prepare(recipe.data, torch.device("cpu")))
    >>> course.steps_per_epoch, course.total_steps, course.total_units, course.epoch(1)
    (3, 6, 500, Epoch(shapes=(100, 100, 50), units=(100, 100, 50)))
    """

    recipe: Recipe
    task: Task

    def epoch(self, number: int) -> Epoch:
        """The steps of an epoch, counted from 0."""
        return self.task.epoch(self.recipe, number)

    @cached_property
    def steps_per_epoch(self) -> int:
        """As many in each."""
        return len(self.epoch(0).shapes)

    @cached_property
    def total_steps(self) -> int:
        """Until the training is finished."""
        return self.recipe.steps or (self.recipe.epochs or 0) * self.steps_per_epoch

    @property
    def total_units(self) -> int:
        """Of work in all these steps."""
        epochs, rest = divmod(self.total_steps, self.steps_per_epoch)
        return epochs * sum(self.epoch(0).units) + sum(self.epoch(epochs).units[:rest] if rest else ())

    def place(self, step: int) -> int:
        """Where in its epoch a step is; runs of a pack go through their epochs together."""
        return step % self.steps_per_epoch

    def rates(self, epoch: int) -> tuple[float, ...]:
        """The learning rate of every step of an epoch (counted from 0); beyond the last step nothing moves."""
        recipe = self.recipe
        return _rates(recipe.schedule, recipe.optimiser.lr, epoch, self.steps_per_epoch, self.total_steps)

    def rate(self, step: int) -> float:
        """The learning rate of a step."""
        return self.rates(step // self.steps_per_epoch)[self.place(step)]

    def is_measured_after(self, steps: int) -> bool:
        """Whether the net is measured when so many steps are done."""
        epochs, rest = divmod(steps, self.steps_per_epoch)
        if steps == self.total_steps or self.is_averaged_after(steps):
            return True
        if rest == 0 and epochs % self.recipe.measure_epochs == 0:
            return True
        every = self.recipe.measure_every
        return (every is not None and steps % every == 0) or any(
            steps % probe.every == 0 for probe in self.recipe.probes
        )

    def is_averaged_after(self, steps: int) -> bool:
        """Whether `average_last` takes the weights that there are then into its mean."""
        last = self.recipe.average_last
        if last is None or (steps % self.steps_per_epoch and steps != self.total_steps):
            return False
        epochs = math.ceil(self.total_steps / self.steps_per_epoch)  # the last one may be cut short
        return steps > (epochs - last) * self.steps_per_epoch


@lru_cache(maxsize=256)
def _rates(
    schedule: Schedule, lr: float, epoch: int, steps_per_epoch: int, total_steps: int
) -> tuple[float, ...]:
    """Remembered, since all runs of a pack may ask for the same, while the device waits."""
    return tuple(
        lr * rate_factor(schedule, step, steps_per_epoch, total_steps) if step < total_steps else 0.0
        for step in range(epoch * steps_per_epoch, (epoch + 1) * steps_per_epoch)
    )


def rate_factor(schedule: Schedule, step: int, steps_per_epoch: int, total_steps: int) -> float:
    """What the learning rate is multiplied by at a step, counted from 0.

    >>> [round(rate_factor(Linear(), step, 10, 4), 2) for step in range(4)]
    [1.0, 0.75, 0.5, 0.25]
    >>> [rate_factor(Step(milestones=[1], factor=0.5), step, 2, 6) for step in range(6)]
    [1.0, 1.0, 0.5, 0.5, 0.5, 0.5]
    """
    per_unit = steps_per_epoch if schedule.unit == "epoch" else 1
    now = step // per_unit
    length = math.ceil(total_steps / per_unit)
    if now < schedule.warmup:
        return (now + 1) / schedule.warmup
    if isinstance(schedule, Constant):
        return 1.0
    if isinstance(schedule, Step):
        return float(schedule.factor ** sum(now >= milestone for milestone in schedule.milestones))
    if isinstance(schedule, InverseSqrt):
        return math.sqrt(schedule.warmup / now)
    progress = (now - schedule.warmup) / max(length - schedule.warmup, 1)
    if isinstance(schedule, Linear):
        return 1 - (1 - schedule.end) * progress
    if isinstance(schedule, Cosine):
        return schedule.end + (1 - schedule.end) * (1 + math.cos(math.pi * progress)) / 2
    raise TypeError(f"no rule for the schedule {schedule!r}")
