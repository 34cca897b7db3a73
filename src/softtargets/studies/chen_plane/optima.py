"""The plane of one seed or several, and which p of the grid is best for each a."""

from __future__ import annotations

from softtargets.claims import Sample
from softtargets.studies.results import Results

# Up to this p predictions are compared with what is measured: towards 1 they have no bounds.
AWAY = 0.9
# Measures that are good when they are high; the others are losses.
_HIGH = ("accuracy", "early_accuracy")


def axes_of(results: Results) -> tuple[list[float], list[float]]:
    """The clean rates a and the masses p on the label of which there are runs, both rising."""
    return sorted(results.values("a")), sorted(results.values("p"))


def plane_of(results: Results, measure: str) -> dict[tuple[float, float], float]:
    """One measure by (a, p), for the runs of one seed; cells without it are left out."""
    cells = results.cells("a", "p")
    return {(a, p): found[measure] for (a, p), found in cells.items() if measure in found}


def best_p(results: Results, measure: str, a: float) -> float:
    """The best p for one seed and clean rate; the larger of two that are as good. A ValueError where there is none."""
    row = {p: value for (rate, p), value in plane_of(results, measure).items() if rate == a}
    sign = -1 if measure in _HIGH else 1
    return min(row, key=lambda p: (sign * row[p], -p))


def best_ps(results: Results, measure: str, a: float) -> Sample:
    """The best p of each seed."""
    return results.each_seed(lambda own: best_p(own, measure, a))
