"""How fast calibration is measured: all metrics at once by us, the ECE alone by packages people use. Torch is late."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from benchmarks.bench import Bench, BenchGrid
from benchmarks.calibration.grid import grid
from benchmarks.calibration.results import CalibrationResult
from benchmarks.calibration.tables import csv_text, markdown, overview, summary, verdicts
from benchmarks.results import BenchResults, CaseResult
from benchmarks.text import Table

if TYPE_CHECKING:
    import torch
    from matplotlib.figure import Figure


class CalibrationBench(Bench):
    """Time and memory of all calibration metrics in one pass, against torchmetrics and netcal with the ECE alone."""

    name = "calibration"
    kinds = (CalibrationResult,)
    packages = ("torchmetrics", "netcal")
    grid = staticmethod(grid)

    def measurer(
        self, grid: BenchGrid, device: torch.device, session: int
    ) -> Callable[[Any], CaseResult[Any]]:
        from benchmarks.calibration.measure import measurer

        return measurer(grid, device, session)

    def summary(self, item: Any) -> str:
        return summary(item)

    def tables(self, results: BenchResults) -> list[tuple[str, Table]]:
        heading = "from logits to metrics: all of ours in one pass, the ECE alone of the others"
        return [(heading, overview(results))]

    def texts(self, results: BenchResults) -> dict[str, str]:
        return {"results.csv": csv_text(results), "results.md": markdown(results)}

    def drawings(self, results: BenchResults) -> dict[str, Figure]:
        from benchmarks.calibration.drawing import draw_calibration

        return {"calibration": draw_calibration(results)} if results.measured else {}

    def remarks(self, results: BenchResults) -> list[str]:
        return [*verdicts(results), *super().remarks(results)]

    def wrong(self, results: BenchResults) -> str:
        found = [
            f"{name} on {item.case}: {reason}"
            for item in results.everything()
            for name, status, reason in item.problems()
            if status == "disagrees"
        ]
        return (
            f"not everybody computes the same, so the times mean nothing: {'; '.join(found)}" if found else ""
        )
