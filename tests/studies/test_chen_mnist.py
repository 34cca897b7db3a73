"""The plane of clean rates and smoothings: its recipes, its measures against plain loops, its claims, and the page."""

from __future__ import annotations

import csv
import json
import math

import numpy as np
import pytest
import torch

from softtargets.claims import Sample, judge
from softtargets.data import load
from softtargets.recipes import (
    CNN,
    MLP,
    MNIST,
    SGD,
    Clean,
    Constant,
    CrossEntropy,
    Digits,
    LabelSmoothing,
    Symmetric,
)
from softtargets.runs import RunStore
from softtargets.studies import STUDIES, Outcome, Results, find_study, run_study
from softtargets.studies.chen_plane.claims import claims
from softtargets.studies.chen_plane.drawing import map_panels, reach
from softtargets.studies.chen_plane.findings import cells_away
from softtargets.studies.chen_plane.grid import best_p, best_ps
from softtargets.studies.chen_plane.measures import both_losses, measure, target_entropy, with_gamma
from softtargets.theory import generalization_loss
from softtargets.training import train
from studies.written import Written

STUDY = find_study(STUDIES, "chen-mnist")


@pytest.mark.parametrize(("size", "cells"), [("small", 5 * 8), ("full", 10 * 12)])
def test_every_cell_of_the_plane_is_trained_as_its_labels_say(size, cells):
    trials = STUDY.trials(STUDY.settings(seeds=2, changes={"size": size}))
    assert len({trial.recipe.id for trial in trials}) == 2 * cells
    for trial in trials:
        a, p, loss, wrong = trial.labels["a"], trial.labels["p"], trial.recipe.regulariser, trial.recipe.noise
        assert trial.labels["size"] == size
        if p == 1:
            assert loss == CrossEntropy()
        else:
            assert isinstance(loss, LabelSmoothing)
            assert (loss.alpha, loss.spread) == (pytest.approx(1 - p, abs=1e-12), "others")
        if a == 1:
            assert wrong == Clean()
        else:
            assert isinstance(wrong, Symmetric)
            assert (wrong.rate, wrong.type) == (pytest.approx(1 - a, abs=1e-12), "alpha")


def test_the_full_size_is_the_papers_training_and_the_default_is_not():
    for trial in STUDY.trials(STUDY.settings(seeds=1, changes={"size": "full"})):
        recipe = trial.recipe
        assert (recipe.data, recipe.model) == (MNIST(), CNN())
        assert recipe.optimiser == SGD(lr=0.01, momentum=0.9, weight_decay=0.0)
        assert recipe.schedule == Constant()
        assert (recipe.epochs, recipe.batch, recipe.augmentation) == (100, 128, ())
    small = STUDY.trials(STUDY.settings(seeds=1))[0].recipe
    assert (small.data, small.model) == (MNIST(limit=2000), MLP(hidden=(128,)))


def test_both_losses_by_plain_loops():
    generator = torch.Generator().manual_seed(3)
    logits, labels = torch.randn(20, 4, generator=generator), torch.randint(4, (20,), generator=generator)
    clean = beta = 0.0
    for row, label in zip(logits.double().tolist(), labels.tolist(), strict=True):
        total = math.log(sum(math.exp(value) for value in row))
        for tested, value in enumerate(row):
            chance = 0.7 if tested == label else 0.3 / 3
            beta += chance * (total - value) / 20
        clean += (total - row[label]) / 20
    assert both_losses(logits, labels, a=0.7) == pytest.approx((clean, beta))
    assert both_losses(logits, labels, a=1.0)[1] == pytest.approx(clean)


@pytest.mark.parametrize("p", [0.1, 0.6, 0.95])
def test_the_entropy_of_a_target_by_hand(p):
    by_hand = -p * math.log(p) - sum((1 - p) / 9 * math.log((1 - p) / 9) for _ in range(9))
    assert target_entropy(p, 10) == pytest.approx(by_hand)


def said_by(a: float, p: float, averaging: bool):
    """What a net says of 900 test examples of class 0 that has learned its labels by heart, or only on the average."""
    wrong = round((1 - a) * 900 / 9)  # of each other class
    labels = [0] * (900 - 9 * wrong) + [k for k in range(1, 10) for _ in range(wrong)]
    targets = torch.full((900, 10), (1 - p) / 9, dtype=torch.float64)
    targets[range(900), labels] = p
    if averaging:
        targets = targets.mean(0, keepdim=True).expand(900, 10)
    return targets.log(), torch.zeros(900, dtype=torch.long)


@pytest.mark.parametrize(("averaging", "position"), [(False, 1.0), (True, 0.0)])
def test_a_net_that_does_what_the_theory_supposes_does_not_deviate(averaging, position):
    a, p = 0.8, 0.9
    trial = STUDY.trials(STUDY.settings(seeds=1))[0]
    trial = type(trial)(trial.recipe, {"a": a, "p": p})
    history = [
        {"test_loss": 0.5, "test_accuracy": 0.9, "train_accuracy": 0.5, "train_loss": 1.0},
        {
            "test_loss": 0.7,
            "test_accuracy": 0.8,
            "train_accuracy": 1.0,
            "train_loss": target_entropy(p, 10) + 0.25,
        },
    ]
    found = measure(trial, Written(*said_by(a, p, averaging), history))
    for kind in ("alpha", "beta", "gamma"):
        assert found[f"position_{kind}"] == pytest.approx(position, abs=1e-9)
    if not averaging:
        assert found["deviation_alpha"] == pytest.approx(0, abs=1e-9)
        assert found["deviation_beta"] == pytest.approx(0, abs=1e-9)
        assert found["deviation_gamma"] == pytest.approx(0, abs=1e-9)
        assert found["accuracy"] == pytest.approx(0.8)
        assert found["loss_alpha"] == pytest.approx(-0.8 * math.log(0.9) - 0.2 * math.log(0.1 / 9))
    assert (found["early_loss"], found["early_accuracy"]) == (0.5, 0.9)
    assert (found["by_heart"], found["left"]) == (1.0, pytest.approx(0.25))


def test_the_gamma_type_by_plain_loops_and_from_the_two_other_types():
    """Against targets with p on the clean label; runs measured before it was have it from alpha and beta."""
    generator = torch.Generator().manual_seed(5)
    logits, labels = torch.randn(30, 10, generator=generator), torch.randint(10, (30,), generator=generator)
    trial = next(one for one in STUDY.trials(STUDY.settings(seeds=1)) if one.labels["a"] == 0.7)
    trial = type(trial)(trial.recipe, {"a": 0.7, "p": 0.65})
    history = [{"test_loss": 0.5, "test_accuracy": 0.9, "train_accuracy": 0.5, "train_loss": 1.0}]
    found = measure(trial, Written(logits, labels, history))
    gamma = 0.0
    for row, label in zip(logits.double().tolist(), labels.tolist(), strict=True):
        total = math.log(sum(math.exp(value) for value in row))
        for tested, value in enumerate(row):
            gamma += (0.65 if tested == label else 0.35 / 9) * (total - value) / 30
    assert found["loss_gamma"] == pytest.approx(gamma)
    assert found["deviation_gamma"] == pytest.approx(gamma / generalization_loss(0.65, 0.7, 10, "gamma") - 1)
    old = {key: value for key, value in found.items() if not key.endswith("gamma")}
    (filled,) = with_gamma(Results((Outcome(trial, None, old),)), 10).outcomes
    assert filled.measures == pytest.approx(found)
    clean = type(trial)(trial.recipe, {"a": 1.0, "p": 0.65})
    assert with_gamma(Results((Outcome(clean, None, old),)), 10).outcomes[0].measures == old
    assert with_gamma(Results((), failed=(clean,)), 10).failed == (clean,)


def test_without_smoothing_there_is_nothing_to_deviate_from():
    trial = STUDY.trials(STUDY.settings(seeds=1))[0]
    trial = type(trial)(trial.recipe, {"a": 0.8, "p": 1.0})
    history = [{"test_loss": 0.5, "test_accuracy": 0.9, "train_accuracy": 0.5, "train_loss": 1.0}]
    found = measure(trial, Written(*said_by(0.8, 0.9, False), history))
    assert not any(key.startswith(("deviation", "position")) for key in found)
    assert found["left"] == pytest.approx(1.0)


def made_up(
    deviation: float = 0.05,
    best_loss_at=lambda a: a,
    best_accuracy_at: float = 0.35,
    weak: float = -0.08,
    mild: float = 0.005,
    early: float = 0.002,
) -> Results:
    """Four seeds with the given turns; accuracies have two maxima unless told otherwise."""
    outcomes = []
    for trial in STUDY.trials(STUDY.settings()):
        a, p, jitter = trial.labels["a"], trial.labels["p"], 1e-4 * trial.recipe.seed
        accuracy = 0.9 - 0.1 * abs(p - best_accuracy_at) - 0.2 * (1 - a)
        if p in (0.9, 0.95):
            at_one = 0.9 - 0.1 * (1 - best_accuracy_at) - 0.2 * (1 - a)
            accuracy = at_one + (weak if a <= 0.85 else mild)
        measures = {
            "loss_alpha": 1 + abs(p - best_loss_at(a)) + jitter,
            "loss_beta": 1.0,
            "loss_gamma": 1.0,
            "accuracy": accuracy + jitter,
            "early_loss": 1.0,
            "early_accuracy": 0.95 + (early if p == 0.5 else 0) + (jitter if p < 1 else 0),
            "explained": 0.02,
            "by_heart": 0.99,
            "left": 0.01,
        }
        if p < 1:
            off = deviation if a == 0.7 and p == 0.8 else 0.01
            measures |= {f"deviation_{kind}": off + jitter for kind in ("alpha", "beta", "gamma")}
            measures |= {"position_alpha": 0.9, "position_beta": 0.9}
        outcomes.append(Outcome(trial, None, measures))
    return Results(tuple(outcomes))


@pytest.mark.parametrize(
    ("turned", "fallen"),
    [
        ({}, {5, 8}),
        ({"deviation": 0.3}, {0, 3, 5, 8}),
        ({"best_loss_at": lambda a: 0.2}, {4, 5, 8}),
        ({"best_accuracy_at": 0.95}, {5, 6, 8, 9}),
        ({"weak": 0.02}, {5, 8, 10, 13}),
        ({"weak": -0.03}, {5, 8, 13}),
        ({"mild": -0.02}, {5, 8, 11, 12}),
        ({"early": 0.05}, {5, 7, 8}),
    ],
)
def test_a_claim_falls_when_its_own_numbers_turn(turned, fallen):
    found = judge(claims(made_up(**turned), 10))
    assert len(found) == 14
    assert {place for place, one in enumerate(found) if one.verdict == "contradicted"} == fallen
    assert {one.verdict for one in found} <= {"reproduced", "contradicted", "no effect"}
    # Where the lowest loss is at the smallest p, there is no smaller p to gain by.
    assert (found[6].verdict == "no effect") == ("best_loss_at" in turned)


def with_accuracies(of) -> Results:
    """`made_up` with accuracies of one's own: a function of the labels and the seed."""
    return Results(
        tuple(
            Outcome(
                o.trial, None, o.measures | {"accuracy": of(o.trial.labels["a"], o.trial.labels["p"], o.seed)}
            )
            for o in made_up().outcomes
        )
    )


@pytest.mark.parametrize("place", [6, 9, 10, 11, 12, 13])
def test_chance_alone_reproduces_nothing_about_accuracies(place):
    """The best of several cells is better by chance; not on other seeds than it was chosen on."""
    rng = np.random.default_rng(11)
    found = []
    for _ in range(40):
        results = with_accuracies(lambda a, p, seed: 0.9 + 0.01 * rng.normal())
        found.append(claims(results, 10)[place].verdict)
    assert found.count("reproduced") <= 6  # 2 expected of 40, at one in twenty


def test_that_weak_smoothing_is_of_use_only_with_little_noise_falls_where_it_is_of_use_with_much():
    """At p = 0.9 accuracy rises also at a = 0.5, though at 0.95 it falls: the better or worse of both hides it."""
    results = with_accuracies(lambda a, p, seed: 0.9 + {0.9: 0.02, 0.95: -0.02}.get(p, 0.0) + 1e-4 * seed)
    claim = claims(results, 10)[10]
    assert claim.verdict == "contradicted"
    assert claim.worst.endswith("p = 0.9")
    assert {name for name, _ in claim.cells} == {
        f"a = {a:g}, p = {p:g}" for a in (0.5, 0.7, 0.85) for p in (0.9, 0.95)
    }


def test_cells_that_are_not_named_are_chosen_with_the_first_seed_alone():
    """Seed 0 finds p = 0.2 best, the others 0.35: 0.2 is judged, on the others."""
    best = {0: 0.2}
    results = with_accuracies(lambda a, p, seed: 0.9 - 0.1 * abs(p - best.get(seed, 0.35)))
    claim = claims(results, 10)[9]
    assert all(sample.n == 3 for _, sample in claim.cells)
    # Judged: 0.2 beside the best of the large p, 0.65, with the lowest at 0.35.
    assert claim.sample.mean == pytest.approx(10 * (0.3 - 0.15))  # points


def test_gammas_optimum_is_better_where_minima_lie_there():
    from softtargets.theory import optimal_p

    found = claims(made_up(best_loss_at=lambda a: optimal_p(a, 10, "gamma", limits=True)), 10)
    assert found[5].verdict == "reproduced"


def test_the_best_p_with_early_stopping_is_scattered_where_it_jumps_from_one_clean_rate_to_the_next():
    jumps = {0.5: 0.2, 0.7: 0.95, 0.85: 0.35, 0.95: 0.9, 1.0: 0.2}
    outcomes = tuple(
        Outcome(
            o.trial,
            None,
            o.measures
            | {
                "early_accuracy": 0.95 + 0.01 * (o.trial.labels["p"] == jumps[o.trial.labels["a"]]),
                "accuracy": 0.9
                - 0.1
                * abs(o.trial.labels["p"] - (0.2 if o.trial.labels["a"] < 0.7 + 0.1 * o.seed else 0.35)),
            },
        )
        for o in made_up().outcomes
    )
    claim = claims(Results(outcomes), 10)[8]
    late = 0.15 / 4  # one step of 0.15 somewhere along four
    assert claim.sample.mean == pytest.approx((0.75 + 0.6 + 0.55 + 0.7) / 4 - late)
    assert claim.verdict == "reproduced"


def test_the_best_p_is_that_of_the_lowest_loss_and_the_highest_accuracy():
    results = made_up(best_loss_at=lambda a: 0.64, best_accuracy_at=0.2)
    first = Results(tuple(outcome for outcome in results.outcomes if outcome.seed == 0))
    assert best_p(first, "loss_alpha", 0.7) == 0.65
    assert best_p(first, "accuracy", 0.7) == 0.2
    assert best_p(first, "loss_beta", 0.7) == 1.0  # all are as good, so the largest
    assert best_ps(results, "loss_alpha", 0.5).values == (0.65, 0.65, 0.65, 0.65)
    assert best_ps(results, "accuracy", 0.123).n == 0
    assert {cell.p for cell in cells_away(results)} == {0.2, 0.35, 0.5, 0.65, 0.8, 0.9}


def test_a_seed_without_all_its_cells_is_left_out_of_the_claims():
    whole = made_up()
    part = Results(tuple(o for o in whole.outcomes if o.trial.recipe.seed < 2 or o.trial.labels["p"] < 0.9))
    # Of seeds 2 and 3 nothing is there from p = 0.9 on.
    found = claims(part, 10)
    least = [min(sample.n for sample in claim.samples) for claim in found]
    assert least == [2, 2, 2, 2, 2, 2, 1, 1, 2, 3, 2, 2, 2, 1]
    assert {one.verdict for one in judge(found) if one.claim.seeds > min(s.n for s in one.claim.samples)} == {
        "not run yet"
    }


def test_colours_of_the_map_reach_as_far_as_most_deviations_away_from_p_1():
    rates, masses = (0.5, 0.7), (0.8, 0.9, 0.95)
    rows = [
        {
            "a": a,
            "p": p,
            "predicted": 1.0,
            "loss_alpha": Sample.of([2.0]),
            "deviation_alpha": Sample.of([off]),
        }
        for a, offs in zip(rates, ((0.1, -0.3, 5.0), (0.2, 0.1, 7.0)), strict=True)
        for p, off in zip(masses, offs, strict=True)
    ]
    maps = map_panels(rows, rates, masses)
    assert maps[2].values == [[10.0, 20.0], [-30.0, 10.0], [500.0, 700.0]]
    assert (maps[2].low, maps[2].high) == (-30, 30)
    assert [(shown.low, shown.high) for shown in maps[:2]] == [(0.0, 2.0)] * 2


def test_one_cell_does_not_stretch_the_colours():
    """19 cells that are off by at most a tenth, and one by 220 %."""
    offs = [*(0.005 * i for i in range(1, 20)), 2.2]
    assert reach([{"p": 0.5, "deviation_alpha": Sample.of([off])} for off in offs]) == 10


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """The whole study with a few units on a few digits, made once for this module."""
    directory = tmp_path_factory.mktemp("chen-mnist")
    changes = {"data": Digits(limit=60), "model.hidden": (16,), "epochs": 2, "batch": 30}
    store, settings = RunStore(directory / "runs"), STUDY.settings(seeds=1, changes=changes)
    page = run_study(STUDY, settings, store, directory / "report", command="c", train=train, device="cpu")
    return page, store, settings


def test_the_whole_study_on_a_few_digits(tiny):
    page, _, _ = tiny
    results = json.loads((page.parent / "results.json").read_text())
    assert results["warnings"] == []
    assert len(results["claims"]) == 14
    assert {claim["verdict"] for claim in results["claims"]} == {"not run yet"}
    for name in (
        "landscape",
        "slices",
        "best_smoothing",
        "accuracy_planes",
        "accuracy_over_p",
        "weak_smoothing",
    ):
        assert (page.parent / "figures" / f"{name}.svg").stat().st_size > 5_000
    html = page.read_text().replace("\N{NO-BREAK SPACE}", " ")
    assert "small size: 60 training images" in html
    assert "This is the small size, for a CPU." in html
    assert "On training images the loss against clean labels is within 10 % of the prediction in" in html


def test_numbers_on_the_page_are_those_of_the_runs(tiny):
    page, store, settings = tiny
    rows = list(csv.DictReader((page.parent / "tables" / "landscape.csv").open()))
    assert len(rows) == 5 * 7
    for trial in STUDY.trials(settings)[::5]:
        if trial.labels["p"] == 1:
            continue
        run, (a, p) = store.find(trial.recipe), (trial.labels["a"], trial.labels["p"])
        row = next(row for row in rows if (float(row["a"]), float(row["p"])) == (a, p))
        loss = float(row["loss_alpha_mean"])
        assert loss == pytest.approx(run.summary["test_loss"], rel=1e-5)
        predicted = -a * math.log(p) - (1 - a) * math.log((1 - p) / 9)
        assert float(row["predicted"]) == pytest.approx(predicted)
        assert float(row["predicted"]) == pytest.approx(generalization_loss(p, a, 10, "alpha", limits=True))
        assert float(row["deviation_alpha_mean"]) == pytest.approx(loss / predicted - 1)
        assert float(row["by_heart_mean"]) == run.summary["train_accuracy"]
        trained = _loss_on_clean_training_images(run.weights())
        assert float(row["deviation_trained_mean"]) == pytest.approx(trained / predicted - 1, rel=1e-4)


def _loss_on_clean_training_images(weights: dict[str, torch.Tensor]) -> float:
    """Of the net with one hidden layer on the first 60 digits, by plain products of matrices."""
    digits = load("digits", "train")
    pixels = torch.from_numpy(digits.images[:60]).reshape(60, -1).double() / 255
    double = {name: weight.double() for name, weight in weights.items()}
    hidden = (pixels @ double["body.1.weight"].T + double["body.1.bias"]).clamp(min=0)
    logits = hidden @ double["head.weight"].T + double["head.bias"]
    labels = torch.from_numpy(digits.labels[:60]).long()
    return -float(logits.log_softmax(-1)[range(60), labels].mean())
