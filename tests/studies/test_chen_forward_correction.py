"""Noise in one direction: its recipes, predictions by simulation, measures by plain loops, claims, and the page."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import torch

from softtargets.claims import judge
from softtargets.recipes import ClassConditional, CrossEntropy, Digits, ForwardCorrection, LabelSmoothing
from softtargets.runs import RunStore
from softtargets.studies import STUDIES, Outcome, Results, find_study, run_study
from softtargets.studies.chen_forward_correction.findings import findings
from softtargets.studies.chen_forward_correction.grid import METHODS, MIXED, targets, transitions
from softtargets.studies.chen_forward_correction.measures import expected, measure
from softtargets.training import train
from studies.written import Written

STUDY = find_study(STUDIES, "chen-forward-correction")
NOISES = [("pair", 0.3), ("pair", 0.45), ("alike", 0.45)]


def by_bayes(T: np.ndarray) -> list[list[float]]:
    """Clean classes behind each given label, counted out of 1,000,000 examples of each class."""
    counts = [[1_000_000 * T[i][k] for i in range(10)] for k in range(10)]
    return [[count / sum(row) for count in row] for row in counts]


@pytest.mark.parametrize(("size", "noises"), [("small", 3), ("full", 6)])
def test_every_method_meets_the_same_noise(size, noises):
    trials = STUDY.trials(STUDY.settings(seeds=2, changes={"size": size}))
    assert len({trial.recipe.id for trial in trials}) == len(trials) == 2 * noises * 5
    for trial in trials:
        method, loss, noise = trial.labels["method"], trial.recipe.regulariser, trial.recipe.noise
        T = transitions(trial.labels["noise"], trial.labels["rate"])
        assert not np.allclose(T, T.T)
        assert isinstance(noise, ClassConditional)
        assert noise.type == "alpha"
        assert np.array(noise.matrix) == pytest.approx(T)
        if method == "none":
            assert loss == CrossEntropy()
        elif method == "forward":
            assert loss == ForwardCorrection()
        elif method == "uniform":
            right = sum(T[i][i] for i in range(10)) / 10
            assert (loss.alpha, loss.spread, loss.matrix) == (pytest.approx(1 - right), "others", None)
        else:
            assert isinstance(loss, LabelSmoothing)
            assert (loss.alpha, loss.spread) == (1, "all")
            mixed = [[(1 - MIXED) * T[i][j] + MIXED / 10 for j in range(10)] for i in range(10)]
            matrix = mixed if method == "S = T" else by_bayes(T)
            assert np.array(loss.matrix) == pytest.approx(np.array(matrix), abs=1e-6)


def test_digits_taken_for_others_by_hand():
    T = transitions("alike", 0.25)
    taken = {(i, j) for i in range(10) for j in range(10) if i != j and T[i, j] == 0.25}
    assert taken == {(2, 7), (3, 8), (5, 6), (6, 5), (7, 1)}
    assert np.count_nonzero(T) == 15
    assert T.sum(1) == pytest.approx(1)
    assert [transitions("pair", 0.3)[9, j] for j in (9, 0)] == pytest.approx([0.7, 0.3])


def by_events(S, T, averaging: bool) -> float:
    """The mean over clean classes, given label by given label."""
    loss = 0.0
    for i in range(10):
        said = sum(T[i][k] * S[k][i] for k in range(10))
        if averaging:
            loss -= math.log(said) / 10
            continue
        for k in range(10):
            if T[i][k] > 0:
                loss -= T[i][k] * (math.log(S[k][i]) if S[k][i] > 0 else -math.inf) / 10
    return loss


@pytest.mark.parametrize(("kind", "rate"), NOISES)
@pytest.mark.parametrize("method", [method for method in METHODS if method != "forward"])
def test_predictions_are_means_over_all_that_can_happen(kind, rate, method):
    T = transitions(kind, rate)
    found = expected(method, T)
    S = targets(method, T)
    assert S.sum(1) == pytest.approx(1)
    assert found.by_heart == pytest.approx(by_events(S, T, averaging=False))
    assert found.averaging == pytest.approx(by_events(S, T, averaging=True))
    # The logarithm is concave.
    assert found.averaging <= found.by_heart + 1e-12
    assert math.isinf(found.by_heart) == (method == "none")


@pytest.mark.parametrize(("kind", "rate"), NOISES)
def test_bayes_has_the_lowest_prediction_by_heart(kind, rate):
    T = transitions(kind, rate)
    losses = {method: expected(method, T).by_heart for method in METHODS}
    assert min(losses, key=losses.get) == "S by Bayes"
    # Any other matrix costs more.
    rng = np.random.default_rng(0)
    best = targets("S by Bayes", T)
    for _ in range(20):
        other = 0.9 * best + 0.1 * rng.dirichlet(np.ones(10), 10)
        assert by_events(other, T, averaging=False) > losses["S by Bayes"]


@pytest.mark.parametrize(("kind", "rate"), NOISES)
def test_forward_correction_predicted_by_fitting_free_outputs(kind, rate):
    """Outputs that fit labels best through T, by EM: one for each label (by heart), or each class (averages)."""
    T = transitions(kind, rate)
    for weights in (np.eye(10), T):
        p = np.full((10, 10), 0.1)
        for _ in range(5000):
            p = p * ((weights / np.maximum(p @ T, 1e-300)) @ T.T)
        assert p.sum(1) == pytest.approx(1)
        if weights is T:
            assert p == pytest.approx(np.eye(10), abs=0.01)
        else:
            assert p == pytest.approx(np.eye(10)[T.argmax(0)], abs=0.01)
    assert expected("forward", T).averaging == 0
    assert expected("forward", T).by_heart == math.inf


def trial_of(method, kind="pair", rate=0.3):
    one = STUDY.trials(STUDY.settings(seeds=1))[0]
    return type(one)(one.recipe, {"method": method, "noise": kind, "rate": rate})


@pytest.mark.parametrize("method", METHODS)
def test_measures_by_plain_loops(method):
    generator = torch.Generator().manual_seed(5)
    logits, labels = 3 * torch.randn(12, 10, generator=generator), torch.arange(12) % 10
    found = measure(trial_of(method), Written(logits, labels))
    loss = through = right = 0.0
    bins: dict[int, list[tuple[float, bool]]] = {}
    for row, label in zip(logits.double().tolist(), labels.tolist(), strict=True):
        said = [math.exp(value) / sum(math.exp(other) for other in row) for value in row]
        loss -= math.log(said[label]) / 12
        # A given label is this one if the class is it and stays, or is the one before and does not.
        through -= math.log(0.7 * said[label] + 0.3 * said[label - 1]) / 12
        top = max(said)
        right += (said.index(top) == label) / 12
        bins.setdefault(math.ceil(15 * top), []).append((top, said.index(top) == label))
    ece = sum(abs(sum(sure - hit for sure, hit in members)) for members in bins.values()) / 12
    assert found["loss"] == pytest.approx(loss)
    assert found["accuracy"] == pytest.approx(right)
    assert found["ece"] == pytest.approx(ece)
    assert (found["early_accuracy"], found["by_heart"]) == (0.6, 0.75)
    assert ("through" in found) == (method == "forward")
    if method == "forward":
        assert found["through"] == pytest.approx(through)
    known = method not in ("none", "forward")
    assert ("deviation" in found) == known
    if known:
        by_heart = by_events(targets(method, transitions("pair", 0.3)), transitions("pair", 0.3), False)
        assert found["deviation"] == pytest.approx(loss / by_heart - 1)


@pytest.mark.parametrize("method", ["uniform", "S = T", "S by Bayes"])
def test_a_net_that_has_learned_by_heart_does_not_deviate(method):
    T = transitions("alike", 0.45)
    S = targets(method, T)
    said, labels = [], []
    for clean in range(10):
        for given, chance in enumerate(T[clean]):
            said += [S[given]] * round(100 * chance)
            labels += [clean] * round(100 * chance)
    logits = torch.from_numpy(np.array(said)).log()
    found = measure(trial_of(method, "alike", 0.45), Written(logits, torch.tensor(labels)))
    assert found["deviation"] == pytest.approx(0, abs=1e-9)


def test_a_net_that_is_quite_sure_and_wrong_has_a_finite_loss_through_the_noise():
    logits = torch.full((1, 10), -2000.0)
    logits[0, 5] = 0.0
    found = measure(trial_of("forward"), Written(logits, torch.tensor([0])))
    assert math.isfinite(found["through"])
    assert found["loss"] == pytest.approx(2000)


class Provided:
    provenance = {"examples": {"train": 2000, "test": 100}}  # noqa: RUF012


def made_up(turned: dict[str, dict[str, float]] | None = None, seeds: int = 3) -> Results:
    """Claims stand, but for what is turned: by method, in one of the noises only."""
    usual = {
        "none": {"loss": 2.0, "accuracy": 0.7, "ece": 0.2},
        "uniform": {"loss": 1.0, "accuracy": 0.75, "ece": 0.3},
        "S = T": {"loss": 1.5, "accuracy": 0.6, "ece": 0.2},
        "S by Bayes": {"loss": 0.8, "accuracy": 0.8, "ece": 0.25, "deviation": -0.02},
        "forward": {"loss": 0.6, "accuracy": 0.85, "ece": 0.05, "through": 0.82},
    }
    outcomes = []
    for trial in STUDY.trials(STUDY.settings(seeds=seeds)):
        method, jitter = trial.labels["method"], 1e-4 * trial.recipe.seed
        last = (trial.labels["noise"], trial.labels["rate"]) == NOISES[-1]
        changed = (turned or {}).get(method, {}) if last else {}
        own = jitter * METHODS.index(method)
        measures = {key: value + own for key, value in (usual[method] | changed).items()}
        outcomes.append(Outcome(trial, Provided(), measures | {"early_accuracy": 0.9, "by_heart": 0.9}))
    return Results(tuple(outcomes))


@pytest.mark.parametrize(
    ("turned", "fallen"),
    [
        ({}, set()),
        ({"S = T": {"loss": 0.7}}, set()),  # in one noise it is the best, in the others not
        ({"S = T": {"accuracy": 0.82}}, {1}),
        ({"uniform": {"loss": 0.7}}, {2}),
        ({"none": {"loss": 0.7}}, {3}),
        ({"S by Bayes": {"deviation": -0.2}}, {4}),
        ({"forward": {"through": 1.0}}, {5}),
        ({"forward": {"loss": 0.9}}, {6}),
        ({"forward": {"accuracy": 0.7}}, {7}),
        ({"forward": {"ece": 0.4}}, {8}),
    ],
)
def test_a_claim_falls_when_its_own_numbers_turn_in_one_of_the_noises(turned, fallen):
    found = judge(findings(made_up(turned)).claims)
    assert len(found) == 9
    # That the printed matrix is the best falls in all of these.
    assert {place for place, one in enumerate(found) if one.verdict == "contradicted"} == {0} | fallen
    assert {one.verdict for one in found} <= {"reproduced", "contradicted"}
    assert all(found[place].claim.worst == "alike 0.45" for place in fallen)


def test_the_printed_matrix_is_the_best_where_it_is_so_in_every_noise():
    worse = {"loss": 1.8}
    whole = made_up()
    turned = Results(
        tuple(
            Outcome(o.trial, o.run, o.measures | (worse if o.trial.labels["method"] == "S by Bayes" else {}))
            for o in whole.outcomes
        )
    )
    assert judge(findings(turned).claims)[0].verdict == "reproduced"


def test_beside_a_claim_stands_what_each_noise_says():
    found = findings(made_up({"forward": {"loss": 0.9}})).claims
    assert found[6].measured == "−0.200 at pair 0.3, −0.200 at pair 0.45, +0.100 at alike 0.45"
    assert found[4].measured == "−0.020 at pair 0.3, −0.020 at pair 0.45, −0.020 at alike 0.45"
    # 0.85 against 0.8, and 0.8 against 0.6: differences of accuracies are in points.
    assert found[7].measured == "+5.0 at pair 0.3, +5.0 at pair 0.45, +5.0 at alike 0.45 points"
    assert found[1].sample.mean == pytest.approx(20, abs=0.1)
    assert {claim.unit for claim in (found[1], found[7])} == {"points"}


def test_a_seed_whose_run_failed_does_not_count():
    whole = made_up(seeds=4)
    rest = Results(whole.outcomes[:-1])
    assert findings(whole).claims[0].sample.n == 4
    found = findings(rest)
    # The run that failed was that of forward correction in the last noise.
    least = [min(sample.n for _, sample in claim.cells) for claim in found.claims]
    assert least == [4, 4, 4, 4, 3, 3, 3, 3, 3]
    rows = found.sections[1].exhibits[0].data.rows
    assert rows[-1]["loss"].n == 3


def test_the_whole_study_on_a_few_digits(tmp_path):
    changes = {"data": Digits(limit=60), "model.hidden": (16,), "epochs": 1, "batch": 30}
    store, chosen = RunStore(tmp_path / "runs"), STUDY.settings(seeds=1, changes=changes)
    page = run_study(STUDY, chosen, store, tmp_path / "report", command="c", train=train, device="cpu")
    results = json.loads((page.parent / "results.json").read_text())
    assert results["warnings"] == []
    assert len(results["claims"]) == 9
    assert {claim["verdict"] for claim in results["claims"]} == {"not run yet"}
    rows = results["tables"]["five_ways"]
    assert len(rows) == 15
    for trial in STUDY.trials(chosen):
        (row,) = [
            row for row in rows if all(row[key] == trial.labels[key] for key in ("noise", "rate", "method"))
        ]
        summary = store.find(trial.recipe).summary
        assert row["loss"]["mean"] == pytest.approx(summary["test_loss"], rel=1e-5)
        assert row["accuracy"]["mean"] == pytest.approx(summary["test_accuracy"])
    for name in ("matrices", "five_ways"):
        assert (page.parent / "figures" / f"{name}.svg").stat().st_size > 5_000
    assert "small size: 60 training images" in page.read_text()
