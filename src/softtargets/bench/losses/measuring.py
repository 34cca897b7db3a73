"""One case: everybody computes the same loss of the same logits; check, weigh and time them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from softtargets.bench.failing import Absent, device_error, explain, release
from softtargets.bench.losses.checking import TOLERANCE, Outcome, compare, reference, sampled
from softtargets.bench.losses.contestants import Contestant, contestant
from softtargets.bench.losses.grid import DTYPES
from softtargets.bench.losses.results import Case, CaseResult, Entry
from softtargets.bench.losses.rivals import SUBJECTS, Subject
from softtargets.bench.timing import Task, Timer, back_to_back, interleave, peak_memory

# Logits of a net in training: wide enough that the softmax is neither flat nor a point.
LOGIT_SCALE = 2.0
LARGEST_TABLE = 1 << 33
AGAIN = "ours, again"


@dataclass(frozen=True)
class Bench:
    """What all cases of one session share."""

    device: torch.device
    timer: Timer
    copy_rate: float
    session: int
    seconds: float


@dataclass(frozen=True)
class Inputs:
    """The logits, a leaf that wants a gradient; labels; a teacher's logits or a table where the loss needs it."""

    logits: Tensor
    target: Tensor
    given: Tensor | None

    @classmethod
    def draw(cls, case: Case, subject: Subject, device: torch.device) -> Inputs:
        """Random numbers, the same for the same case."""
        generator = torch.Generator(device).manual_seed(case.rows * 1_000_003 + case.classes)
        dtype = getattr(torch, DTYPES[case.dtype])

        def normal(*shape: int, precision: torch.dtype) -> Tensor:
            return torch.randn(*shape, device=device, dtype=precision, generator=generator)

        given = None
        if subject.given == "teacher":
            given = normal(case.rows, case.classes, precision=dtype).mul_(LOGIT_SCALE)
        elif subject.given:
            shape = (case.classes,) * (2 if subject.given == "matrix" else 1)
            if 4 * case.classes ** len(shape) > LARGEST_TABLE:
                size = 4 * case.classes ** len(shape) / 1e9
                raise Absent(f"a matrix of {case.classes} x {case.classes} would take {size:.0f} GB")
            given = normal(*shape, precision=torch.float32).softmax(-1)
        logits = normal(case.rows, case.classes, precision=dtype).mul_(LOGIT_SCALE).requires_grad_()
        target = torch.randint(case.classes, (case.rows,), device=device, generator=generator)
        return cls(logits, target, given)


def measure(case: Case, names: tuple[str, ...], bench: Bench) -> CaseResult:
    """Measure one case. Whatever breaks is written down with its reason; nobody is dropped."""
    subject = SUBJECTS[case.loss]
    itemsize = getattr(torch, DTYPES[case.dtype]).itemsize
    logits_bytes = case.rows * case.classes * itemsize
    floor = (2 * logits_bytes + _given_bytes(case, subject, itemsize)) / bench.copy_rate
    try:
        entries = _Round(case, subject, bench).entries(names)
    except Exception as error:
        status = "absent" if isinstance(error, Absent) else "failed"
        entries = [Entry(name, status, explain(error)) for name in names]
    if "compile" in names:
        torch.compiler.reset()
    release(bench.device)
    return CaseResult(case, bench.session, bench.copy_rate, floor, logits_bytes, tuple(entries))


def _given_bytes(case: Case, subject: Subject, itemsize: int) -> int:
    """What any implementation must read besides the logits."""
    return {
        "": 0,
        "teacher": case.rows * case.classes * itemsize,
        "prior": 4 * case.classes,
        "matrix": 4 * case.classes * min(case.rows, case.classes),
    }[subject.given]


class _Round:
    """The state of one case while it is measured."""

    def __init__(self, case: Case, subject: Subject, bench: Bench) -> None:
        self._case, self._subject, self._bench = case, subject, bench
        self._inputs = Inputs.draw(case, subject, bench.device)
        given, per_row = self._inputs.given, subject.given == "teacher"
        self._truth = reference(subject.textbook, self._inputs.logits, self._inputs.target, given, per_row)
        self._rows = sampled(case.rows, bench.device)
        self._ours: Outcome | None = None
        self._scratch: Tensor | None = None

    def entries(self, names: tuple[str, ...]) -> list[Entry]:
        found: dict[str, Entry] = {}
        tasks: dict[str, Task] = {}
        dead = ""
        for name in names:
            if dead:
                found[name] = Entry(name, "failed", f"not run: the device had failed before ({dead})")
                continue
            try:
                competitor = contestant(name, self._subject, self._inputs.given, self._bench.device)
                logits = self._logits_for(competitor)
                task = self._task(competitor, logits)
                found[name] = self._check(name, task, logits)
                tasks[name] = task
            except Exception as error:
                status = "absent" if isinstance(error, Absent) else "failed"
                found[name] = Entry(name, status, explain(error))
            if found[name].status == "failed":
                release(self._bench.device)
            dead = device_error(self._bench.device)
        return list(found.values()) if dead else self._time(found, tasks)

    def _logits_for(self, competitor: Contestant) -> Tensor:
        """The logits everybody shares, or for who overwrites them a copy."""
        if not competitor.overwrites:
            return self._inputs.logits
        if self._scratch is None:
            self._scratch = self._inputs.logits.detach().clone().requires_grad_()
        return self._scratch

    def _task(self, competitor: Contestant, logits: Tensor) -> Task:
        shared, target, call = self._inputs.logits, self._inputs.target, competitor.call

        def run() -> Tensor:
            logits.grad = None
            loss = call(logits, target)
            loss.backward()
            return loss.detach()

        def prepare() -> None:
            logits.grad = None
            if logits is not shared:
                with torch.no_grad():
                    logits.copy_(shared)

        return Task(run, prepare)

    def _check(self, name: str, task: Task, logits: Tensor) -> Entry:
        """Run once (which compiles), compare, and weigh a second run."""
        task.prepare()
        loss = task.run()
        assert isinstance(loss, Tensor)
        assert logits.grad is not None
        outcome = Outcome(float(loss), logits.grad[self._rows].double())
        finfo = torch.finfo(logits.dtype)
        wanted, whose = (self._truth, "float64") if self._ours is None else (self._ours, "ours")
        apart = compare(outcome, wanted, finfo.smallest_normal * finfo.eps)
        wrong = apart.beyond(TOLERANCE[self._case.dtype], whose)
        if name == "ours":
            self._ours = outcome
        errors = compare(outcome, self._truth)
        task.prepare()
        memory = peak_memory(self._bench.device, task.run)
        logits.grad = None
        return Entry(
            name,
            "disagrees" if wrong else "ok",
            wrong,
            memory=memory,
            loss_error=errors.loss,
            gradient_error=errors.gradient,
        )

    def _time(self, found: dict[str, Entry], tasks: dict[str, Task]) -> list[Entry]:
        everybody = dict(tasks)
        if "ours" in tasks:
            everybody[AGAIN] = Task(tasks["ours"].run, tasks["ours"].prepare)
        timings, broken = interleave(self._bench.timer, everybody, self._bench.seconds)
        for name, task in tasks.items():
            if name in broken:
                found[name] = replace(found[name], status="failed", reason=broken[name])
                continue
            found[name] = replace(
                found[name], time=timings[name], again=timings.get(AGAIN) if name == "ours" else None
            )
            try:
                call = back_to_back(self._bench.timer, task, self._bench.seconds / 3)
                found[name] = replace(found[name], call=call)
            except Exception as error:
                found[name] = replace(found[name], status="failed", reason=explain(error))
        return list(found.values())
