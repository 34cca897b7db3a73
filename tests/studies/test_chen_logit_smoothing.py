"""Logit smoothing: its recipes, its measures against plain loops, its claims, and the page."""

from __future__ import annotations

import json
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from softtargets.claims import judge
from softtargets.recipes import Digits, ForwardCorrection, LabelSmoothing, LogitSmoothing
from softtargets.runs import RunStore
from softtargets.studies import STUDIES, Outcome, Results, find_study, run_study
from softtargets.studies.chen_logit_smoothing.findings import findings
from softtargets.studies.chen_logit_smoothing.grid import moved
from softtargets.studies.chen_logit_smoothing.measures import chain, measure
from softtargets.training import train
from studies.written import Written

STUDY, PLANE = find_study(STUDIES, "chen-logit-smoothing"), find_study(STUDIES, "chen-mnist")


@pytest.mark.parametrize("size", ["small", "full"])
def test_every_method_meets_the_same_noise(size):
    trials = STUDY.trials(STUDY.settings(seeds=2, changes={"size": size}))
    assert len({trial.recipe.id for trial in trials}) == len(trials)
    for trial in trials:
        a, p, method = (trial.labels[key] for key in ("a", "p", "method"))
        assert trial.recipe.noise.rate == pytest.approx(1 - a)
        loss = trial.recipe.regulariser
        if method == "forward correction":
            assert (loss, p) == (ForwardCorrection(), a)
        elif method == "logit smoothing":
            assert isinstance(loss, LogitSmoothing)
            # The diagonal of (1 - alpha) I + alpha / 10.
            assert 1 - loss.alpha + loss.alpha / 10 == pytest.approx(p, abs=1e-6)
        elif method == "label smoothing":
            assert isinstance(loss, LabelSmoothing)
            assert (loss.alpha, loss.spread) == (pytest.approx(1 - p), "others")
        else:
            assert (loss.name, p) == ("cross_entropy", 1.0)


def test_runs_without_new_losses_are_those_of_the_plane():
    theirs = {trial.recipe.id for trial in PLANE.trials(PLANE.settings())}
    for trial in STUDY.trials(STUDY.settings()):
        known = trial.labels["method"] in ("label smoothing", "none")
        assert (trial.recipe.id in theirs) == known


def by_loops(h: list[float], p: float) -> tuple[float, float, float]:
    classes = len(h)

    def softmax(values: list[float]) -> list[float]:
        total = sum(math.exp(value) for value in values)
        return [math.exp(value) / total for value in values]

    S = [[p if i == j else (1 - p) / (classes - 1) for j in range(classes)] for i in range(classes)]
    said = softmax(h)
    label = sum(S[i][j] * math.log(said[j]) for i in range(classes) for j in range(classes))
    forward = sum(math.log(sum(S[i][j] * said[j] for j in range(classes))) for i in range(classes))
    smoothed = softmax([sum(S[i][j] * h[j] for j in range(classes)) for i in range(classes)])
    return label, forward, sum(math.log(value) for value in smoothed)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(-8, 8), min_size=2, max_size=5), st.floats(0.3, 0.99))
def test_the_chain_by_plain_loops_and_its_first_inequality_always(h, p):
    found = [float(value) for value in chain(torch.tensor([h], dtype=torch.float64), p)]
    assert found == pytest.approx(by_loops(h, p), rel=1e-9, abs=1e-9)
    assert found[0] <= found[1] + 1e-9


@pytest.mark.parametrize("method", ["label smoothing", "logit smoothing", "forward correction", "none"])
def test_losses_as_they_stand_and_as_trained_by_plain_loops(method):
    generator = torch.Generator().manual_seed(5)
    logits, labels = 3 * torch.randn(12, 10, generator=generator), torch.arange(12) % 10
    a, p = 0.8, {"forward correction": 0.8, "none": 1.0}.get(method, 0.7)
    trial = STUDY.trials(STUDY.settings(seeds=1))[0]
    found = measure(type(trial)(trial.recipe, {"method": method, "a": a, "p": p}), Written(logits, labels))
    loss = trained = 0.0
    for row, label in zip(logits.double().tolist(), labels.tolist(), strict=True):
        said = [math.exp(value) / sum(math.exp(other) for other in row) for value in row]
        loss -= math.log(said[label]) / 12
        seen = said
        if method == "logit smoothing":
            mixed = [p * row[i] + sum((1 - p) / 9 * row[j] for j in range(10) if j != i) for i in range(10)]
            seen = [math.exp(value) / sum(math.exp(other) for other in mixed) for value in mixed]
        if method == "forward correction":
            seen = [a * said[i] + sum(0.2 / 9 * said[j] for j in range(10) if j != i) for i in range(10)]
        trained -= math.log(seen[label]) / 12
    assert found["loss"] == pytest.approx(loss)
    assert found["loss_trained"] == pytest.approx(trained, rel=1e-5)
    assert (found["early_accuracy"], found["by_heart"]) == (0.6, 0.75)
    assert ("next" in found) == (p < 1)


def test_moved_mass_is_named_by_a_short_number():
    assert [moved(p) for p in (0.5, 0.91, 1.0)] == [0.555556, 0.1, 0.0]


class Provided:
    provenance = {"examples": {"train": 2000, "test": 100}}  # noqa: RUF012


def made_up(
    logit: float = 0.1,
    logit_trained: float = 0.01,
    accuracy: float = -0.01,
    label: float = -0.2,
    first: float = 1.0,
    second: float = 0.4,
) -> Results:
    """Four seeds; numbers are differences from no remedy at p = 0.8, and worse by 0.05 at other p."""
    outcomes = []
    for trial in STUDY.trials(STUDY.settings()):
        method, p = trial.labels["method"], trial.labels["p"]
        worse, jitter = 0.0 if p == 0.8 else 0.05, 1e-4 * trial.recipe.seed
        loss = {"label smoothing": label + worse, "logit smoothing": logit + worse}.get(method, 0.0)
        trained = logit_trained + worse if method == "logit smoothing" else loss
        right = accuracy - worse if method == "logit smoothing" else 0.0
        # Seeds differ in all methods alike, and a little in each.
        own = jitter if method != "none" else 0.0
        measures = {
            "loss": 1.5 + loss + own,
            "loss_trained": 1.5 + trained + own,
            "accuracy": 0.7 + right + own,
            "early_accuracy": 0.8,
            "by_heart": 0.9,
            "jensen": first,
            "next": second,
        }
        outcomes.append(Outcome(trial, Provided(), measures))
    return Results(tuple(outcomes))


@pytest.mark.parametrize(
    ("turned", "fallen"),
    [
        ({}, {0, 1, 2, 5}),
        ({"logit": -0.1}, {1, 2, 5}),
        ({"logit_trained": -0.1}, {0, 2, 5}),
        ({"accuracy": 0.03}, {0, 1, 5}),
        ({"label": 0.1}, {0, 1, 2, 3, 5}),
        ({"first": 0.9}, {0, 1, 2, 4, 5}),
        ({"second": 1.0}, {0, 1, 2}),
    ],
)
def test_a_claim_falls_when_its_own_numbers_turn(turned, fallen):
    found = judge(findings(made_up(**turned)).claims)
    assert {place for place, one in enumerate(found) if one.verdict == "contradicted"} == fallen
    assert {one.verdict for one in found} <= {"reproduced", "contradicted"}


def test_the_best_p_is_chosen_with_one_seed_and_judged_on_the_others():
    """Seed 0 gains at p = 0.5, where the others lose: chosen there, it is judged by what they lose."""
    results = made_up()
    turned = tuple(
        Outcome(o.trial, o.run, o.measures | {"loss": 1.0 if o.seed == 0 else 1.7})
        if (o.trial.labels["method"], o.trial.labels["p"]) == ("logit smoothing", 0.5)
        else o
        for o in results.outcomes
    )
    claim = findings(Results(turned)).claims[0]
    assert claim.sample.values == pytest.approx((0.2, 0.2, 0.2))
    assert claim.verdict == "contradicted"


def test_the_whole_study_on_a_few_digits(tmp_path):
    changes = {"data": Digits(limit=60), "model.hidden": (16,), "epochs": 2, "batch": 30}
    store, chosen = RunStore(tmp_path / "runs"), STUDY.settings(seeds=1, changes=changes)
    page = run_study(STUDY, chosen, store, tmp_path / "report", command="c", train=train, device="cpu")
    results = json.loads((page.parent / "results.json").read_text())
    assert results["warnings"] == []
    assert len(results["claims"]) == 6
    assert results["claims"][4]["measured"]["mean"] == 1.0
    trial = next(t for t in STUDY.trials(chosen) if t.labels["method"] == "forward correction")
    row = next(
        row
        for row in results["tables"]["four_ways"]
        if (row["method"], row["a"]) == ("forward correction", trial.labels["a"])
    )
    assert row["loss"]["mean"] == pytest.approx(store.find(trial.recipe).summary["test_loss"], rel=1e-5)
    assert (page.parent / "figures" / "four_ways.svg").stat().st_size > 5_000
    assert "small size: 60 training images" in page.read_text()
