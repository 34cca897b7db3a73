"""The linear section: a projection to the classes and a loss, fused, against materialising the logits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from softtargets.bench.failing import Absent, device_error, explain, release
from softtargets.bench.losses.checking import TOLERANCE, Errors, Outcome, compare, sampled
from softtargets.bench.losses.contestants import linear_contestant
from softtargets.bench.losses.grid import DTYPES
from softtargets.bench.losses.measuring import AGAIN, Bench
from softtargets.bench.losses.results import Entry, LinearCase, LinearResult
from softtargets.bench.losses.rivals import SUBJECTS
from softtargets.bench.timing import Task, interleave, peak_memory

PRODUCT = "the plain product"
# Values that fit into one float64 block of logits.
BLOCK = 1 << 26


def measure_linear(case: LinearCase, names: tuple[str, ...], bench: Bench) -> LinearResult:
    """Measure one case. Whatever breaks is written down with its reason; nobody is dropped."""
    logits_bytes = case.rows * case.classes * getattr(torch, DTYPES[case.dtype]).itemsize
    floor = 0.0
    try:
        floor, entries = _Round(case, bench).measure(names)
    except Exception as error:
        entries = [Entry(name, "failed", explain(error)) for name in names]
    if "compile" in names:
        torch.compiler.reset()
    release(bench.device)
    return LinearResult(case, bench.session, floor, logits_bytes, tuple(entries))


class _Round:
    """The state of one case while it is measured."""

    def __init__(self, case: LinearCase, bench: Bench) -> None:
        self._case, self._bench, self._subject = case, bench, SUBJECTS[case.loss]
        generator = torch.Generator(bench.device).manual_seed(case.rows * 1_000_003 + case.classes)
        dtype = getattr(torch, DTYPES[case.dtype])

        def normal(*shape: int) -> Tensor:
            return torch.randn(*shape, device=bench.device, dtype=dtype, generator=generator)

        # Logits as wide as in the other section.
        self._hidden = normal(case.rows, case.hidden).requires_grad_()
        self._weight = normal(case.classes, case.hidden).mul_(2 / case.hidden**0.5).requires_grad_()
        self._target = torch.randint(case.classes, (case.rows,), device=bench.device, generator=generator)
        self._rows = sampled(case.rows, bench.device)
        self._columns = sampled(case.classes, bench.device)
        self._truth = self._reference()

    def measure(self, names: tuple[str, ...]) -> tuple[float, list[Entry]]:
        """The floor in seconds, and what everybody did."""
        found: dict[str, Entry] = {}
        tasks: dict[str, Task] = {}
        dead = ""
        for name in names:
            if dead:
                found[name] = Entry(name, "failed", f"not run: the device had failed before ({dead})")
                continue
            try:
                task = self._task(linear_contestant(name, self._subject, self._bench.device).call)
                found[name] = self._check(name, task)
                tasks[name] = task
            except Exception as error:
                status = "absent" if isinstance(error, Absent) else "failed"
                found[name] = Entry(name, status, explain(error))
            self._forget()
            if found[name].status == "failed":
                release(self._bench.device)
            dead = device_error(self._bench.device)
        return (0.0, list(found.values())) if dead else self._time(found, tasks)

    def _task(self, call: Callable[..., Tensor]) -> Task:
        hidden, weight, target = self._hidden, self._weight, self._target

        def run() -> Tensor:
            loss = call(hidden, weight, target)
            loss.backward()
            return loss.detach()

        return Task(run, self._forget)

    def _forget(self) -> None:
        self._hidden.grad = self._weight.grad = None

    def _check(self, name: str, task: Task) -> Entry:
        """Run once (which compiles), compare, and weigh two more runs: without and with room for gradients."""
        task.prepare()
        loss = task.run()
        assert isinstance(loss, Tensor)
        assert self._hidden.grad is not None
        assert self._weight.grad is not None
        parts = (self._hidden.grad[self._rows], self._weight.grad[self._columns])
        errors = [
            compare(Outcome(float(loss), part.double()), true)
            for part, true in zip(parts, self._truth, strict=True)
        ]
        worst = Errors(max(error.loss for error in errors), max(error.gradient for error in errors))
        del parts
        # Rounding the logits to half precision is allowed here, and those who materialise them do it.
        wrong = worst.beyond(2 * TOLERANCE[self._case.dtype], "float64")
        task.prepare()
        memory = peak_memory(self._bench.device, task.run)
        # The gradients are there at the end whoever computes them; what counts is how much more it took.
        gradients = self._hidden.nbytes + self._weight.nbytes
        lean = None if memory is None else memory - gradients
        return Entry(
            name,
            "disagrees" if wrong else "ok",
            wrong,
            memory=memory,
            lean=lean,
            loss_error=worst.loss,
            gradient_error=worst.gradient,
        )

    def _time(self, found: dict[str, Entry], tasks: dict[str, Task]) -> tuple[float, list[Entry]]:
        def product() -> None:
            with torch.no_grad():
                self._hidden @ self._weight.T

        everybody = tasks | {PRODUCT: Task(product)}
        if "ours" in tasks:
            everybody[AGAIN] = Task(tasks["ours"].run, tasks["ours"].prepare)
        timings, broken = interleave(self._bench.timer, everybody, self._bench.seconds)
        for name in tasks:
            if name in broken:
                found[name] = replace(found[name], status="failed", reason=broken[name])
            else:
                again = timings.get(AGAIN) if name == "ours" else None
                found[name] = replace(found[name], time=timings[name], again=again)
        # Logits, gradient of the hidden states, gradient of the weight: nobody can do with fewer products.
        floor = 3 * timings[PRODUCT].median if PRODUCT in timings else 0.0
        return floor, list(found.values())

    def _reference(self) -> tuple[Outcome, Outcome]:
        """In float64 and in blocks: the loss, and the gradients of a few hidden states and of a few classes."""
        case = self._case
        weight = self._weight.detach().double()
        total = 0.0
        of_hidden = torch.zeros(case.rows, case.hidden, dtype=torch.float64, device=weight.device)
        of_classes = torch.zeros(len(self._columns), case.hidden, dtype=torch.float64, device=weight.device)
        step = max(1, BLOCK // case.classes)
        for start in range(0, case.rows, step):
            part = slice(start, start + step)
            hidden = self._hidden[part].detach().double()
            logits = (hidden @ weight.T).requires_grad_()
            loss = self._subject.textbook(logits, self._target[part]) * (len(hidden) / case.rows)
            loss.backward()
            assert logits.grad is not None
            total += float(loss.detach())
            of_hidden[part] = logits.grad @ weight
            of_classes += logits.grad[:, self._columns].T @ hidden
        return Outcome(total, of_hidden[self._rows]), Outcome(total, of_classes)
