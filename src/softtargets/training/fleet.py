"""Runs that only share a GPU: each is a pack of its own, on its own stream, and none waits for another."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from softtargets.runs import Checkpoint
from softtargets.training.machinery import Machinery
from softtargets.training.pack import Pack, Slot, Start


class Fleet:
    """Several packs of one run each, to whoever trains them one pack.

    The kernels of one small net leave most of a GPU idle; those of several fill it. Every run computes exactly what it
    would alone, bit for bit.
    """

    def __init__(
        self,
        starts: Sequence[Start],
        device: torch.device,
        machinery: Machinery,
        going_on: Sequence[Pack] = (),
    ) -> None:
        """`going_on` are packs of an earlier fleet, which keep what was recorded for them; they come first."""
        self._packs = [*going_on, *(Pack([start], device, machinery) for start in starts)]
        if len({pack.place for pack in self._packs}) > 1:
            raise ValueError("the runs of a pack must be at the same place of their epochs")

    @property
    def slots(self) -> list[Slot]:
        """All runs."""
        return [pack.slots[0] for pack in self._packs]

    @property
    def place(self) -> int:
        """The step of the epoch that comes next, for all runs that are still trained."""
        return next((pack.place for pack in self._packs if not pack.slots[0].done), 0)

    def advance(self) -> list[int]:
        """Take one step in every run that is not done; returns the runs that are to be measured now."""
        return [run for run, pack in enumerate(self._packs) if not pack.slots[0].done for _ in pack.advance()]

    def measure(self, due: Sequence[int]) -> None:
        """Add a row to the history of these runs; the device measures them side by side."""
        for run in due:
            self._packs[run].look()
        for run in due:
            self._packs[run].read([0])

    def still(self, runs: Sequence[int]) -> list[Pack]:
        """The packs of these runs, to go on in another fleet."""
        return [self._packs[run] for run in runs]

    def save(self, run: int) -> Checkpoint:
        """Everything that starting again from here needs."""
        return self._packs[run].save(0)

    def weights(self, run: int) -> dict[str, Tensor]:
        """The weights that evaluation uses."""
        return self._packs[run].weights(0)
