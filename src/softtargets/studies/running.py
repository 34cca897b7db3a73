"""From a study to its page: train what is missing, measure, draw, write."""

from __future__ import annotations

import platform
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from softtargets.exceptions import RunError, StorageError, StudyError
from softtargets.report import Column, Page, Table, write_page
from softtargets.runs import Run, RunStore
from softtargets.runs.provenance import code_version, now
from softtargets.storage import make_directory
from softtargets.studies.study import Measure, Outcome, Place, Results, Settings, Study, Trial

Train = Callable[..., list[Run]]


def run_study(
    study: Study,
    settings: Settings,
    store: RunStore,
    directory: Path,
    *,
    command: str,
    train: Train | None,
    **how: Any,
) -> Path:
    """Train the grid with `train` (an engine: recipes in, runs out), then write the page; return its path.

    Without an engine the page is made of the runs that are there, and says how many are not.
    """
    started = time.monotonic()
    wanted = trials = study.trials(settings)
    _check_splits(study, trials)
    if train is None:
        trials, runs = _already_there(study, wanted, store)
    else:
        make_directory(directory)  # found out now, not after hours of training
        # A study that only computes asks no engine.
        runs = train([trial.recipe for trial in trials], store, keep=study.keep, **how) if trials else []
    finished = [(trial, run) for trial, run in zip(trials, runs, strict=True) if run.status == "finished"]
    if trials and not finished:
        raise StudyError(f"every run of '{study.name}' failed: {runs[0].provenance.get('reason')}")
    warnings = [
        f"Run {run.id} failed: {run.provenance.get('reason')}." for run in runs if run.status != "finished"
    ]
    missing = len(wanted) - len(trials)
    if missing:
        warnings.append(
            f"{missing} of {len(wanted)} runs have not been trained to their end and are left out."
        )
    measures = _measures(study, Place(how.get("data_dir"), how.get("device", "auto")))
    # An instrument's refusal: a collapsed net, for instance, has no template plane. Where runs are missing, a student
    # may be there without its teacher.
    refusals = (ValueError, RunError) if missing else (ValueError,)
    outcomes = []
    for trial, run in finished:
        try:
            measured = {key: value for measure in measures for key, value in measure(trial, run).items()}
            outcomes.append(Outcome(trial, run, measured))
        except refusals as error:
            warnings.append(f"Run {run.id} could not be measured: {error}.")
    with _enough(study, len(outcomes), len(wanted)) if missing else nullcontext():
        findings = study.findings(Results(tuple(outcomes)))
        page = Page(
            name=study.name,
            title=study.title,
            lead=study.lead,
            sections=findings.sections,
            claims=tuple(claim for claim in findings.claims if claim.sample.n or not missing),
            command=command,
            provenance=_provenance(runs, time.monotonic() - started),
            runs=_run_table(trials, runs, {outcome.run.id: outcome for outcome in outcomes})
            if trials
            else None,
            warnings=warnings,
        )
        return write_page(page, directory)


@contextmanager
def _enough(study: Study, there: int, wanted: int) -> Iterator[None]:
    """Say that there are too few runs for a page, rather than where the study stumbled over it."""
    try:
        yield
    except StorageError:
        raise
    except Exception as error:
        raise StudyError(
            f"{there} of {wanted} runs are too few for the page of '{study.name}'; without --no-train the others are "
            "trained"
        ) from error


def _measures(study: Study, place: Place) -> list[Measure]:
    return [study.measure, *([study.again(place)] if study.again else [])]


def _already_there(study: Study, trials: list[Trial], store: RunStore) -> tuple[list[Trial], list[Run]]:
    there = [(trial, run) for trial in trials if (run := store.find(trial.recipe)) is not None]
    if trials and not there:
        raise StudyError(f"none of the {len(trials)} runs of '{study.name}' is finished in {store.root}")
    return [trial for trial, _ in there], [run for _, run in there]


def _check_splits(study: Study, trials: list[Trial]) -> None:
    if "validation" in study.keep and not all(trial.recipe.data.validation for trial in trials):
        raise StudyError(f"the study '{study.name}' needs validation examples; leave data.validation above 0")


def _provenance(runs: list[Run], seconds: float) -> dict[str, Any]:
    code = code_version()
    once = {run.id: run for run in runs}.values()
    unique = [run.provenance for run in once]
    work: Counter[str] = Counter()  # by its unit: images, tokens
    for run in once:
        work[run.recipe.data.unit] += run.units
    commit = code["commit"][:12] if code["commit"] else "not from a git checkout"

    def several(key: str) -> str:
        return ", ".join(sorted({str(provenance[key]) for provenance in unique}))

    made = {
        "made": now(),
        "softtargets": f"{code['softtargets']} ({commit}{', with changes' if code['uncommitted_changes'] else ''})",
    }
    if not runs:
        return made | {"python": platform.python_version(), "runs": 0, "this command": f"{seconds:.1f} s"}
    return made | {
        "torch": several("torch"),
        "python": several("python"),
        "device": several("device") + f" ({several('device_name')})",
        "runs": len(unique),
        "training": ", ".join(
            [
                f"{sum(p['seconds'] for p in unique):.1f} s",
                *(f"{done:,} {unit}" for unit, done in work.items()),
            ]
        ),
        "this command": f"{seconds:.1f} s",
    }


def _run_table(trials: list[Trial], runs: list[Run], outcomes: dict[str, Outcome]) -> Table:
    """Every run with its labels, status and measures, so that nothing behind a mean is hidden."""
    rows = []
    for trial, run in zip(trials, runs, strict=True):
        measures = outcomes[run.id].measures if run.id in outcomes else {}
        labels = {**trial.labels, "seed": trial.recipe.seed}
        rows.append(
            {"run": run.id, **labels, "status": run.status, **measures, "seconds": run.provenance["seconds"]}
        )
    keys = list(dict.fromkeys(key for row in rows for key in row))
    columns = tuple(Column(key, key.replace("_", " "), digits=4) for key in keys)
    return Table("runs", "Runs", columns, tuple(rows))
