"""What studies measure on finished runs, written down as soon as these are there: it then travels with them."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from softtargets.campaign.file import PlannedPage
from softtargets.runs import Run, RunStore, measured_by
from softtargets.studies import Place, Trial, measure_runs


def measure_page(page: PlannedPage, keys: AbstractSet[str], store: RunStore, place: Place) -> list[str]:
    """Measure those of these finished runs that a study wants and has not measured; returns what went wrong.

    Light runs keep what was measured on them before they lost their predictions. A study that cannot measure keeps no
    other from being trained: whatever it raises is told in a sentence.
    """
    study, left = page.study, _left(page, keys, store)
    if not left:
        return []
    try:
        return [f"{study.name}: {warning}" for warning in measure_runs(study, left, place, True).warnings]
    except Exception as error:
        return [f"{study.name} could not measure its runs: {error!r}."]


def to_measure(page: PlannedPage, keys: AbstractSet[str], store: RunStore) -> set[str]:
    """Those of these finished runs of which a study still wants numbers."""
    return {run.id for _, run in _left(page, keys, store)}


def _left(page: PlannedPage, keys: AbstractSet[str], store: RunStore) -> list[tuple[Trial, Run]]:
    trials = (trial for entry in page.entries for trial in entry.trials if trial.recipe.id in keys)
    there = ((trial, Run(store.root / trial.recipe.id)) for trial in trials)
    name = page.study.name
    return [(trial, run) for trial, run in there if not run.is_light and measured_by(run, name) is None]
