"""Speed and transfer: how they are measured, their claims, pages."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch

from softtargets.claims import judge
from softtargets.recipes import MLP, SGD, Digits, Recipe
from softtargets.runs import RunStore
from softtargets.studies import STUDIES, Place, Trial, find_study, run_study
from softtargets.studies.muller_text import transfer
from softtargets.studies.muller_text.grid import GOALS, epochs_to
from softtargets.studies.muller_text.transfer import Transfer, linear_probe
from softtargets.training import train
from tests.studies.making import told, written

STUDY = find_study(STUDIES, "muller-text")
EPOCHS = {"dropout": 40.0, "smoothing": 10.0, "neither": 20.0}


def made_up(transfers=(0.8, 0.7), **epochs):
    needed = EPOCHS | epochs

    def measures(trial):
        jitter = 1e-3 * trial.recipe.seed
        if trial.labels["network"] == "fcn":
            return {"epochs_to_goal": needed[trial.labels["targets"]] + jitter, "accuracy": 0.99}
        place = int(trial.labels["alpha"] > 0)
        return {"transfer_accuracy": transfers[place] + 1e-4 * trial.recipe.seed, "accuracy": 0.7}

    return told(STUDY, measures)


@pytest.mark.parametrize(
    ("changed", "fallen"),
    [
        ({}, set()),
        ({"dropout": 5.0}, {0}),
        ({"neither": 5.0}, {1}),
        ({"transfers": (0.7, 0.8)}, {2}),
    ],
)
def test_a_claim_falls_when_its_own_numbers_turn(changed, fallen):
    judged = judge(STUDY.findings(made_up(**changed)).claims)
    assert {place for place, one in enumerate(judged) if one.verdict == "contradicted"} == fallen
    assert all(one.verdict == "reproduced" for place, one in enumerate(judged) if place not in fallen)


def test_small_differences_are_no_effect():
    judged = judge(STUDY.claims(made_up(neither=10.1, transfers=(0.8, 0.8))))
    assert [one.verdict for one in judged] == ["reproduced", "no effect", "no effect"]


def test_teachers_differ_in_targets_and_dropout_alone():
    trials = [
        trial for trial in STUDY.trials(STUDY.settings(1, {"size": "full"})) if "targets" in trial.labels
    ]
    by_name = {trial.labels["targets"]: trial.recipe for trial in trials}
    assert by_name["dropout"] == by_name["neither"].replace({"model.dropout": 0.5})
    assert by_name["smoothing"] == by_name["neither"].replace(
        {"regulariser": by_name["smoothing"].regulariser}
    )
    assert by_name["smoothing"].regulariser.alpha == 0.1


def test_a_goal_that_is_never_reached_counts_as_one_epoch_more():
    history = [{"epoch": 1, "test_accuracy": 0.5}, {"epoch": 2, "test_accuracy": 0.6}]
    assert epochs_to(history, 0.6) == 2
    assert epochs_to(history, 0.7) == 3
    assert GOALS["full"] == 0.99


def test_the_probe_learns_what_is_linear_and_not_what_is_not():
    draw = torch.Generator().manual_seed(0)
    # Of very different scales, which standardising undoes.
    z = torch.randn(400, 6, generator=draw)
    x = z * torch.tensor([1.0, 100.0, 0.01, 1.0, 1.0, 1.0]) + 5
    linear = (z @ torch.randn(6, 3, generator=draw)).argmax(1)
    crossed = ((x[:, 0] > 5) ^ (x[:, 1] > 5)).long()
    assert linear_probe(x[:300], linear[:300], x[300:], linear[300:], (1e-3,)) > 0.9
    assert linear_probe(x[:300], crossed[:300], x[300:], crossed[300:], (1e-3,)) < 0.7


def test_the_probe_is_scikit_learns_regression():
    model = pytest.importorskip("sklearn.linear_model")
    draw = torch.Generator().manual_seed(1)
    x = torch.randn(300, 4, generator=draw).double()
    y = (x @ torch.randn(4, 3, generator=draw).double() + torch.randn(300, 3, generator=draw)).argmax(1)
    inputs = (x - x[:200].mean(0)) / x[:200].std(0)
    theirs = model.LogisticRegression(C=1 / (200 * 0.01), max_iter=2000).fit(inputs[:200], y[:200])
    ours = linear_probe(x[:200], y[:200], x[200:], y[200:], penalties=(0.01,))
    assert ours == pytest.approx(theirs.score(inputs[200:], y[200:]), abs=0.011)


def test_transfer_is_measured_on_another_dataset_with_the_trained_model(tmp_path, monkeypatch):
    monkeypatch.setattr(transfer, "TARGETS", {"small": (Digits(limit=300), 200)})
    recipe = Recipe(
        data=Digits(limit=200),
        model=MLP(hidden=(32,)),
        optimiser=SGD(lr=0.1, momentum=0.9),
        epochs=5,
        batch=32,
    )
    (run,) = train([recipe], RunStore(tmp_path), device="cpu")
    measure = Transfer(Place(None, "cpu"))
    found = measure(Trial(recipe, {"network": "cifar100", "alpha": 0.0, "size": "small"}), run)
    # The same from the stored test activations, and those of the training digits made by hand.
    test = run.predictions("test")
    weights = run.weights()
    from softtargets.data import load

    digits = load("digits", "train")
    layer, bias = (value for name, value in weights.items() if not name.startswith("head"))
    if layer.ndim == 1:
        layer, bias = bias, layer
    hidden = (torch.tensor(digits.images[:200]).flatten(1).float() / 255 @ layer.T + bias).relu()
    again = linear_probe(hidden, torch.tensor(digits.labels[:200]), test.features, test.labels)
    assert found == {"transfer_accuracy": pytest.approx(again, abs=0.01)}
    assert found["transfer_accuracy"] > 0.7
    assert measure(Trial(recipe, {"network": "fcn", "size": "small"}), run) == {}


def test_pages_from_all_and_from_some_runs(tmp_path):
    study = replace(STUDY, again=None)  # the networks of these runs were never trained
    store, settings = RunStore(tmp_path / "runs"), study.settings(1, {"size": "full"})
    trials = study.trials(settings)
    written(store, next(trial for trial in trials if trial.labels["network"] == "cifar100"))
    some = run_study(study, settings, store, tmp_path / "some", command="c", train=None, device="cpu")
    assert not (some.parent / "figures").exists()
    for trial in trials:
        if store.find(trial.recipe) is None:
            written(store, trial)
    every = run_study(study, settings, store, tmp_path / "every", command="c", train=None, device="cpu")
    assert (every.parent / "figures" / "learning.svg").is_file()
    results = json.loads((every.parent / "results.json").read_text())
    assert [row["epochs_to_goal"]["mean"] for row in results["tables"]["speed"]] == [3.0] * 3
    assert "<b>3.0, then 3.0 epochs</b>" in every.read_text(encoding="utf-8")
