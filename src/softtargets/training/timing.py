"""How long a step of each of several trainings takes: each alone on the device, all in turns in one process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from softtargets.recipes import Recipe
from softtargets.training.machinery import Machinery
from softtargets.training.pack import Fleet, Pack, Start
from softtargets.training.precision import float32_products

if TYPE_CHECKING:
    from softtargets.training.scheduling import Resources

# Epochs of a training that is only timed: it must not come to its end meanwhile.
_LONG = 1_000_000
# Steps that are not timed: kernels are compiled in the first, and steps recorded.
_UNTIMED = 3
_FEWEST, _MOST = 2, 500


class TimedTraining:
    """One run alone, begun anew: its steps as the engine takes them, without evaluation and without files."""

    def __init__(self, recipe: Recipe, resources: Resources) -> None:
        self._precision = recipe.precision
        self._device = resources.device
        # Measured after every epoch, or what lies between two of them would be timed.
        recipe = recipe.replace({"epochs": _LONG, "steps": None, "measure_epochs": 1})
        with float32_products(self._precision):
            start = Start(recipe, resources.noisy(recipe), resources.teacher(recipe))
            self._pack = _pack(start, resources.machinery(recipe))
        self.seconds(_UNTIMED)

    def seconds(self, steps: int) -> float:
        """Of so many further steps; what happens between epochs is not counted."""
        taken = 0.0
        with float32_products(self._precision):
            begun = self._now()
            for _ in range(steps):
                if due := self._pack.advance():
                    taken += self._now() - begun
                    self._pack.measure(due)
                    begun = self._now()
            taken += self._now() - begun
        if (failure := self._pack.slots[0].failure) is not None:
            # A run that has failed is no longer trained, which would look like speed.
            raise ValueError(f"the training that was timed failed: {failure}")
        return taken

    def _now(self) -> float:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        return time.perf_counter()


def _pack(start: Start, machinery: Machinery) -> Pack | Fleet:
    return Pack([start], machinery) if machinery.stacked else Fleet([start], machinery)


def seconds_in_turns(
    trainings: Sequence[TimedTraining], turns: int = 5, seconds: float = 0.1
) -> list[list[float]]:
    """For each training the seconds of a step in each turn; a turn of a training takes about so many seconds.

    All take as many steps as the first, and the order is turned around from turn to turn: what makes the device slower
    for a while does so to all of them.
    """
    step = trainings[0].seconds(_UNTIMED) / _UNTIMED
    steps = min(max(round(seconds / step), _FEWEST), _MOST)
    found: list[list[float]] = [[] for _ in trainings]
    for turn in range(turns):
        places = range(len(trainings)) if turn % 2 == 0 else reversed(range(len(trainings)))
        for place in places:
            found[place].append(trainings[place].seconds(steps) / steps)
    return found
