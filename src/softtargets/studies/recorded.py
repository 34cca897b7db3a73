"""What is kept of a study beside its page: enough to make the page again without a run.

``results.json`` has every run with what was measured on it, and ``logs.jsonl.gz`` each recipe, metrics by epoch and
provenance. Weights and logits are in neither: what needs them is not drawn again.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softtargets.exceptions import StudyError
from softtargets.recipes import Recipe
from softtargets.report import Figure
from softtargets.runs import LOGS, NotStoredError, Predictions, measured_in
from softtargets.studies.study import Outcome, Study, Trial

RESULTS = "results.json"


@dataclass(frozen=True)
class RecordedRun:
    """A run as its line of the logs tells it, in the place of the run itself."""

    id: str
    status: str
    recipe: Recipe
    summary: Mapping[str, Any]
    provenance: Mapping[str, Any]
    epochs: tuple[Mapping[str, Any], ...]

    def history(self) -> list[Mapping[str, Any]]:
        """Metrics of each measurement."""
        return list(self.epochs)

    def has_predictions(self, split: str) -> bool:
        """Never: they are not in the logs."""
        return False

    def predictions(self, split: str) -> Predictions:
        """Refused."""
        raise NotStoredError(f"the predictions of run {self.id} are not stored beside its page")

    def weights(self) -> dict[str, Any]:
        """Refused."""
        raise NotStoredError(f"the weights of run {self.id} are not stored beside its page")


def unless_missing(make: Callable[[], Figure], what: str) -> Figure | str:
    """A figure; where it needs predictions or weights that are not kept, a sentence that says so."""
    try:
        return make()
    except NotStoredError:
        return f"{what}: not stored. Predictions and weights, which it needs, are not kept beside this page."


@dataclass(frozen=True)
class Record:
    """All that is kept of a study's page."""

    results: Mapping[str, Any]
    outcomes: tuple[Outcome, ...]
    failed: tuple[Trial, ...] = ()

    @property
    def chances(self) -> Mapping[str, float]:
        """What test examples add to variances, which was computed from predictions that are gone."""
        return dict(self.results.get("kept", {}).get("chances", {}))


def read_record(study: Study, directory: Path) -> Record:
    """Read what `softtargets study run` and `softtargets runs export` left in a directory."""
    results = _results(directory / RESULTS)
    if results.get("study") != study.name:
        raise StudyError(
            f"{directory / RESULTS} belongs to the study '{results.get('study')}', not to '{study.name}'"
        )
    rows = results.get("tables", {}).get("runs", [])
    logs = {run.id: run for run in _logged(directory / LOGS)} if rows else {}
    if missing := [row["run"] for row in rows if row["run"] not in logs]:
        raise StudyError(
            f"{directory / LOGS} has no line for {len(missing)} of {len(rows)} runs, the first of them {missing[0]}; "
            f"write it with `softtargets runs export {directory / LOGS}`"
        )
    details = results.get("kept", {}).get("details", {})
    outcomes = (
        _outcome(row, logs[row["run"]], details.get(row["run"], {}))
        for row in rows
        if row["status"] == "finished"
    )
    failed = (_trial(row, logs[row["run"]]) for row in rows if row["status"] == "failed")
    return Record(results, tuple(outcomes), tuple(failed))


def _outcome(row: Mapping[str, Any], run: RecordedRun, details: Mapping[str, Any]) -> Outcome:
    """A row of the table of runs: its name, labels, the seed, its status, what was measured, and seconds."""
    return Outcome(_trial(row, run), run, measured_in(row), details)


def _trial(row: Mapping[str, Any], run: RecordedRun) -> Trial:
    keys = list(row)
    labels = keys[1 : keys.index("status")]  # the seed among them: some studies have it for a label
    return Trial(run.recipe, {key: row[key] for key in labels})


def _results(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise StudyError(f"there is no {path}; give the directory of a study's page with --from") from error
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise StudyError(f"{path} is not JSON: {error}") from error
    return found if isinstance(found, dict) else {}


def _logged(path: Path) -> Iterator[RecordedRun]:
    try:
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                one = json.loads(line)
                recipe = Recipe.from_dict(one["recipe"])
                told = (one["summary"], one["provenance"], tuple(one["history"]))
                yield RecordedRun(one["id"], one["status"], recipe, *told)
    except FileNotFoundError as error:
        raise StudyError(f"there is no {path}; write it with `softtargets runs export {path}`") from error
    except (OSError, EOFError, json.JSONDecodeError, KeyError) as error:
        raise StudyError(f"{path} is not a log of runs: {error!r}") from error
