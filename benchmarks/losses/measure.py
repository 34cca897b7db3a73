"""How losses are measured: the session, and one case of a loss of given logits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from benchmarks.bench import BenchGrid, Contestant
from benchmarks.clocks import back_to_back, clock_for, copy_rate
from benchmarks.failures import Absent, release, verdict
from benchmarks.losses.check import TOLERANCE, Outcome, reference, sampled, worst
from benchmarks.losses.contestants import contestant
from benchmarks.losses.grid import DTYPES
from benchmarks.losses.linear import measure_linear
from benchmarks.losses.results import OURS, LossCase, LossEntry, LossResult
from benchmarks.losses.rounds import GradientRound, LossSession
from benchmarks.losses.textbook import COMPARED, ComparedLoss
from benchmarks.results import CaseResult

# Logits of a net in training: wide enough that the softmax is neither flat nor a point.
LOGIT_SCALE = 2.0
LARGEST_TABLE = 1 << 33


def measurer(grid: BenchGrid, device: torch.device, number: int) -> Callable[[Any], CaseResult[Any]]:
    """What measures one case after the other."""
    clock = clock_for(device)
    session = LossSession(clock, copy_rate(clock, grid.seconds), number, grid.seconds)

    def measure(case: Any) -> CaseResult[Any]:
        names = grid.names(case)
        found = (measure_loss if isinstance(case, LossCase) else measure_linear)(case, names, session)
        if "compile" in names:
            torch.compiler.reset()
        release(device)
        return found

    return measure


@dataclass(frozen=True)
class Inputs:
    """The logits, a leaf that wants a gradient; labels; a teacher's logits or a table where the loss needs it."""

    logits: Tensor
    target: Tensor
    given: Tensor | None

    @classmethod
    def draw(cls, case: LossCase, compared: ComparedLoss, device: torch.device) -> Inputs:
        """Random numbers, the same for the same case."""
        generator = torch.Generator(device).manual_seed(case.rows * 1_000_003 + case.classes)
        dtype = getattr(torch, DTYPES[case.dtype])

        def normal(*shape: int, precision: torch.dtype) -> Tensor:
            return torch.randn(*shape, device=device, dtype=precision, generator=generator)

        given = None
        if compared.given == "teacher":
            given = normal(case.rows, case.classes, precision=dtype).mul_(LOGIT_SCALE)
        elif compared.given:
            shape = (case.classes,) * (2 if compared.given == "matrix" else 1)
            if 4 * case.classes ** len(shape) > LARGEST_TABLE:
                size = 4 * case.classes ** len(shape) / 1e9
                raise Absent(f"a matrix of {case.classes} x {case.classes} would take {size:.0f} GB")
            given = normal(*shape, precision=torch.float32).softmax(-1)
        logits = normal(case.rows, case.classes, precision=dtype).mul_(LOGIT_SCALE).requires_grad_()
        target = torch.randint(case.classes, (case.rows,), device=device, generator=generator)
        return cls(logits, target, given)


class LossRound(GradientRound):
    """A loss of given logits."""

    def __init__(self, case: LossCase, compared: ComparedLoss, session: LossSession) -> None:
        super().__init__(session)
        self._case, self._compared = case, compared
        inputs = Inputs.draw(case, compared, session.device)
        self.leaves, self.target, self._given = (inputs.logits,), inputs.target, inputs.given
        self.rows = (sampled(case.rows, session.device),)
        per_row = compared.given == "teacher"
        self.truth = (reference(compared.textbook, inputs.logits, inputs.target, inputs.given, per_row),)
        self._ours: tuple[Outcome, ...] | None = None

    def contestant(self, name: str) -> Contestant:
        """On the same device."""
        return contestant(name, self._compared, self._given, self.session.device)

    def complaint(self, name: str, outcomes: tuple[Outcome, ...]) -> str:
        """Ours is compared with float64, everybody else with ours."""
        finfo = torch.finfo(self.leaves[0].dtype)
        wanted, whose = (self.truth, "float64") if self._ours is None else (self._ours, "ours")
        apart = worst(outcomes, wanted, finfo.smallest_normal * finfo.eps)
        if name == OURS:
            self._ours = outcomes
        return apart.beyond(TOLERANCE[self._case.dtype], whose)

    def measured(self, names: tuple[str, ...]) -> tuple[LossEntry, ...]:
        """With the time per call, which is measured apart."""
        found, _ = self.entries(names)
        for name, entry in found.items():
            if entry.time is not None:
                try:
                    call = back_to_back(self.session.clock, self.tasks[name], self.session.seconds / 3)
                    found[name] = replace(entry, call=call)
                except Exception as error:
                    status, reason = verdict(error)
                    found[name] = replace(entry, status=status, reason=reason)
        return tuple(found.values())


def measure_loss(case: LossCase, names: tuple[str, ...], session: LossSession) -> LossResult:
    """Measure one case. Whatever breaks is written down with its reason; nobody is dropped."""
    compared = COMPARED[case.loss]
    itemsize = getattr(torch, DTYPES[case.dtype]).itemsize
    logits_bytes = case.rows * case.classes * itemsize
    # What any implementation must read besides the logits.
    besides = {
        "": 0,
        "teacher": logits_bytes,
        "prior": 4 * case.classes,
        "matrix": 4 * case.classes * min(case.rows, case.classes),
    }[compared.given]
    try:
        entries = LossRound(case, compared, session).measured(names)
    except Exception as error:
        entries = tuple(LossEntry(name, *verdict(error)) for name in names)
    return LossResult(
        case=case,
        session=session.number,
        entries=entries,
        copy_rate=session.copy_rate,
        floor=(2 * logits_bytes + besides) / session.copy_rate,
        logits_bytes=logits_bytes,
    )
