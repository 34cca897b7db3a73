"""Figures 2, 3 and 9 of the replication, and its deviations: what is measured, and claims on made-up numbers."""

from __future__ import annotations

import math

import pytest
import torch

from softtargets.claims import judge
from softtargets.exceptions import StudyError
from softtargets.recipes import Affine, Crop, Flip
from softtargets.runs import RunStore
from softtargets.studies import STUDIES, Results, Settings, find_study
from softtargets.studies.wagner_deviations.grid import BASE, BY_KEY, CODE, REPLICATED
from softtargets.studies.wagner_figure_2 import listing_gap
from tests.studies.making import told, written

FIGURE_2, FIGURE_3, FIGURE_9, DEVIATIONS = (
    find_study(STUDIES, f"wagner-{name}") for name in ("figure-2", "figure-3", "figure-9", "deviations")
)


def verdicts(study, results):
    return [one.verdict for one in judge(study.findings(results).claims)]


def test_the_listing_of_a1_spans_the_plane_of_the_text():
    draw = torch.Generator().manual_seed(0)
    for _ in range(5):
        rows, templates = (torch.randn(n, 40, generator=draw, dtype=torch.float64) for n in (30, 3))
        assert listing_gap(rows, templates) < 1e-12
    templates[2] = templates[0]
    with pytest.raises(ValueError, match="two templates are equal"):
        listing_gap(rows, templates)


def test_what_figure_2_measures(tmp_path):
    trial = FIGURE_2.trials(FIGURE_2.settings(1, {"size": "full"}))[0]
    run = written(RunStore(tmp_path), trial)
    found, kept = FIGURE_2.measure(trial, run), FIGURE_2.details(trial, run)
    first, second, third = run.weights()["head.weight"][:3].double()
    apart = [(a - b).norm().item() for a, b in ((first, second), (first, third), (second, third))]
    assert found["templates"] == pytest.approx(sum(apart) / 3, rel=1e-6)
    assert found["listing"] < 1e-6
    said = run.predictions("train")
    basis = torch.linalg.qr(torch.stack([first - third, second - third], dim=1))[0]
    flat = {c: said.features[said.labels == c].double() @ basis for c in (0, 1, 2)}
    means = torch.stack([points.mean(0) for points in flat.values()])
    between = torch.pdist(means).mean()
    within = torch.cat([points - points.mean(0) for points in flat.values()]).square().sum(1).mean().sqrt()
    assert found["train_spread"] == pytest.approx(float(within / between), rel=1e-6)
    assert len(kept["train"]["points"]) == sum(map(len, flat.values()))
    assert kept["train"]["names"] == ["zero", "one", "two"]


def clusters(tighter=0.1, more_regular=0.1, nearer=0.5, rounding=0.0):
    def measures(trial):
        soft, jitter = trial.labels["alpha"] > 0, 1e-4 * trial.recipe.seed
        return {
            "train_spread": 0.4 - tighter * soft + jitter,
            "train_triangle": 0.8 + more_regular * soft + jitter,
            "templates": (nearer if soft else 1.0) + jitter,
            "listing": rounding,
        }

    return told(FIGURE_2, measures)


@pytest.mark.parametrize(
    ("changed", "fallen"),
    [
        ({}, set()),
        ({"tighter": -0.1}, {0}),
        ({"more_regular": -0.1}, {1}),
        ({"nearer": 1.5}, {2}),
        ({"rounding": 0.1}, {3}),
    ],
)
def test_a_claim_about_clusters_falls_when_its_own_numbers_turn(changed, fallen):
    found = verdicts(FIGURE_2, clusters(**changed))
    assert {place for place, verdict in enumerate(found) if verdict == "contradicted"} == fallen
    assert all(verdict == "reproduced" for place, verdict in enumerate(found) if place not in fallen)


def test_clusters_that_stay_as_they_are():
    assert verdicts(FIGURE_2, clusters(tighter=0.001))[0] == "no effect"


def calibrated(over=-0.1, under=0.05, soft=0.05, digits=0.002):
    def measures(trial):
        hard, jitter = trial.labels["alpha"] == 0, 1e-4 * trial.recipe.seed
        deep = trial.labels["network"] == "cifar100-resnet56"
        found = {"ece": (0.2 if deep else digits) if hard else soft, "ece_scaled": 0.03 if deep else 0.001}
        found |= {"highest_gap": over, "lowest_gap": under, "gap": -0.1, "nll": 1.0, "temperature": 2.0}
        return {f"{key}_validation" if deep else key: value + jitter for key, value in found.items()}

    return told(FIGURE_3, measures)


@pytest.mark.parametrize(
    ("changed", "fallen"),
    [
        ({}, set()),
        ({"over": 0.1}, {0}),
        ({"soft": 0.3}, {1}),
        ({"under": -0.05}, {2}),
        ({"digits": 0.05}, {3}),
    ],
)
def test_a_claim_about_diagrams_falls_when_its_own_numbers_turn(changed, fallen):
    results = calibrated(**changed)
    found = verdicts(FIGURE_3, results)
    assert {place for place, verdict in enumerate(found) if verdict == "contradicted"} == fallen
    assert all(verdict == "reproduced" for place, verdict in enumerate(found) if place not in fallen)
    assert FIGURE_3.findings(results).answer.startswith("Smoothing")


def test_diagrams_show_the_split_of_the_printed_numbers(tmp_path):
    trials = {
        t.labels["network"]: t
        for t in FIGURE_3.trials(FIGURE_3.settings(1, {"size": "full"}))
        if not t.labels["alpha"]
    }
    store = RunStore(tmp_path)
    for key, split in (("cifar100-resnet56", "validation"), ("mnist-fcn", "test")):
        run = written(store, trials[key])
        said = run.predictions(split)
        right = int((said.logits.argmax(-1) == said.labels).sum())
        kept = FIGURE_3.details(trials[key], run)
        assert sum(kept["bins"]["right"]) == pytest.approx(right)
        assert sum(kept["scaled_bins"]["right"]) == pytest.approx(right)
        assert sum(kept["scaled_bins"]["confidence"]) != pytest.approx(sum(kept["bins"]["confidence"]))


def test_figure_9_has_the_networks_that_figure_3_has_not():
    trials = FIGURE_9.trials(FIGURE_9.settings(changes={"size": "full"}))
    assert {trial.labels["network"] for trial in trials} == {
        "fmnist-fcn",
        "cifar10-alexnet",
        "cifar10-resnet56",
    }
    assert FIGURE_9.claims(Results(())) == ()
    with pytest.raises(StudyError, match="has no such size"):
        FIGURE_3.settings(changes={"size": "emnist"})


def test_variants_change_what_their_names_say():
    trials = DEVIATIONS.trials(Settings(1, {}, "full"))
    by_name = {(t.labels["network"], t.labels["variant"]): t.recipe for t in trials if t.labels["alpha"] == 0}
    for (key, name), recipe in by_name.items():
        family = BY_KEY[key]
        variant = next(one for one in family.variants if one.name == name)
        assert recipe.replace({"seed": family.full.seed}) == family.full.replace(dict(variant.changes))
    alexnet = by_name["cifar10-alexnet", CODE]
    assert (alexnet.model.lrn, alexnet.model.head, alexnet.optimiser.decay_form) == (0.125, "equal", "norm")
    assert (
        alexnet.replace({"model.lrn": 1.0, "model.head": "random"}) == by_name["cifar10-alexnet", REPLICATED]
    )
    deep = by_name["cifar10-resnet56", REPLICATED]
    assert deep.augmentation == (Crop(padding=0, size=24), Flip())
    assert (deep.model.init, deep.data.standardise) == ("fan_out", "channel")
    assert by_name["mnist-fcn", REPLICATED].augmentation == (Affine(translate=0.07143),)
    assert by_name["mnist-fcn", "initial weights of variance 0.03"].model.init_std == pytest.approx(
        math.sqrt(0.03)
    )
    assert len({trial.recipe.id for trial in trials}) == len(trials)


@pytest.mark.parametrize(
    ("replicated", "found", "number"),
    [
        (0.85, "reproduced", "reproduced"),
        (0.89, "contradicted", "contradicted"),
        (0.8672, "no effect", "contradicted"),
    ],
)
def test_whether_the_deviations_explain_the_difference(replicated, found, number):
    def measures(trial):
        theirs = trial.labels["variant"] == REPLICATED
        return {
            "accuracy": (replicated if theirs else 0.868) + 1e-5 * trial.recipe.seed,
            "ece": 0.1,
            "nll": 1.0,
        }

    results = told(DEVIATIONS, measures)
    first = judge(DEVIATIONS.findings(results).claims)[0]
    assert (first.verdict, first.value) == (found, number)
    assert first.claim.printed == pytest.approx(-1.79)
    rows = DEVIATIONS.findings(results).sections[0].exhibits[1].rows
    assert rows[0]["variant"] == BASE
    assert rows[0]["change"] is None
    changed = next(row for row in rows if row["variant"] == REPLICATED and row["alpha"] == 0)
    assert changed["change"].mean == pytest.approx(100 * (replicated - 0.868))
    small = told(DEVIATIONS, measures, "small")
    assert [claim.printed for claim in DEVIATIONS.claims(small)] == [None, None]
