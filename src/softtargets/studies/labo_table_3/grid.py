"""What table 3 trains: every method, for each network and dataset."""

from __future__ import annotations

from softtargets.studies.grids import each_seed, trial
from softtargets.studies.labo.protocol import ADDED, PRINTED, base, method_cells, settings_of, teacher
from softtargets.studies.study import Settings, Trial

METHODS = (*PRINTED, *ADDED)


def trials(settings: Settings) -> list[Trial]:
    """For each setting (`data`, `model`) each `method` and seed; the teacher of a dataset comes last, once."""
    grid: list[Trial] = []
    teachers: dict[str, Trial] = {}
    for data, model in settings_of(settings.size):
        recipe = base(settings, data, model)
        cells = [
            (varied, {"data": data, "model": model, **labels})
            for varied, labels in method_cells(recipe, settings.size, METHODS)
        ]
        grid += each_seed(settings, recipe, cells)
        labels = {"size": settings.size, "data": data, "model": "teacher", "method": "hard"}
        teachers.setdefault(data, trial(teacher(recipe, settings.size), {}, **labels))
    return [*grid, *teachers.values()]
