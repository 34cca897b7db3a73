"""Progress of trainings, always on standard error: a live view on a terminal, plain lines when piped."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import typer

from softtargets.cli.pace import Clock, Pace
from softtargets.recipes import Recipe
from softtargets.runs import Run, now
from softtargets.training import Plan, Watcher, Watchers

LINE_SECONDS = 10.0


@contextmanager
def watching(tensorboard: Path | None = None) -> Iterator[Watcher]:
    """What a command that trains shows, and logs for TensorBoard if it was asked to."""
    with ExitStack() as stack:
        watchers: list[Watcher] = []
        if tensorboard is not None:
            from softtargets.training import TensorBoard

            watchers.append(stack.enter_context(TensorBoard(tensorboard)))
        watchers.append(stack.enter_context(console_watcher()))
        yield Watchers(*watchers)


def console_watcher() -> ConsoleWatcher:
    """The watcher that suits standard error."""
    if sys.stderr.isatty():
        from rich.console import Console

        from softtargets.cli.live import LiveView

        console = Console(stderr=True)
        if console.is_terminal and not console.is_dumb_terminal:
            return LiveView(console)
    return PlainLines()


def describe(recipe: Recipe) -> str:
    """A recipe in a few words."""
    regulariser = recipe.regulariser.to_dict()
    # LABO's alpha may be None: it finds its own.
    given = (regulariser.get(key) for key in ("alpha", "temperature"))
    strength = next((f" {number:g}" for number in given if number is not None), "")
    return f"{recipe.data.name} {recipe.model.name} {recipe.regulariser.name}{strength} seed {recipe.seed}"


def duration(seconds: float | None) -> str:
    """Hours, minutes and seconds.

    >>> duration(3725.9), duration(None)
    ('1:02:05', '?')
    """
    if seconds is None:
        return "?"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"


def rounded(value: float | None) -> str:
    """A large number without its fraction.

    >>> rounded(1234567.8), rounded(None)
    ('1,234,568', '?')
    """
    return "?" if value is None else f"{value:,.0f}"


def overview(pace: Pace) -> str:
    """How the whole command is getting on."""
    elapsed = f"{duration(pace.elapsed())} elapsed"
    if not pace.runs:
        return f"preparing, {elapsed}"
    parts = [f"{pace.done} of {_runs(pace.runs)} done"]
    counts = {"reused": pace.reused, "failed": pace.failed}
    counts |= {"under way": len(pace.laps), "resumed": pace.resumed}
    parts += [f"{count} {what}" for what, count in counts.items() if count]
    if pace.done == pace.runs:
        return ", ".join([*parts, elapsed])
    speed, left = rounded(pace.units_per_second()), duration(pace.seconds_left())
    return ", ".join([*parts, f"{speed} {pace.unit}/s", elapsed, f"{left} left"])


def _runs(count: int) -> str:
    return f"{count:,} run{'' if count == 1 else 's'}"


def waits(pace: Pace) -> str:
    """Why nothing happens here: other processes, helpers of this command or other commands, train what is left."""
    left = max(1, pace.runs - pace.done - len(pace.laps))
    return f"other processes are training the {'last run' if left == 1 else f'last {left} runs'}; waiting for them"


class ConsoleWatcher(Watcher, AbstractContextManager["ConsoleWatcher"]):
    """Keeps account of what happens, and forgets runs that have ended; subclasses show it in a `with` block.

    Every event only writes down numbers. The lock is held for that, and by whoever reads them in another thread.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self.pace = Pace(clock)
        self.waits = False
        self.lock = Lock()
        self._begun = now()

    def __exit__(self, *error: object) -> None:
        """Nothing to tidy up unless a subclass has something."""

    def planned(self, plan: Plan) -> None:
        """Counts of runs."""
        with self.lock:
            self.pace.planned(plan.runs, plan.reused, plan.units)

    def started(self, recipe: Recipe, step: int, total_steps: int) -> None:
        """One more under way."""
        with self.lock:
            lap = self.pace.started(recipe.id, step, total_steps, recipe.batch, recipe.data.unit)
            lap.id, lap.name = recipe.id, describe(recipe)
            self.waits = False

    def progressed(self, recipe: Recipe, step: int, units: int) -> None:
        """How far it is."""
        with self.lock:
            self.pace.progressed(recipe.id, step, units)

    def epoch(self, recipe: Recipe, row: dict[str, Any]) -> None:
        """What was measured last."""
        with self.lock:
            if recipe.id in self.pace.laps:
                self.pace.laps[recipe.id].row = row

    def waiting(self, recipe: Recipe) -> None:
        """Why nothing happens."""
        with self.lock:
            self.waits = True

    def finished(self, run: Run) -> None:
        """One less under way."""
        # The work of a run that another process began before us says nothing about the speed since then.
        began_after_us = run.provenance.get("started", "") >= self._begun
        with self.lock:
            self.waits = False
            self.pace.finished(run.id, run.status != "finished", run.units, began_after_us)


class PlainLines(ConsoleWatcher):
    """One line per finished run, and every ten seconds one for the whole command."""

    def __init__(self, clock: Clock = time.monotonic) -> None:
        super().__init__(clock)
        self._clock = clock
        self._last = clock()
        self._said_waiting = False

    def planned(self, plan: Plan) -> None:
        """How much there is to do."""
        super().planned(plan)
        typer.echo(f"{_runs(plan.runs)}, {plan.reused} already finished", err=True)

    def started(self, recipe: Recipe, step: int, total_steps: int) -> None:
        """Said only of a run that goes on."""
        super().started(recipe, step, total_steps)
        self._said_waiting = False
        if step:
            typer.echo(f"{recipe.id}  resumed at step {step} of {total_steps}", err=True)

    def progressed(self, recipe: Recipe, step: int, units: int) -> None:
        """Every ten seconds, how the whole is getting on."""
        super().progressed(recipe, step, units)
        if self._clock() - self._last < LINE_SECONDS:
            return
        self._last = self._clock()
        line = overview(self.pace)
        if len(self.pace.laps) == 1:
            (only,) = self.pace.laps.values()
            line += f"  (step {only.step} of {only.total}  {metrics(only.row)}".rstrip() + ")"
        typer.echo(line, err=True)

    def noted(self, sentence: str) -> None:
        """As it is."""
        typer.echo(sentence, err=True)

    def waiting(self, recipe: Recipe) -> None:
        """Said once, and again only if something was trained here in between."""
        if not self._said_waiting:
            typer.echo(waits(self.pace), err=True)
        self._said_waiting = True

    def finished(self, run: Run) -> None:
        """What a run has come to."""
        super().finished(run)
        count = f"[{self.pace.done}/{self.pace.runs}]"
        seconds = f"{run.provenance['seconds']:.1f} s"
        outcome = metrics(run.summary) if run.status == "finished" else failure(run)
        typer.echo(f"{count} {run.id}  {describe(run.recipe)}  {outcome}  {seconds}", err=True)


def failure(run: Run) -> str:
    """Why a run failed."""
    return f"FAILED: {run.provenance['reason']}"


def metrics(row: dict[str, Any]) -> str:
    """A row of metrics in a few words."""
    shown = {"train_loss": "loss", "validation_accuracy": "val", "test_accuracy": "test"}
    return " ".join(f"{word} {row[key]:.3f}" for key, word in shown.items() if key in row)
