"""A study on light runs: what was measured travels with them, and the page is the same."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
import torch

from softtargets.claims import Claim, above
from softtargets.exceptions import RunError, StudyError
from softtargets.report import Section, Table
from softtargets.runs import Measured, Run, RunStore, keep_measures, measured_by, merge_runs, pack_runs
from softtargets.studies import Findings, Trial, measure_study, redraw_study, run_study
from softtargets.studies.measures import accuracy, likelihood_and_calibration
from softtargets.studies.recorded import unless_missing
from studies.test_runner import ABOUT, BASE, study

ALPHAS = (0.0, 0.1)


def recipe_of(alpha, seed):
    return BASE.replace({"seed": seed, "batch": 32 + int(10 * alpha)})


def engine(recipes, store, *, failing=(), **how):
    """Runs with test predictions that are better with more of a batch."""
    runs = []
    for recipe in recipes:
        if (there := store.find(recipe)) is not None:
            runs.append(there)
            continue
        generator = torch.Generator().manual_seed(recipe.seed)
        labels = torch.arange(200) % 10
        logits = 2 * torch.randn(200, 10, generator=generator)
        logits[torch.arange(200), labels] += 2 + (recipe.batch - 32)
        history = [{"epoch": 1, "test_accuracy": 0.5, "train_accuracy": 0.5}]
        with store.claim(recipe) as writer:
            if recipe.seed in failing:
                runs.append(writer.fail("it diverged", [], ABOUT))
            else:
                kept = {"test": {"logits": logits, "labels": labels}}
                runs.append(writer.finish({"head.weight": torch.ones(2)}, kept, history, ABOUT))
    return runs


def measure(trial, run):
    test = run.predictions("test")
    return {"accuracy": accuracy(test), **likelihood_and_calibration(test.logits, test.labels)}


def findings(results):
    claims = [
        Claim(f"{key} differs.", (), key, *above(-1, results.difference(key, {"alpha": 0.1}, {"alpha": 0.0})))
        for key in ("accuracy", "nll", "ece")
    ]
    bins = [sum(outcome.details["bins"]) for outcome in results.outcomes]
    rows = results.rows([{"alpha": alpha} for alpha in ALPHAS], "accuracy", "nll", "ece")
    table = Table.of("t", "T", "alpha | accuracy | nll | ece", rows)
    return Findings((Section.of("Said", f"bins {bins}", table),), tuple(claims))


def compared(**changes):
    grid = {
        "trials": lambda settings: [
            Trial(recipe_of(alpha, seed), {"alpha": alpha, "seed": seed})
            for seed in range(settings.seeds)
            for alpha in ALPHAS
        ],
        "measure": measure,
        "details": lambda trial, run: {"bins": np.bincount(run.compact("test").codes[0]).tolist()},
        "findings": findings,
    }
    return study(**(grid | changes))


def page(store, directory, chosen=None, train=engine, **how):
    chosen = chosen or compared()
    path = run_study(
        chosen, chosen.settings(), store, directory, command="c", train=train, device="cpu", **how
    )
    return json.loads((path.parent / "results.json").read_text())


def all_runs(store):
    return [Run(store.root / entry.id) for entry in store.entries()]


@pytest.fixture
def whole(tmp_path):
    return RunStore(tmp_path / "whole")


@pytest.fixture
def light(tmp_path):
    return RunStore(tmp_path / "light")


@pytest.mark.parametrize("train", [engine, None])
def test_the_page_of_a_merged_store_is_that_of_the_whole_one(whole, light, tmp_path, train):
    before = page(whole, tmp_path / "one", failing=(2,))
    pack_runs(all_runs(whole), tmp_path / "p.zip")
    merge_runs(tmp_path / "p.zip", light)
    after = page(light, tmp_path / "two", train=train)
    for key in ("claims", "tables", "warnings", "rule"):
        assert after[key] == before[key], key
    earlier = after["kept"].pop("measured")
    assert after["kept"] == before["kept"]
    assert earlier.keys() == {run.id for run in all_runs(whole) if run.status == "finished"}
    assert len(before["kept"]["chances"]) == 3, "intervals over seeds and test examples"
    for name in ("logs.jsonl.gz", "predictions.npz"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes(), name
    assert after["provenance"]["measured earlier"].startswith("4 by ")
    assert "measured earlier" not in before["provenance"]


def test_what_computes_with_the_models_may_give_details_too_and_both_travel(whole, light, tmp_path):
    places, called = [], []

    def again(place):
        places.append(place)

        def measured(trial, run):
            called.append(run.id)
            return Measured(
                {"bleu": 30 + trial.recipe.seed + 10 * trial.labels["alpha"]},
                {"pseudo_values": {"bleu": [29.0 + 2 * trial.labels["alpha"], 31.0]}},
            )

        return measured

    def told(results):
        assert all({"bins", "pseudo_values"} <= one.details.keys() for one in results.outcomes)
        gain = results.difference("bleu", {"alpha": 0.1}, {"alpha": 0.0})
        claim = Claim("BLEU differs.", (), "bleu", *above(0, gain), seeds=3)
        return Findings((Section.of("Said", Table.of("t", "T", "bleu", [{"bleu": gain}])),), (claim,))

    chosen = compared(again=again, findings=told)
    before = page(whole, tmp_path / "one", chosen)
    assert (len(places), sorted(called)) == (1, sorted(run.id for run in all_runs(whole)))
    assert len(before["kept"]["chances"]) == 1, "pseudo-values are what sentences add to the chance"
    for run in all_runs(whole):
        kept = measured_by(run, chosen.name)
        assert kept.measures.keys() == {"accuracy", "nll", "ece", "bleu"}
        assert kept.details.keys() == {"bins", "pseudo_values"}
    pack_runs(all_runs(whole), tmp_path / "p.zip")
    merge_runs(tmp_path / "p.zip", light)
    after = page(light, tmp_path / "two", chosen, train=None)
    assert (after["claims"], after["tables"]) == (before["claims"], before["tables"])
    assert len(called) == len(all_runs(whole)), "light runs are not computed with"


def test_the_page_of_a_merged_results_directory_is_that_of_the_whole_store(whole, light, tmp_path):
    before = page(whole, tmp_path / "one")
    merge_runs(tmp_path / "one", light)
    assert all(run.is_light for run in all_runs(light))
    after = page(light, tmp_path / "two", train=None)
    for key in ("claims", "tables", "warnings"):
        assert after[key] == before[key], key
    again = json.loads(
        (
            redraw_study(compared(), tmp_path / "two", tmp_path / "three", command="r").parent
            / "results.json"
        ).read_text()
    )
    assert again["claims"] == before["claims"]
    # Who measured the runs, and when, stays with them however often they travel.
    merge_runs(tmp_path / "three", RunStore(tmp_path / "third"))
    first, third = (
        measured_by(store.find(recipe_of(0.1, 0)), "s") for store in (light, RunStore(tmp_path / "third"))
    )
    assert (first.code, first.at) == (third.code, third.at)
    for name in ("logs.jsonl.gz", "predictions.npz"):
        assert (tmp_path / "three" / name).read_bytes() == (tmp_path / "one" / name).read_bytes(), name


def test_whole_runs_are_measured_afresh_and_light_ones_as_they_were(whole, light, tmp_path):
    page(whole, tmp_path / "one")
    for run in all_runs(whole):
        keep_measures(run, "s", Measured({"accuracy": 0.125, "nll": 1.0, "ece": 0.5}, {"bins": [1]}))
    pack_runs(all_runs(whole), tmp_path / "p.zip")
    merge_runs(tmp_path / "p.zip", light)
    assert {row["accuracy"] for row in page(light, tmp_path / "two")["tables"]["runs"]} == {0.125}
    afresh = page(whole, tmp_path / "three")["tables"]["runs"]
    assert 0.125 not in {row["accuracy"] for row in afresh}
    assert {measured_by(run, "s").measures["accuracy"] for run in all_runs(whole)} == {
        row["accuracy"] for row in afresh
    }


def test_light_runs_that_the_study_never_measured_are_named_and_left_out(whole, light, tmp_path):
    page(whole, tmp_path / "one")
    runs = all_runs(whole)
    for run in runs[:2]:
        shutil.rmtree(run.directory / "measures")
    pack_runs(runs, tmp_path / "p.zip")
    merge_runs(tmp_path / "p.zip", light)
    results = page(light, tmp_path / "two")
    (said,) = results["warnings"]
    assert said.startswith("2 runs are light and were never measured by this study: left out: ")
    assert all(run.id in said for run in runs[:2])
    assert len(results["tables"]["runs"]) == 6
    assert sum(row.get("accuracy") is not None for row in results["tables"]["runs"]) == 4
    for run in runs:
        shutil.rmtree(run.directory / "measures", ignore_errors=True)
    pack_runs(runs, tmp_path / "q.zip")
    merge_runs(tmp_path / "q.zip", RunStore(tmp_path / "bare"))

    def stumbling(results):
        return results.first(alpha=0.0)

    with pytest.raises(StudyError, match=r"0 of 6 runs are too few .* this study never measured"):
        page(RunStore(tmp_path / "bare"), tmp_path / "three", compared(findings=stumbling))


def test_a_run_whose_teacher_is_light_keeps_what_was_measured_before(whole, tmp_path):
    """Its own predictions are there, those of another run that it is compared with are not."""
    page(whole, tmp_path / "one")
    asked = []

    def needs_another(trial, run):
        asked.append(run.id)
        raise RunError("its teacher is light")

    before = page(whole, tmp_path / "two", compared(measure=needs_another))
    assert len(asked) == 6
    assert all(row["accuracy"] > 0 for row in before["tables"]["runs"])
    assert before["provenance"]["measured earlier"].startswith("6 by ")
    assert before["warnings"] == []


def test_measuring_without_a_page_lets_runs_travel(whole, light, tmp_path):
    chosen, counted = compared(), []

    def counting(trial, run):
        counted.append(run.id)
        return measure(trial, run)

    engine([trial.recipe for trial in chosen.trials(chosen.settings())][:4], whole)
    chosen = compared(measure=counting)
    found = measure_study(chosen, chosen.settings(), whole)
    assert (len(found.outcomes), found.warnings) == (4, [])
    assert len(measure_study(chosen, chosen.settings(), whole).outcomes) == 0, "all is kept already"
    assert len(counted) == 4
    pack_runs(all_runs(whole), tmp_path / "p.zip")
    merge_runs(tmp_path / "p.zip", light)
    results = page(light, tmp_path / "one", train=None)
    assert results["warnings"] == ["2 of 6 runs have not been trained to their end and are left out."]


def test_what_trials_of_one_run_disagree_about_is_not_kept(whole, tmp_path):
    twice = [Trial(recipe_of(0.0, 0), {"alpha": alpha, "seed": 0}) for alpha in ALPHAS]

    def by_label(trial, run):
        return {"m": trial.labels["alpha"]}

    def plain(results):
        return Findings((Section("Said", (f"{len(results.outcomes)}",)),), ())

    same = {"trials": lambda settings: twice, "findings": plain}
    page(whole, tmp_path / "one", compared(measure=by_label, **same))
    assert measured_by(whole.find(twice[0].recipe), "s") is None
    page(whole, tmp_path / "two", compared(**same))
    assert measured_by(whole.find(twice[0].recipe), "s") is not None


def test_a_store_in_which_nothing_may_be_written_still_gives_its_page(whole, tmp_path, monkeypatch):
    first = page(whole, tmp_path / "one")
    for run in all_runs(whole):
        shutil.rmtree(run.directory / "measures")
        (run.directory / "measures").write_text("in the way")
    assert page(whole, tmp_path / "two", train=None)["claims"] == first["claims"]


def test_figures_that_need_weights_say_that_they_are_not_stored(whole, light, tmp_path):
    def drawn(results):
        run = results.outcomes[0].run
        return Findings((Section("S", (str(unless_missing(lambda: run.weights(), "The plane")),)),), ())

    page(whole, tmp_path / "one")
    pack_runs(all_runs(whole), tmp_path / "p.zip")
    merge_runs(tmp_path / "p.zip", light)
    chosen = compared(findings=drawn)
    path = run_study(chosen, chosen.settings(), light, tmp_path / "two", command="c", train=None)
    assert "The plane: not stored." in path.read_text()


def test_predictions_of_other_runs_do_not_stay_beside_a_page(whole, tmp_path):
    page(whole, tmp_path / "one")
    assert (tmp_path / "one" / "predictions.npz").exists()
    bare = RunStore(tmp_path / "bare")

    def without_predictions(recipes, store, **how):
        runs = []
        for recipe in recipes:
            with store.claim(recipe) as writer:
                runs.append(writer.finish({}, {}, [{"epoch": 1, "test_accuracy": 0.5}], ABOUT))
        return runs

    plain = study()
    run_study(plain, plain.settings(), bare, tmp_path / "one", command="c", train=without_predictions)
    assert not (tmp_path / "one" / "predictions.npz").exists()
    assert (tmp_path / "one" / "logs.jsonl.gz").exists()
