"""What the engine does, noted down."""

from __future__ import annotations

from softtargets.training import Watcher
from softtargets.training.scheduling import loop


class Noting(Watcher):
    def __init__(self):
        self.plans, self.starts, self.ends, self.rows, self.at = [], [], [], [], {}

    def planned(self, plan):
        self.plans.append(plan)

    def started(self, recipe, step, total_steps):
        self.starts.append((recipe.id, step))

    def progressed(self, recipe, step, units):
        self.at[recipe.id] = step

    def epoch(self, recipe, row):
        self.rows.append(row)

    def finished(self, run):
        self.ends.append(run.id)


def packs_of(monkeypatch):
    """The sizes of all packs that are made."""
    sizes = []

    class Counted(loop.Pack):
        def __init__(self, starts, *rest):
            sizes.append(len(starts))
            super().__init__(starts, *rest)

    monkeypatch.setattr(loop, "Pack", Counted)
    return sizes
