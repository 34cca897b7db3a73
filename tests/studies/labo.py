"""What the tests of LABO's studies share: a grid that trains in a second, and results that were never measured."""

from __future__ import annotations

from softtargets.recipes import MLP, SGD, Digits, Recipe, Step
from softtargets.studies import Outcome, Results, Settings
from softtargets.studies.labo import protocol
from softtargets.studies.recorded import RecordedRun

TINY = Recipe(
    data=Digits(limit=48, validation=32),
    model=MLP(hidden=(8,)),
    optimiser=SGD(lr=0.05, momentum=0.9),
    schedule=Step(milestones=(1,), factor=0.2),
    epochs=2,
    batch=16,
)


def make_small(monkeypatch):
    """The small size on digits."""
    monkeypatch.setattr(protocol, "SMALL", TINY)
    monkeypatch.setattr(protocol, "TEACHERS", {**protocol.TEACHERS, "small": MLP(hidden=(12,))})


def made_up(study, numbers, seeds=None, size="full", changes=None):
    """Outcomes of the grid's cells for which `numbers`, given labels and a seed, has measures."""
    outcomes = []
    about = {"examples": {"train": 45_000, "test": 10_000}, "parameters": 1}
    for trial in study.trials(Settings(seeds or study.seeds, changes or {}, size)):
        measures = numbers(trial.labels, trial.recipe.seed)
        if measures is None:
            continue
        run = RecordedRun(trial.recipe.id, "finished", trial.recipe, {}, about, ())
        outcomes.append(Outcome(trial, run, measures))
    return Results(tuple(outcomes))
