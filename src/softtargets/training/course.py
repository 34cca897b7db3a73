"""When a training does what: a pure function of its recipe and the steps of its epochs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from softtargets.recipes import Recipe, Schedule
from softtargets.training.schedules import rate_factor
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

    def rates(self, epoch: int) -> list[float]:
        """The learning rate of every step of an epoch (counted from 0); beyond the last step nothing moves."""
        recipe = self.recipe
        return list(
            _rates(recipe.schedule, recipe.optimiser.lr, epoch, self.steps_per_epoch, self.total_steps)
        )

    def rate(self, step: int) -> float:
        """The learning rate of a step."""
        if step >= self.total_steps:
            return 0.0
        factor = rate_factor(self.recipe.schedule, step, self.steps_per_epoch, self.total_steps)
        return self.recipe.optimiser.lr * factor

    def is_measured_after(self, steps: int) -> bool:
        """Whether the net is measured when so many steps are done."""
        if steps % self.steps_per_epoch == 0 or steps == self.total_steps:
            return True
        every = self.recipe.measure_every
        return (every is not None and steps % every == 0) or any(
            steps % probe.every == 0 for probe in self.recipe.probes
        )


@lru_cache(maxsize=256)
def _rates(
    schedule: Schedule, lr: float, epoch: int, steps_per_epoch: int, total_steps: int
) -> tuple[float, ...]:
    """Remembered, since all runs of a pack may ask for the same, while the device waits."""
    first = epoch * steps_per_epoch
    count = max(0, min(steps_per_epoch, total_steps - first))
    steps = range(first, first + count)
    moving = (lr * rate_factor(schedule, step, steps_per_epoch, total_steps) for step in steps)
    return (*moving, *(0.0,) * (steps_per_epoch - count))
