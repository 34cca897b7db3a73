"""From a study to its page: with an engine that only writes runs down, and findings of two lines."""

from __future__ import annotations

import csv
import json

import pytest

from softtargets.claims import Claim, above
from softtargets.exceptions import RunError, StudyError
from softtargets.recipes import MLP, Digits, Recipe
from softtargets.report import Section
from softtargets.runs import RunStore
from softtargets.studies import Findings, Study, Trial, redraw_study, run_study

BASE = Recipe(data=Digits(), model=MLP(hidden=(8,)), epochs=1)
ABOUT = {
    "softtargets": "0.1.0",
    "torch": "t",
    "python": "p",
    "device": "cpu",
    "device_name": "x",
    "seconds": 1.5,
    "images": 7,
    "units": 7,
}


def engine(recipes, store, *, failing=(), newer=(), **how):
    """Runs with a test accuracy of a tenth of their seed; those of failing seeds fail, others are of a newer engine."""
    runs = []
    for recipe in recipes:
        about = ABOUT | ({"engine": 3} if recipe.seed in newer else {})
        with store.claim(recipe) as writer:
            if recipe.seed in failing:
                runs.append(writer.fail("it <diverged>", [], about))
            else:
                runs.append(writer.finish({}, {}, [{"epoch": 1, "test_accuracy": recipe.seed / 10}], about))
    return runs


def measure(trial, run):
    return {"m": run.summary["test_accuracy"]}


def findings(results):
    """A claim about all runs, and one about those of seed 2 alone."""
    claims = (
        Claim("It is so.", (), "m", *above(-1, results.sample("m"))),
        Claim("It is so of seed 2.", (), "m of seed 2", *above(-1, results.sample("m", seed=2))),
    )
    return Findings((Section("Said", (f"{len(results.outcomes)} outcomes",)),), claims)


def study(**changes) -> Study:
    parts = {
        "name": "s",
        "title": "t",
        "lead": "l",
        "papers": (),
        "trials": lambda settings: [
            Trial(BASE.replace({"seed": seed}), {"seed": seed}) for seed in range(settings.seeds)
        ],
        "measure": measure,
        "findings": findings,
        "seeds": 3,
    }
    return Study(**(parts | changes))


def page_of(tmp_path, chosen: Study | None = None, train=engine, **how) -> dict:
    chosen = chosen or study()
    store = RunStore(tmp_path / "runs")
    page = run_study(
        chosen, chosen.settings(), store, tmp_path / "report", command="c", train=train, device="cpu", **how
    )
    return json.loads((page.parent / "results.json").read_text()) | {"html": page.read_text()}


def without(tmp_path, *seeds: int) -> None:
    for seed in seeds:
        RunStore(tmp_path / "runs").delete(BASE.replace({"seed": seed}).id)


def test_every_run_is_measured_and_listed(tmp_path):
    results = page_of(tmp_path)
    assert results["warnings"] == []
    assert [claim["measured"]["n"] for claim in results["claims"]] == [3, 1]
    rows = list(csv.DictReader((tmp_path / "report" / "tables" / "runs.csv").open()))
    assert [(row["seed"], row["status"], row["m"]) for row in rows] == [
        ("0", "finished", "0.0"),
        ("1", "finished", "0.1"),
        ("2", "finished", "0.2"),
    ]
    assert results["provenance"]["training"] == "4.5 s, 21 images"


def test_a_page_says_if_runs_of_several_engines_stand_on_it(tmp_path):
    results = page_of(tmp_path, newer=(1, 2))
    (said,) = results["warnings"]
    assert "1 or 2: 1 run, 3: 2 runs" in said
    assert results["provenance"]["engine"] == "1 or 2, 3"


def test_a_failed_run_is_reported_and_the_rest_is_shown(tmp_path):
    results = page_of(tmp_path, failing=(2,))
    failed = BASE.replace({"seed": 2}).id
    assert results["warnings"] == [f"Run {failed} failed: it <diverged>."]
    assert f"Run {failed} failed: it &lt;diverged&gt;." in results["html"]
    # Nothing is missing, so the claim stays and says that it has no seeds.
    assert [claim["measured"]["n"] for claim in results["claims"]] == [2, 0]
    assert [row["status"] for row in results["tables"]["runs"]] == ["finished", "finished", "failed"]


def test_findings_know_which_runs_failed_and_which_are_still_to_be_trained(tmp_path):
    def told(results):
        lacking = [seed for seed in range(4) if results.lacks(seed=seed)]
        return Findings((Section("Said", (f"still to be trained: {lacking}",)),), ())

    page_of(tmp_path, failing=(2,))
    without(tmp_path, 1)
    made = page_of(tmp_path, study(findings=told), train=None)
    assert "still to be trained: [1, 3]" in made["html"]
    again = redraw_study(study(findings=told), tmp_path / "report", tmp_path / "again", command="c")
    assert "still to be trained: [1, 3]" in again.read_text()


def test_where_every_run_failed_there_is_no_page_but_the_first_reason(tmp_path):
    with pytest.raises(StudyError, match=r"every run of 's' failed: it <diverged>"):
        page_of(tmp_path, failing=(0, 1, 2))


def test_a_claim_whose_runs_are_not_there_yet_says_so(tmp_path):
    page_of(tmp_path)
    without(tmp_path, 2)
    results = page_of(tmp_path, train=None)
    assert [(claim["statement"], claim["verdict"], claim["reason"]) for claim in results["claims"]] == [
        ("It is so.", "not run yet", "2 of the 3 seeds that decide"),
        ("It is so of seed 2.", "not run yet", "0 of the 3 seeds that decide"),
    ]
    assert results["warnings"] == ["1 of 3 runs have not been trained to their end and are left out."]
    assert "2 outcomes" in results["html"]


def test_a_page_of_nothing_is_refused(tmp_path):
    with pytest.raises(StudyError, match=r"none of the 3 runs of 's' is finished in "):
        page_of(tmp_path, train=None)


def test_an_instruments_refusal_leaves_its_run_out(tmp_path):
    def refusing(trial, run):
        if trial.recipe.seed == 1:
            raise ValueError("no template plane")
        return {"m": 1.0}

    results = page_of(tmp_path, study(measure=refusing))
    assert results["warnings"] == [
        f"Run {BASE.replace({'seed': 1}).id} could not be measured: no template plane."
    ]
    assert results["claims"][0]["measured"]["n"] == 2


def test_a_run_that_cannot_be_read_is_an_error_unless_others_are_missing_too(tmp_path):
    def refusing(trial, run):
        if trial.recipe.seed == 1:
            raise RunError("its teacher is not there")
        return {"m": 1.0}

    with pytest.raises(RunError, match="its teacher"):
        page_of(tmp_path, study(measure=refusing))
    without(tmp_path, 2)
    results = page_of(tmp_path, study(measure=refusing), train=None)
    assert "could not be measured: its teacher is not there." in results["warnings"][1]


def test_what_a_study_stumbles_over_is_too_few_runs_only_where_runs_are_missing(tmp_path):
    def stumbling(results):
        raise KeyError("no such cell")

    with pytest.raises(KeyError, match="no such cell"):
        page_of(tmp_path, study(findings=stumbling))
    without(tmp_path, 0)
    with pytest.raises(
        StudyError, match=r"2 of 3 runs are too few for the page of 's'; leave out --no-train"
    ):
        page_of(tmp_path, study(findings=stumbling), train=None)


def test_both_measurements_of_a_run_are_kept_and_the_second_knows_the_place(tmp_path):
    seen = []

    def again(place):
        seen.append((place.data_dir, place.device))
        return lambda trial, run: {"more": 2.0}

    results = page_of(tmp_path, study(again=again), data_dir=tmp_path)
    assert seen == [(tmp_path, "cpu")]
    assert [(row["m"], row["more"]) for row in results["tables"]["runs"]] == [
        (0.0, 2.0),
        (0.1, 2.0),
        (0.2, 2.0),
    ]


def test_a_study_without_runs_asks_no_engine_and_still_makes_its_page(tmp_path):
    def refuse(*recipes, **how):
        raise AssertionError("there is nothing to train")

    computing = Study(
        name="s",
        title="t",
        lead="l",
        papers=(),
        findings=lambda results: Findings((Section("Said", (f"{len(results.outcomes)} outcomes",)),), ()),
    )
    store, settings = RunStore(tmp_path / "runs"), computing.settings()
    page = run_study(computing, settings, store, tmp_path / "report", command="c", train=refuse)
    assert "0 outcomes" in page.read_text()
    results = json.loads((page.parent / "results.json").read_text())
    assert results["provenance"]["runs"] == 0
    assert "device" not in results["provenance"]
    assert not (page.parent / "tables" / "runs.csv").exists()
    with pytest.raises(StudyError, match="--set epochs: the study 's' trains nothing"):
        computing.settings(changes={"epochs": 3})
