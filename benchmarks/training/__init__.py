"""How fast whole trainings are: our engine, one run or many at a time, against a plain eager loop. Torch is late."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.bench import Bench, BenchGrid
from benchmarks.results import BenchResults, CaseResult
from benchmarks.text import Table
from benchmarks.training.grid import grid
from benchmarks.training.results import AccuracyCase, AccuracyResult, TrainingResult
from benchmarks.training.tables import (
    TITLES,
    accuracy_csv,
    accuracy_overview,
    csv_text,
    markdown,
    overview,
    summary,
)

if TYPE_CHECKING:
    import torch
    from matplotlib.figure import Figure


class TrainingBench(Bench):
    """Images per second of whole trainings, one run and many at a time, against a plain eager PyTorch loop."""

    name = "training"
    kinds = (TrainingResult, AccuracyResult)
    titles = TITLES
    grid = staticmethod(grid)

    def check(self, grid: BenchGrid, cases: Sequence[Any]) -> None:
        from benchmarks.training.accuracy import check_data

        for case in cases:
            if isinstance(case, AccuracyCase):
                check_data(case, grid.data_dir)

    def measurer(
        self, grid: BenchGrid, device: torch.device, session: int
    ) -> Callable[[Any], CaseResult[Any]]:
        from benchmarks.training.measure import measurer

        return measurer(grid, device, session)

    def summary(self, item: Any) -> str:
        return summary(item)

    def tables(self, results: BenchResults) -> list[tuple[str, Table]]:
        found = []
        if results.of(TrainingResult):
            heading = "images per second of all runs together, augmentation and evaluation included"
            found.append((heading, overview(results)))
        if results.of(AccuracyResult):
            heading = "test accuracy of the same training, mean and standard deviation over seeds"
            found.append((heading, accuracy_overview(results)))
        return found

    def texts(self, results: BenchResults) -> dict[str, str]:
        accuracy = {"accuracy.csv": accuracy_csv(results)} if results.of(AccuracyResult) else {}
        return {"results.csv": csv_text(results), "results.md": markdown(results), **accuracy}

    def drawings(self, results: BenchResults) -> dict[str, Figure]:
        from benchmarks.training.drawing import draw_training

        return {"training": draw_training(results)} if results.measured else {}
