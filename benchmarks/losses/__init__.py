"""How fast the losses are, forward + backward, against torch eager, torch.compile, Liger and others. Torch is late."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from benchmarks.bench import Bench, BenchGrid
from benchmarks.losses.grid import grid
from benchmarks.losses.results import LinearResult, LossResult
from benchmarks.losses.tables import TITLES, csv_text, linear_overview, markdown, overview, summary
from benchmarks.results import BenchResults, CaseResult
from benchmarks.text import Table

if TYPE_CHECKING:
    import torch
    from matplotlib.figure import Figure


class LossBench(Bench):
    """Time, memory and error of each loss, forward + backward, against torch eager, torch.compile and Liger."""

    name = "losses"
    kinds = (LossResult, LinearResult)
    packages = ("cut-cross-entropy",)
    prelude = "measuring how fast memory is"
    titles = TITLES
    grid = staticmethod(grid)

    def measurer(
        self, grid: BenchGrid, device: torch.device, session: int
    ) -> Callable[[Any], CaseResult[Any]]:
        from benchmarks.losses.measure import measurer

        return measurer(grid, device, session)

    def summary(self, item: Any) -> str:
        return summary(item)

    def tables(self, results: BenchResults) -> list[tuple[str, Table]]:
        found = []
        if results.of(LossResult):
            heading = "multiples of the floor, or time per call where launches dominate; memory in units of the logits"
            found.append((heading, overview(results)))
        if results.of(LinearResult):
            heading = "projection and loss, as multiples of the three matrix products"
            found.append((heading, linear_overview(results)))
        return found

    def texts(self, results: BenchResults) -> dict[str, str]:
        return {"results.csv": csv_text(results), "results.md": markdown(results)}

    def drawings(self, results: BenchResults) -> dict[str, Figure]:
        from benchmarks.losses.drawing import draw_linear, draw_losses

        found = {"losses": draw_losses} if results.of(LossResult) else {}
        found |= {"linear": draw_linear} if results.of(LinearResult) else {}
        return {name: draw(results) for name, draw in found.items()}
