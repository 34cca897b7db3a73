"""One case of losses: everybody computes the same from the same numbers; check, weigh and time them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from benchmarks.bench import Contestant
from benchmarks.clocks import Timed, WallClock, interleave, peak_memory
from benchmarks.failures import admit
from benchmarks.losses.check import Outcome, worst
from benchmarks.losses.results import OURS, LossEntry
from benchmarks.results import Timing

AGAIN = "ours, again"


@dataclass(frozen=True)
class LossSession:
    """What all cases of one session share."""

    clock: WallClock
    copy_rate: float
    number: int
    seconds: float

    @property
    def device(self) -> torch.device:
        """Where everything is."""
        return self.clock.device


class GradientRound(ABC):
    """The state of one case while it is measured: `leaves` want gradients, of which some `rows` are looked at."""

    leaves: tuple[Tensor, ...]
    target: Tensor
    rows: tuple[Tensor, ...]
    truth: tuple[Outcome, ...]  # in float64, one for each leaf

    def __init__(self, session: LossSession) -> None:
        self.session = session
        self.tasks: dict[str, Timed] = {}
        self._scratch: Tensor | None = None

    @abstractmethod
    def contestant(self, name: str) -> Contestant:
        """Who takes part; `Absent` where there is no such thing."""

    @abstractmethod
    def complaint(self, name: str, outcomes: tuple[Outcome, ...]) -> str:
        """What is wrong with what somebody computed, in words; empty where nothing is."""

    def entries(
        self, names: tuple[str, ...], beside: dict[str, Timed] | None = None
    ) -> tuple[dict[str, LossEntry], dict[str, Timing]]:
        """What everybody did, and all timings, those of what was timed `beside` them included."""
        found, dead = admit(names, self._enter, LossEntry, self.session.device)
        if dead:
            return found, {}
        everybody = {name: task for name, task in self.tasks.items() if found[name].status != "failed"}
        again = {AGAIN: replace(everybody[OURS])} if OURS in everybody else {}
        timings, broken = interleave(
            self.session.clock, everybody | (beside or {}) | again, self.session.seconds
        )
        for name in everybody:
            changes: dict[str, Any] = {"status": "failed", "reason": broken.get(name)}
            if name in timings:
                changes = {"time": timings[name], "again": timings.get(AGAIN) if name == OURS else None}
            found[name] = replace(found[name], **changes)
        return found, timings

    def _enter(self, name: str) -> LossEntry:
        """Run once (which compiles), compare, and weigh a second run."""
        competitor = self.contestant(name)
        leaves = (self._first_leaf(competitor), *self.leaves[1:])
        self.tasks[name] = task = self._task(competitor, leaves)
        try:
            task.prepare()
            loss = task.run()
            assert isinstance(loss, Tensor)
            outcomes = tuple(
                Outcome(float(loss), _gradient(leaf)[which].double())
                for leaf, which in zip(leaves, self.rows, strict=True)
            )
            wrong, errors = self.complaint(name, outcomes), worst(outcomes, self.truth)
            task.prepare()
            memory = peak_memory(self.session.device, task.run)
        finally:
            for leaf in leaves:
                leaf.grad = None
        status = "disagrees" if wrong else "ok"
        return LossEntry(
            name, status, wrong, memory=memory, loss_error=errors.loss, gradient_error=errors.gradient
        )

    def _first_leaf(self, competitor: Contestant) -> Tensor:
        """What everybody shares, or for who overwrites it a copy."""
        if not competitor.overwrites:
            return self.leaves[0]
        if self._scratch is None:
            self._scratch = self.leaves[0].detach().clone().requires_grad_()
        return self._scratch

    def _task(self, competitor: Contestant, leaves: tuple[Tensor, ...]) -> Timed:
        shared, target, call = self.leaves[0], self.target, competitor.call

        def run() -> Tensor:
            for leaf in leaves:
                leaf.grad = None
            loss: Tensor = call(*leaves, target)
            loss.backward()
            return loss.detach()

        def prepare() -> None:
            for leaf in leaves:
                leaf.grad = None
            if leaves[0] is not shared:
                with torch.no_grad():
                    leaves[0].copy_(shared)

        return Timed(run, prepare)


def _gradient(leaf: Tensor) -> Tensor:
    assert leaf.grad is not None
    return leaf.grad
