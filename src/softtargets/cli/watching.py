"""Progress: bars with rate and time left on a terminal, plain lines when piped. Always on standard error."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from softtargets.recipes import Recipe
from softtargets.runs import Run
from softtargets.training import Plan, Watcher

LINE_SECONDS = 10.0


def describe(recipe: Recipe) -> str:
    """A recipe in a few words."""
    regulariser = recipe.regulariser.to_dict()
    strength = next((f" {regulariser[key]:g}" for key in ("alpha", "temperature") if key in regulariser), "")
    return f"{recipe.data.name} {recipe.model.name} {recipe.regulariser.name}{strength} seed {recipe.seed}"


class ConsoleWatcher(Watcher, AbstractContextManager["ConsoleWatcher"]):
    """A watcher to be used in a `with` block."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing to tidy up unless a subclass has something."""


def console_watcher() -> ConsoleWatcher:
    """The watcher that suits standard error."""
    return _Bars() if sys.stderr.isatty() else _Lines()


class _Lines(ConsoleWatcher):
    """One line per finished run, and one every ten seconds for a long one."""

    def __init__(self) -> None:
        self._plan = Plan(0, 0)
        self._done = 0
        self._last = time.monotonic()
        self._total = 0

    def planned(self, plan: Plan) -> None:
        self._plan, self._done = plan, plan.reused
        self._say(f"{plan.runs} runs, {plan.reused} of them already finished")

    def started(self, recipe: Recipe, step: int, total_steps: int) -> None:
        self._total, self._last = total_steps, time.monotonic()
        if step:
            self._say(f"{recipe.id}  resumed at step {step} of {total_steps}")

    def epoch(self, recipe: Recipe, row: dict[str, Any]) -> None:
        if time.monotonic() - self._last >= LINE_SECONDS:
            self._last = time.monotonic()
            self._say(f"{recipe.id}  step {row['step']} of {self._total}  {_metrics(row)}")

    def waiting(self, recipe: Recipe) -> None:
        self._say(f"{recipe.id}  another process is training it; waiting")

    def finished(self, run: Run) -> None:
        self._done += 1
        count = f"[{self._done}/{self._plan.runs}]"
        seconds = f"{run.provenance['seconds']:.1f} s"
        outcome = _metrics(run.summary) if run.status == "finished" else f"FAILED: {run.provenance['reason']}"
        self._say(f"{count} {run.id}  {describe(run.recipe)}  {outcome}  {seconds}")

    @staticmethod
    def _say(line: str) -> None:
        sys.stderr.write(line + "\n")
        sys.stderr.flush()


class _Bars(ConsoleWatcher):
    """Two bars: the whole command, and the run being trained."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=28),
            TextColumn("{task.fields[count]}"),
            TextColumn("{task.fields[rate]}"),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._whole = self._progress.add_task("runs", total=None, count="", rate="")
        self._one = self._progress.add_task("", total=None, count="", rate="", visible=False)
        self._plan = Plan(0, 0)
        self._done = 0
        self._images = 0
        self._begun = time.monotonic()
        self._first_step = self._total = 0

    def __enter__(self) -> _Bars:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def planned(self, plan: Plan) -> None:
        self._plan, self._done = plan, plan.reused
        reused = f" ({plan.reused} reused)" if plan.reused else ""
        self._progress.update(
            self._whole, total=plan.runs, completed=plan.reused, description=f"runs{reused}"
        )
        self._count()

    def started(self, recipe: Recipe, step: int, total_steps: int) -> None:
        self._first_step, self._total = step, total_steps
        self._progress.reset(self._one, total=total_steps, completed=step, visible=True)
        self._progress.update(self._one, description=describe(recipe), count="", rate="")

    def progressed(self, recipe: Recipe, step: int, images: int) -> None:
        self._images += images
        rate = self._images / max(time.monotonic() - self._begun, 1e-9)
        self._progress.update(self._one, completed=step)
        self._progress.update(
            self._whole, completed=self._done + step / max(self._total, 1), rate=f"{rate:,.0f} images/s"
        )

    def epoch(self, recipe: Recipe, row: dict[str, Any]) -> None:
        self._progress.update(self._one, count=_metrics(row))

    def waiting(self, recipe: Recipe) -> None:
        self._progress.update(
            self._one, description=f"{recipe.id}: waiting for another process", visible=True
        )

    def finished(self, run: Run) -> None:
        self._done += 1
        self._progress.update(self._whole, completed=self._done)
        self._count()
        if run.status != "finished":
            self._progress.console.print(f"{run.id} FAILED: {run.provenance['reason']}", markup=False)

    def _count(self) -> None:
        self._progress.update(self._whole, count=f"{self._done} of {self._plan.runs}")


def _metrics(row: dict[str, Any]) -> str:
    shown = [
        ("train_loss", "loss {:.3f}"),
        ("validation_accuracy", "val {:.3f}"),
        ("test_accuracy", "test {:.3f}"),
    ]
    return " ".join(form.format(row[key]) for key, form in shown if key in row)
