"""A page made again from what is kept beside it, without a run."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest

from softtargets.claims import Sample, judge
from softtargets.exceptions import StudyError
from softtargets.report import Section
from softtargets.runs import RunStore, export_logs
from softtargets.studies import STUDIES, Findings, find_study, redraw_study, run_study
from softtargets.studies.recorded import LOGS, NotStoredError, read_record, unless_missing
from softtargets.studies.results import Results
from studies.test_runner import engine, study

COMMITTED = Path(__file__).parents[2] / "results"


def made(tmp_path, chosen=None, **how):
    """A page, and the logs of its runs beside it."""
    chosen, store = chosen or study(), RunStore(tmp_path / "runs")
    page = run_study(
        chosen, chosen.settings(), store, tmp_path / "report", command="the first", train=engine, **how
    )
    export_logs(
        (run for trial in chosen.trials(chosen.settings()) if (run := store.find(trial.recipe)) is not None),
        page.parent / LOGS,
        [],
    )
    return page


def results(path):
    return json.loads((path.parent / "results.json").read_text(encoding="utf-8"))


def test_the_page_is_the_same_without_its_runs(tmp_path):
    page = made(tmp_path)
    shutil.rmtree(tmp_path / "runs")
    before = results(page)
    again = results(redraw_study(study(), page.parent, tmp_path / "again", command="the second"))
    for key in ("claims", "tables", "command", "warnings", "rule"):
        assert again[key] == before[key], key
    assert before["provenance"].items() <= again["provenance"].items()
    assert again["provenance"]["redrawn by"] == "the second"


def test_it_may_replace_itself_any_number_of_times(tmp_path):
    page = made(tmp_path)
    first = results(redraw_study(study(), page.parent, page.parent, command="again"))
    second = results(redraw_study(study(), page.parent, page.parent, command="again"))
    assert first["claims"] == second["claims"]
    assert first["command"] == second["command"] == "the first"


def test_failed_runs_stay_in_the_list_and_measure_nothing(tmp_path):
    page = made(tmp_path, failing=(2,))
    again = results(redraw_study(study(), page.parent, tmp_path / "again", command="c"))
    assert [row["status"] for row in again["tables"]["runs"]] == ["finished", "finished", "failed"]
    (failed,) = read_record(study(), page.parent).failed
    assert (failed.recipe.seed, failed.labels) == (2, {"seed": 2})
    assert [claim["measured"]["n"] for claim in again["claims"]] == [2, 0]


def test_recipes_histories_and_labels_are_there_and_predictions_are_not(tmp_path):
    record = read_record(study(), made(tmp_path).parent)
    outcome = record.outcomes[1]
    assert (outcome.seed, outcome.trial.labels, outcome.measures) == (1, {"seed": 1}, {"m": 0.1})
    assert outcome.run.history() == [{"epoch": 1, "test_accuracy": 0.1}]
    assert outcome.run.recipe == outcome.trial.recipe
    assert not outcome.run.has_predictions("test")
    for ask in (lambda: outcome.run.predictions("test"), outcome.run.weights):
        with pytest.raises(NotStoredError, match=r"not stored beside its page"):
            ask()
        assert "The diagram: not stored." in unless_missing(ask, "The diagram")


def test_the_chance_of_test_examples_is_kept(tmp_path, monkeypatch):
    """What was computed from predictions once stands on the page that is made without them."""

    def findings(found):
        gain = found.gain("m", [({}, {})])
        return Findings((Section("s", (f"examples {gain.examples}",)),), ())

    monkeypatch.setattr("softtargets.studies.results.chance_of_contrast", lambda seeds: 0.25)
    page = made(tmp_path, study(findings=findings))
    assert list(results(page)["kept"]["chances"].values()) == [0.25]
    monkeypatch.setattr("softtargets.studies.results.chance_of_contrast", lambda seeds: None)
    again = redraw_study(study(findings=findings), page.parent, tmp_path / "again", command="c")
    assert "examples 0.25" in again.read_text()
    assert list(results(again)["kept"]["chances"].values()) == [0.25]
    assert Results(()).gain("m", []) == Sample(())


def test_details_of_runs_are_kept_for_figures(tmp_path):
    """What a figure needs of a run besides numbers is there when the page is drawn again, and not without it."""
    seen = []

    def findings(found):
        seen.append([dict(outcome.details) for outcome in found.outcomes])
        return Findings((Section.of("Nothing", "to see"),), ())

    chosen = study(
        findings=findings, details=lambda trial, run: {"points": [[1.0, 2.0], [trial.recipe.seed, 0]]}
    )
    page = made(tmp_path, chosen)
    shutil.rmtree(tmp_path / "runs")
    redraw_study(chosen, page.parent, tmp_path / "again", command="c")
    assert seen[0] == seen[1]
    assert seen[0][0] == {"points": [[1.0, 2.0], [0, 0]]}
    assert "kept" not in results(made(tmp_path / "without"))


def test_what_cannot_be_read_is_refused_with_what_to_do(tmp_path):
    page = made(tmp_path)
    directory = page.parent
    with pytest.raises(StudyError, match=r"belongs to the study 's', not to 'other'"):
        read_record(study(name="other"), directory)
    with pytest.raises(StudyError, match=r"there is no .*nowhere/results.json; give the directory"):
        read_record(study(), tmp_path / "nowhere")
    with gzip.open(directory / LOGS, "rt") as log:
        lines = log.readlines()
    with gzip.open(directory / LOGS, "wt") as log:
        log.writelines(lines[:1])
    with pytest.raises(
        StudyError,
        match=r"has no line for 2 of 3 runs, the first of them .*; write it with `softtargets runs export",
    ):
        read_record(study(), directory)
    (directory / LOGS).write_bytes(b"not a log")
    with pytest.raises(StudyError, match=r"is not a log of runs"):
        read_record(study(), directory)
    (directory / LOGS).unlink()
    with pytest.raises(StudyError, match=r"there is no .*logs.jsonl.gz; write it with"):
        read_record(study(), directory)
    (directory / "results.json").write_text("{")
    with pytest.raises(StudyError, match=r"is not JSON"):
        read_record(study(), directory)


@pytest.mark.parametrize(
    ("directory", "name"),
    [
        ("mnist-distillation", "mnist-distillation"),
        ("chen-mnist", "chen-mnist"),
        ("chen-forward-correction", "chen-forward-correction"),
        ("wagner-table-3", "wagner-table-3"),
    ],
)
def test_committed_pages_are_those_of_their_results_by_todays_rule(directory, name):
    """Who changes a claim or the rule redraws: softtargets study page NAME --from results/NAME."""
    chosen = find_study(STUDIES, name)
    record = read_record(chosen, COMMITTED / directory)
    found = chosen.findings(Results(record.outcomes, dict(record.chances)))
    told = [(claim["statement"], claim["verdict"]) for claim in record.results["claims"]]
    assert told == [(one.claim.statement, one.verdict) for one in judge(found.claims)]
    assert record.results["answer"] == found.answer
