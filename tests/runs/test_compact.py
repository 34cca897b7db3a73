"""Predictions in a few bytes, and what can be computed from them, against double precision."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from softtargets.calibration import expected_calibration_error
from softtargets.exceptions import RunError
from softtargets.recipes import MLP, Digits, Recipe
from softtargets.runs import Run, RunStore, export_predictions, recomputed
from softtargets.runs.compact import compact, decoded, encoded, measures

BASE = Recipe(data=Digits(), model=MLP(hidden=(8,)), epochs=1)


def said(examples=10_000, classes=10, sharpness=4.0, seed=0):
    """Logits and labels of a net that is right most of the time, and more or less sure of it."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (examples,), generator=generator)
    logits = torch.randn(examples, classes, generator=generator)
    logits[torch.arange(examples), labels] += 2.5
    return sharpness * logits, labels


def exactly(logits, labels):
    p = logits.double().softmax(-1)
    return {
        "accuracy": float((logits.argmax(-1) == labels).double().mean()),
        "nll": float(F.cross_entropy(logits.double(), labels)),
        "ece": expected_calibration_error(p, labels),
    }


@pytest.mark.parametrize("sharpness", [0.1, 1.0, 4.0, 10.0])
@pytest.mark.parametrize("classes", [2, 10, 1000])
def test_what_is_recomputed_is_what_the_logits_say(sharpness, classes):
    logits, labels = said(classes=classes, sharpness=sharpness, examples=10_000 if classes < 1000 else 1000)
    found = measures(compact(logits.double().numpy(), labels.numpy()), labels.numpy())
    exact = exactly(logits, labels)
    assert found["accuracy"] == exact["accuracy"]
    assert found["error"] == 1 - exact["accuracy"]
    assert abs(found["ece"] - exact["ece"]) < 1e-4
    assert abs(found["nll"] - exact["nll"]) < 1e-4 * max(1, exact["nll"])


@settings(deadline=None)
@given(st.floats(-110, 110))
def test_a_probability_is_kept_to_as_many_digits_as_is_said(log_odds):
    (found,) = decoded(encoded(np.array([log_odds])))
    assert abs(found - log_odds) <= 1.0001 * np.hypot(1, log_odds) / 12_000
    assert abs(1 / (1 + np.exp(-found)) - 1 / (1 + np.exp(-log_odds))) < 2.4e-5


def test_certain_and_impossible_classes():
    """Probabilities of exactly 0 and 1, and logits that are all the same."""
    codes = compact(np.array([[0.0, -np.inf], [5.0, 5.0]]), np.array([0, 1]))
    assert codes.tolist() == [[0, 0], [65535, 32768], [65535, 32768]]
    wrong = compact(np.array([[0.0, -np.inf]]), np.array([1]))
    assert 100 < measures(wrong, np.array([1]))["nll"] < 120


def test_one_class_is_certain():
    assert measures(compact(np.zeros((3, 1)), np.zeros(3, int)), np.zeros(3))["accuracy"] == 1


def finished(directory, seed, logits, labels, features=True) -> Run:
    kept = {"logits": logits, "labels": labels}
    if features:
        kept["features"] = torch.zeros(len(labels), 2)
    with RunStore(directory).claim(BASE.replace({"seed": seed})) as writer:
        return writer.finish({}, {"test": kept}, [{"epoch": 1}], {})


@pytest.fixture
def runs(tmp_path):
    """Three runs: one kept scores only, and one was measured on other labels."""
    found = []
    for seed in range(3):
        logits, labels = said(500, seed=seed)
        labels = said(500)[1] if seed < 2 else labels
        found.append(finished(tmp_path / "runs", seed, logits, labels, features=seed > 0))
    return found


def test_all_runs_come_back_by_their_ids(runs, tmp_path):
    path = tmp_path / "predictions.npz"
    assert export_predictions(runs, path) == 3
    found = recomputed(path)
    assert sorted(found) == sorted(run.id for run in runs)
    for run in runs:
        kept = run.predictions("test")
        exact = exactly(kept.logits, kept.labels)
        assert found[run.id]["accuracy"] == exact["accuracy"]
        assert abs(found[run.id]["ece"] - exact["ece"]) < 1e-4
    with np.load(path) as file:
        first = min(runs, key=lambda run: run.id).predictions("test").labels
        others = [run.id for run in runs if not torch.equal(run.predictions("test").labels, first)]
        assert others
        assert {*file.files} == {"labels", *(run.id for run in runs), *(f"{run}.labels" for run in others)}


def test_the_same_runs_give_the_same_bytes(runs, tmp_path):
    export_predictions(runs, tmp_path / "a.npz")
    export_predictions(reversed(runs), tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_runs_that_kept_nothing_are_left_out(runs, tmp_path):
    with RunStore(tmp_path / "runs").claim(BASE.replace({"seed": 9})) as writer:
        bare = writer.finish({}, {}, [{"epoch": 1}], {})
    assert export_predictions([*runs, bare], tmp_path / "p.npz") == 3
    with pytest.raises(RunError, match="no run has predictions on 'test'"):
        export_predictions([bare], tmp_path / "p.npz")


def test_scores_alone_are_predictions_without_features(runs):
    kept = runs[0].predictions("test")
    assert kept.features.shape == (500, 0)
    assert [run.has_only_scores("test") for run in runs] == [True, False, False]


@pytest.mark.parametrize("content", [b"", b"PK", b"no zip at all"])
def test_a_file_of_something_else_is_refused(tmp_path, content):
    path = tmp_path / "p.npz"
    path.write_bytes(content)
    with pytest.raises(RunError, match="is not a file of predictions"):
        recomputed(path)


@pytest.mark.parametrize(
    "arrays", [{"labels": np.zeros(3)}, {"labels": np.zeros(3), "abc": np.zeros((3, 2))}, {"x": np.zeros(2)}]
)
def test_other_arrays_are_refused(tmp_path, arrays):
    np.savez(tmp_path / "p.npz", **arrays)
    with pytest.raises(RunError, match="runs export --predictions"):
        recomputed(tmp_path / "p.npz")


def test_the_lines_in_the_readme_of_the_results_compute_the_same(runs, tmp_path, monkeypatch):
    """What a reader without this package would do."""
    text = (Path(__file__).parents[2] / "results" / "README.md").read_text()
    (lines,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    (tmp_path / "results" / "mnist-distillation").mkdir(parents=True)
    export_predictions(runs, tmp_path / "results" / "mnist-distillation" / "predictions.npz")
    monkeypatch.chdir(tmp_path)
    told: list[tuple] = []
    exec(lines, {"print": lambda *given: told.append(given)})
    known = recomputed(tmp_path / "results" / "mnist-distillation" / "predictions.npz")
    assert len(told) == 3
    for run, *numbers in told:
        for number, name in zip(numbers, ("error", "nll", "ece"), strict=True):
            assert number == pytest.approx(known[run][name], abs=1e-12)
