"""From a study to its page: train what is missing, measure, draw, write."""

from __future__ import annotations

import platform
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from softtargets.exceptions import StorageError, StudyError
from softtargets.report import Column, Page, Table, write_page
from softtargets.runs import (
    LOGS,
    SPLITS,
    Measured,
    Run,
    RunStore,
    code_version,
    engine_of,
    export_logs,
    export_predictions,
    mixed_engines,
    now,
    predictions_of,
)
from softtargets.storage import make_directory, storage_errors, write_atomically
from softtargets.studies.measuring import Trained, measure_runs
from softtargets.studies.recorded import read_record
from softtargets.studies.results import Results
from softtargets.studies.study import Outcome, Place, Settings, Study, Trial

# Measures whose keys, which files of results have, are not the words that readers use.
_HEADINGS = {"by_heart": "labels memorised"}
_COMMIT = re.compile(r"^([0-9a-f]{12})[0-9a-f]{28}")

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

    Beside the page go the logs and the compact predictions of its runs. Without an engine the page is made of the runs
    that are there, and says how many are not.
    """
    started = time.monotonic()
    wanted = study.trials(settings)
    _check_splits(study, wanted)
    if train is None:
        trained = _already_there(study, wanted, store)
    else:
        make_directory(directory)  # found out now, not after hours of training
        # A study that only computes asks no engine.
        runs = train([trial.recipe for trial in wanted], store, keep=study.keep, **how) if wanted else []
        trained = list(zip(wanted, runs, strict=True))
    missing = len(wanted) - len(trained)
    failed = _failures(study, trained, len(wanted))
    place = Place(how.get("data_dir"), how.get("device", "auto"))
    found = measure_runs(study, trained, place, some_missing=missing > 0)
    outcomes, runs = found.outcomes, list({run.id: run for _, run in trained}.values())
    made_by = [(run.recipe, run.provenance) for run in runs]
    too_few = _enough(study, len(outcomes), len(wanted)) if missing or found.unmeasured else nullcontext()
    with too_few:
        made = {
            "command": command,
            "provenance": _provenance(runs, time.monotonic() - started) | _measured_earlier(found.kept),
            "runs": _run_table(trained, outcomes) if trained else None,
            "warnings": [
                *failed,
                *found.warnings,
                *mixed_engines(made_by),
            ],
        }
        earlier = {run: {"code": one.code, "measured": one.at} for run, one in found.kept.items()}
        ended_without = tuple(trial for trial, run in trained if run.status == "failed")
        page = _write(study, Results(tuple(outcomes), failed=ended_without), directory, earlier, **made)
    _write_runs(runs, directory)
    return page


def _write_runs(runs: list[Run], directory: Path) -> None:
    """The logs of a page's runs, and their predictions as far as they are kept, so that others can recompute it."""
    if runs:
        export_logs(runs, directory / LOGS)
    for split in SPLITS:
        path = directory / predictions_of(split)
        if there := [run for run in runs if run.has_compact(split)]:
            export_predictions(there, path, split)
        else:
            path.unlink(missing_ok=True)  # those of other runs


def _measured_earlier(kept: Mapping[str, Measured]) -> dict[str, str]:
    """Who measured the runs that could not be measured for this page."""
    # A commit of forty digits is told by twelve of them.
    by = Counter(_COMMIT.sub(r"\1", found.code) or "unknown code" for found in kept.values())
    told = ", ".join(f"{count} by {code}" for code, count in sorted(by.items()))
    return {"measured earlier": told} if told else {}


def redraw_study(study: Study, source: Path, directory: Path, *, command: str) -> Path:
    """Write a study's page again from what is kept beside it, by today's rules and in today's look; return its path.

    Runs are not looked at. What was measured, and how the runs came about, stays as it was.
    """
    record = read_record(study, source)
    told = record.results
    code = code_version()
    rows = tuple(told.get("tables", {}).get("runs", ()))
    made = {
        "command": told.get("command", ""),
        "provenance": {
            **told.get("provenance", {}),
            "page redrawn": f"{now()}, softtargets {code['softtargets']}",
        },
        "runs": _listed(rows) if rows else None,
        "warnings": told.get("warnings", ()),
    }
    made["provenance"]["redrawn by"] = command
    earlier = told.get("kept", {}).get("measured", {})
    page = _page(study, Results(record.outcomes, dict(record.chances), record.failed), earlier, **made)
    if source.resolve() == directory.resolve():
        _check_nothing_is_lost(page, told, source)
    path = write_page(page, directory)
    _copy_runs(source, directory)
    return path


def _check_nothing_is_lost(page: Page, told: Mapping[str, Any], directory: Path) -> None:
    """What is drawn of weights and predictions is in the old page alone, which the new one would replace."""
    drawn = {table.name for table in page.tables}
    lost = [name for name in told.get("tables", {}) if name not in drawn]
    if lost:
        raise StudyError(
            f"the page in {directory} would lose {', '.join(lost)}, which cannot be made without the weights and "
            "predictions of its runs; write the new page elsewhere with --out, or make the whole page from its runs "
            f"with `softtargets study run {page.name}`"
        )


def _copy_runs(source: Path, directory: Path) -> None:
    """What is kept of the runs beside a page goes with it to another directory."""
    if source.resolve() == directory.resolve():
        return
    for name in (LOGS, *map(predictions_of, SPLITS)):
        if (source / name).is_file():
            with storage_errors(source / name, "read"):
                content = (source / name).read_bytes()
            write_atomically(directory / name, content)


def _write(study: Study, results: Results, directory: Path, earlier: Mapping[str, Any], **made: Any) -> Path:
    return write_page(_page(study, results, earlier, **made), directory)


def _page(study: Study, results: Results, earlier: Mapping[str, Any], **made: Any) -> Page:
    """The page; of runs that were measured `earlier` it is kept by which code, and when."""
    findings = study.findings(results)
    return Page(
        name=study.name,
        title=study.title,
        lead=study.lead,
        answer=findings.answer,
        papers=study.papers,
        sections=findings.sections,
        claims=findings.claims,
        kept=_kept(results) | ({"measured": dict(earlier)} if earlier else {}),
        **made,
    )


def _kept(results: Results) -> dict[str, Any]:
    """What the page needs to be drawn again besides its tables."""
    details = {outcome.run.id: dict(outcome.details) for outcome in results.outcomes if outcome.details}
    kept = {"chances": results.chances, "details": details}
    return {key: value for key, value in kept.items() if value}


@contextmanager
def _enough(study: Study, there: int, wanted: int) -> Iterator[None]:
    """Say that there are too few runs for a page, rather than where the study stumbled over it."""
    try:
        yield
    except StorageError:
        raise
    except Exception as error:
        raise StudyError(
            f"{there} of {wanted} runs are too few for the page of '{study.name}'; leave out --no-train to train the "
            "others (light runs that this study never measured cannot be used)"
        ) from error


def _already_there(study: Study, wanted: list[Trial], store: RunStore) -> list[Trained]:
    there = [(trial, run) for trial in wanted if (run := store.find(trial.recipe)) is not None]
    if wanted and not there:
        raise StudyError(f"none of the {len(wanted)} runs of '{study.name}' is finished in {store.root}")
    return there


def _failures(study: Study, trained: list[Trained], wanted: int) -> list[str]:
    """What a reader must know about runs that failed or are missing; where all failed there is no page."""
    reasons = {run.id: run.provenance.get("reason") for _, run in trained if run.status != "finished"}
    if trained and all(run.id in reasons for _, run in trained):
        raise StudyError(f"every run of '{study.name}' failed: {reasons[trained[0][1].id]}")
    said = [f"Run {run} failed: {reason}." for run, reason in reasons.items()]
    if missing := wanted - len(trained):
        said.append(f"{missing} of {wanted} runs have not been trained to their end and are left out.")
    return said


def _check_splits(study: Study, trials: list[Trial]) -> None:
    if "validation" in study.keep and not all("validation" in trial.recipe.data.splits for trial in trials):
        raise StudyError(f"the study '{study.name}' needs validation examples; keep data.validation above 0")


def _provenance(runs: list[Run], seconds: float) -> dict[str, Any]:
    """How runs, each given once, and the page of them came about."""
    code = code_version()
    unique = [run.provenance for run in runs]
    work: Counter[str] = Counter()  # by its unit: images, tokens
    for run in runs:
        work[run.recipe.data.unit] += run.units
    effort = [
        f"{sum(p['seconds'] for p in unique):.1f} s",
        *(f"{done:,} {unit}" for unit, done in work.items()),
    ]
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
        "engine": ", ".join(sorted({engine_of(provenance) for provenance in unique})),
        "torch": several("torch"),
        "python": several("python"),
        "device": several("device") + f" ({several('device_name')})",
        "runs": len(unique),
        "training": ", ".join(effort),
        "this command": f"{seconds:.1f} s",
    }


def _run_table(trained: list[Trained], outcomes: list[Outcome]) -> Table:
    """Every run with its labels, status and measures, so that nothing behind a mean is hidden."""
    measures = {outcome.run.id: outcome.measures for outcome in outcomes}
    rows = tuple(
        {"run": run.id, **trial.labels, "seed": trial.recipe.seed, "status": run.status}
        | {**measures.get(run.id, {}), "seconds": run.provenance["seconds"]}
        for trial, run in trained
    )
    return _listed(rows)


def _listed(rows: tuple[Mapping[str, Any], ...]) -> Table:
    keys = dict.fromkeys(key for row in rows for key in row)
    columns = (Column(key, _HEADINGS.get(key, key.replace("_", " ")), digits=4) for key in keys)
    return Table("runs", "Runs", tuple(columns), rows)
