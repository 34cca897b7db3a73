"""Metrics for TensorBoard: one directory per run, named by its id."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from softtargets.exceptions import SofttargetsError
from softtargets.recipes import Recipe
from softtargets.runs import Run
from softtargets.training.events import Watcher

_FLUSH_SECONDS = 10
_QUEUE = 1000  # numbers that wait for the thread which writes them; the training waits only if there are more


class TensorBoard(Watcher, AbstractContextManager["TensorBoard"]):
    """Writes every row of metrics as scalars, by the names they have in ``metrics.jsonl``, and the recipe as text.

    A run's file is open from its first row until it ends. Rows that were not heard of, because they were measured
    before a run was resumed or by another process, are written when it ends; nothing is shown twice.

    A directory that cannot be made is refused at the start. What cannot be written later, on a full disk say, is told
    once in a warning, and the training goes on without: nothing that it needs is here.
    """

    def __init__(self, directory: Path | str) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError as error:
            raise SofttargetsError(
                f"logging for TensorBoard needs tensorboard, which cannot be imported ({error}); "
                "pip install tensorboard"
            ) from None
        self._writer = SummaryWriter
        self._directory = Path(directory)
        self._open: dict[str, Any] = {}
        self._rows: dict[str, int] = {}
        self._stopped = False
        try:  # found out now, not after the first epoch
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SofttargetsError(
                f"{self._cannot(error)}; choose another directory, or train without --tensorboard"
            ) from None

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all files; a run that goes on opens another one."""
        for run in list(self._open):
            with self._trying():
                self._close(run)

    def reused(self, run: Run) -> None:
        """All its rows, unless they are there already."""
        with self._trying():
            if not self._stopped and not self._has(run.id):
                self._write_anew(run)

    def epoch(self, recipe: Recipe, row: dict[str, Any]) -> None:
        """One row."""
        if self._stopped:
            return
        with self._trying():
            if recipe.id not in self._open:
                self._begin(recipe, row["step"])
            self._write(recipe.id, row)

    def finished(self, run: Run) -> None:
        """What is missing; then the file is closed."""
        with self._trying():
            written = self._rows.get(run.id, 0)
            self._close(run.id)
            if not self._stopped and written < len(run.history()):
                self._write_anew(run)

    def _write_anew(self, run: Run) -> None:
        self._begin(run.recipe, 0)
        for row in run.history():
            self._write(run.id, row)
        self._close(run.id)

    def _begin(self, recipe: Recipe, step: int) -> None:
        known = self._has(recipe.id)
        # From `purge_step` on, TensorBoard hides the numbers that earlier files of the run have.
        self._open[recipe.id] = writer = self._writer(
            str(self._directory / recipe.id), purge_step=step, max_queue=_QUEUE, flush_secs=_FLUSH_SECONDS
        )
        self._rows[recipe.id] = 0
        if not known:
            described = json.dumps(recipe.to_dict(), indent=1, ensure_ascii=False)
            # Indented, it is shown as it is written; TensorBoard would read anything else as Markdown.
            writer.add_text("recipe", "\n".join("    " + line for line in described.splitlines()), 0)

    def _has(self, run: str) -> bool:
        return any((self._directory / run).glob("events.*"))

    def _write(self, run: str, row: dict[str, Any]) -> None:
        for name, value in row.items():
            if name != "step" and isinstance(value, (int, float)):  # an instrument may have found nothing
                self._open[run].add_scalar(name, value, row["step"])
        self._rows[run] += 1

    def _close(self, run: str) -> None:
        self._rows.pop(run, None)
        if writer := self._open.pop(run, None):
            writer.close()

    @contextmanager
    def _trying(self) -> Iterator[None]:
        """What fails is said once; from then on nothing more is begun."""
        try:
            yield
        except OSError as error:
            if not self._stopped:
                warnings.warn(
                    f"{self._cannot(error)}; the training continues without logging for TensorBoard",
                    stacklevel=4,
                )
            self._stopped = True

    def _cannot(self, error: OSError) -> str:
        return f"cannot write for TensorBoard in {self._directory}: {error.strerror or error}"
