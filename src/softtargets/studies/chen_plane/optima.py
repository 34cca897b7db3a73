"""Which p of the grid is best for each a, by what is measured and by what is predicted."""

from __future__ import annotations

from dataclasses import dataclass

from softtargets.claims import Sample
from softtargets.studies.study import Results

# Up to this p predictions are compared with what is measured: towards 1 they have no bounds.
AWAY = 0.9
# What is best: the measure, and whether high or low is good.
LOWEST = {
    "loss_alpha": True,
    "loss_beta": True,
    "accuracy": False,
    "early_loss": True,
    "early_accuracy": False,
}


@dataclass(frozen=True)
class Grid:
    """The outcomes of a plane: its axes, and its values for one seed at a time. Cells without a run are left out."""

    results: Results

    @property
    def rates(self) -> tuple[float, ...]:
        """The clean rates, rising."""
        return tuple(sorted({o.trial.labels["a"] for o in self.results.outcomes}))

    @property
    def masses(self) -> tuple[float, ...]:
        """The masses on the label, rising."""
        return tuple(sorted({o.trial.labels["p"] for o in self.results.outcomes}))

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds of which there are runs."""
        return tuple(sorted({o.trial.recipe.seed for o in self.results.outcomes}))

    def values(self, seed: int, measure: str) -> dict[tuple[float, float], float]:
        """By (a, p), for one seed."""
        return {
            (o.trial.labels["a"], o.trial.labels["p"]): o.measures[measure]
            for o in self.results.outcomes
            if o.trial.recipe.seed == seed and measure in o.measures
        }

    def best(self, seed: int, measure: str, a: float) -> float | None:
        """The best p for one seed and clean rate; the larger of two that are as good."""
        row = {p: value for (rate, p), value in self.values(seed, measure).items() if rate == a}
        if not row:
            return None
        sign = 1 if LOWEST[measure] else -1
        return min(row, key=lambda p: (sign * row[p], -p))

    def best_sample(self, measure: str, a: float) -> Sample:
        """The best p over seeds."""
        found = (self.best(seed, measure, a) for seed in self.seeds)
        return Sample.of(p for p in found if p is not None)
