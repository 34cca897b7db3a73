"""What a study measures on its runs: afresh where they are whole, as it was kept with them where they are light."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from softtargets.exceptions import DataError, RunError
from softtargets.runs import Measured, Run, RunStore, keep_measures, measured_by
from softtargets.studies.study import Again, Outcome, Place, Settings, Study, Trial

Trained = tuple[Trial, Run]


@dataclass
class Measurements:
    """What came of measuring runs.

    kept:       by run, what was taken as it was kept with the run, because it could not be measured here.
    unmeasured: light runs that this study never measured.
    warnings:   sentences about runs that are left out.
    """

    outcomes: list[Outcome] = field(default_factory=list)
    kept: dict[str, Measured] = field(default_factory=dict)
    unmeasured: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def measure_runs(study: Study, trained: Sequence[Trained], place: Place, some_missing: bool) -> Measurements:
    """Measure finished runs, and keep what was measured with them; runs that cannot be measured are named.

    some_missing: runs of the grid are not there, so that a student may be there without its teacher.
    """
    measures: list[Again] = [study.measure, *([study.again(place)] if study.again else [])]
    finished = [(trial, run) for trial, run in trained if run.status == "finished"]
    lenient = some_missing or any(run.left_out for _, run in finished)
    found = Measurements()
    afresh: dict[str, list[Outcome]] = {}
    for trial, run in finished:
        outcome = _measured(study, measures, (trial, run), found, lenient)
        if outcome is not None:
            found.outcomes.append(outcome)
            if run.id not in found.kept:
                afresh.setdefault(run.id, []).append(outcome)
    _keep(study, afresh)
    found.warnings += _never_measured(list(dict.fromkeys(found.unmeasured)))
    return found


def _measured(
    study: Study, measures: Sequence[Again], trained: Trained, found: Measurements, lenient: bool
) -> Outcome | None:
    """One run measured, or as it was measured before; none where neither can be had, which is noted in `found`."""
    trial, run = trained
    before = measured_by(run, study.name)
    if before is None or not run.left_out:
        try:
            numbers, details = _both(measures, trial, run)
            return Outcome(trial, run, numbers, study.details(trial, run) | details)
        except (
            ValueError
        ) as error:  # an instrument's refusal: a collapsed model, for instance, has no template plane
            found.warnings.append(f"Run {run.id} could not be measured: {error}.")
            return None
        except (RunError, DataError) as error:
            if before is None:
                if not _leave_out(found, run, error, lenient):
                    raise
                return None
            # Its teacher is light, for instance.
    found.kept[run.id] = before
    return Outcome(trial, run, before.measures, before.details)


def _both(measures: Sequence[Again], trial: Trial, run: Run) -> tuple[dict[str, float], dict[str, Any]]:
    """The numbers and the details of several measurements; of the same name the last one's."""
    numbers: dict[str, float] = {}
    details: dict[str, Any] = {}
    for measure in measures:
        found = measure(trial, run)
        if isinstance(found, Measured):
            numbers |= found.measures
            details |= found.details
        else:
            numbers |= found
    return numbers, details


def _leave_out(found: Measurements, run: Run, error: Exception, lenient: bool) -> bool:
    """Whether a page can do without a run that could not be read; it is then named."""
    if run.left_out:
        found.unmeasured.append(run.id)
    elif lenient and isinstance(error, RunError):
        found.warnings.append(f"Run {run.id} could not be measured: {error}.")
    else:
        return False
    return True


def measure_study(
    study: Study, settings: Settings, store: RunStore, place: Place | None = None
) -> Measurements:
    """Measure those finished runs of a study on which nothing of it is kept yet, so that they can travel light."""
    there = ((trial, store.find(trial.recipe)) for trial in study.trials(settings))
    trained = [
        (trial, run) for trial, run in there if run is not None and measured_by(run, study.name) is None
    ]
    return measure_runs(study, trained, place or Place(), some_missing=True)


def _keep(study: Study, afresh: dict[str, list[Outcome]]) -> None:
    """Keep what was measured with each run, unless several trials share it and it was not the same for all of them."""
    for outcomes in afresh.values():
        first = outcomes[0]
        told = Measured.today(first.measures, first.details)
        if all(told.says_the_same_as(Measured(one.measures, one.details)) for one in outcomes[1:]):
            assert isinstance(first.run, Run)
            keep_measures(first.run, study.name, told)


def _never_measured(runs: list[str]) -> list[str]:
    if not runs:
        return []
    these = f"Run {runs[0]} is light and was" if len(runs) == 1 else f"{len(runs)} runs are light and were"
    listed = f": {', '.join(runs)}" if len(runs) > 1 else ""
    return [
        f"{these} never measured by this study: left out{listed}. Measure where the weights are "
        "(`softtargets study run`), pack again and merge."
    ]
