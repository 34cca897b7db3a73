"""Studies beyond the papers: their grid, measures re-derived, claims where they hold and where not, and pages."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from softtargets.claims import judge
from softtargets.recipes import MLP, SGD, CrossEntropy, Digits, LabelSmoothing, Recipe
from softtargets.studies import STUDIES, Outcome, Results, find_study
from softtargets.studies.beyond import grid
from softtargets.studies.beyond_selection.measures import details as selection_details
from softtargets.studies.beyond_selection.measures import measure as measure_selection
from softtargets.studies.beyond_temperature.measures import TEMPERATURES
from softtargets.studies.beyond_temperature.measures import details as temperature_details
from softtargets.studies.beyond_temperature.measures import measure as measure_temperature
from softtargets.studies.protocols import FCN_TEACHER, RESNET56_CIFAR100
from studies.written import Written, page_with_and_without_runs

TEMPERATURE, SELECTION = (find_study(STUDIES, f"beyond-{name}") for name in ("temperature", "selection"))
both = pytest.mark.parametrize("study", [TEMPERATURE, SELECTION], ids=lambda study: study.name)


@both
@pytest.mark.parametrize(("size", "cells"), [("small", 5 * 3), ("full", 5 * 5)])
def test_every_network_is_trained_with_every_smoothing(study, size, cells):
    trials = study.trials(study.settings(changes={"size": size}))
    assert len({trial.recipe.id for trial in trials}) == len(trials) == 3 * cells
    for trial in trials:
        alpha, loss = trial.labels["alpha"], trial.recipe.regulariser
        assert loss == (LabelSmoothing(alpha=alpha) if alpha else CrossEntropy())


def test_full_recipes_are_those_of_the_papers_and_small_ones_are_small():
    full = {t.labels["network"]: t.recipe for t in SELECTION.trials(SELECTION.settings(1, {"size": "full"}))}
    for key, base in (("mnist-fcn", FCN_TEACHER), ("cifar100-resnet56", RESNET56_CIFAR100)):
        assert full[key].replace({"regulariser": base.regulariser, "seed": base.seed}) == base
    for trial in SELECTION.trials(SELECTION.settings(1)):
        assert trial.recipe.data.limit == 2000
        assert trial.recipe.epochs <= 10
        assert trial.recipe.precision == "fp32"


def test_both_studies_train_the_same_runs():
    ids = [
        {trial.recipe.id for trial in study.trials(study.settings(changes={"size": "full"}))}
        for study in (TEMPERATURE, SELECTION)
    ]
    assert ids[0] == ids[1]


def test_rates_drop_at_the_same_shares_of_a_shorter_training():
    trials = SELECTION.trials(SELECTION.settings(1, {"size": "full", "epochs": 41}))
    found = {t.labels["network"]: t.recipe.schedule for t in trials}
    assert found["cifar10-resnet56"].milestones == (20, 30)  # of 205: 102 and 153


def drawn(scale: float, examples: int = 600) -> Written:
    """Logits whose probabilities are right if divided by `scale`."""
    generator = torch.Generator().manual_seed(4)
    logits = 2 * torch.randn(examples, 5, generator=generator)
    labels = torch.multinomial(logits.softmax(-1), 1, generator=generator).squeeze(1)
    return Written(scale * logits, labels)


def nll(logits: torch.Tensor, labels: torch.Tensor) -> float:
    costs = [
        math.log(sum(math.exp(value) for value in row)) - row[label]
        for row, label in zip(logits.double().tolist(), labels.tolist(), strict=True)
    ]
    return sum(costs) / len(costs)


def test_a_temperature_is_fitted_to_other_examples_and_undoes_a_wrong_scale():
    test = drawn(2.5)
    found = measure_temperature(None, test)
    assert found["temperature"] == pytest.approx(2.5, rel=0.15)
    assert found["nll"] == pytest.approx(nll(test.logits, test.labels))
    assert found["nll_gained"] == pytest.approx(found["nll"] - found["nll_scaled"])
    assert found["ece_gained"] == pytest.approx(found["ece"] - found["ece_scaled"])
    # Held out, it is no better than the best temperature for these examples.
    best = min(nll(test.logits / t, test.labels) for t in np.linspace(2.0, 3.2, 61))
    assert best <= found["nll_scaled"] < best + 0.01
    right = measure_temperature(None, drawn(1.0))
    assert abs(right["nll_gained"]) < 0.01


def test_what_is_kept_for_the_figure_over_temperatures_is_small_and_right():
    test = drawn(2.5)
    kept = temperature_details(None, test)
    assert kept["temperatures"] == list(TEMPERATURES)
    assert kept["nll"][TEMPERATURES.index(2.0)] == pytest.approx(nll(test.logits / 2, test.labels), abs=1e-5)
    assert kept["ece"][TEMPERATURES.index(1.0)] == pytest.approx(
        measure_temperature(None, test)["ece"], abs=1e-5
    )


def risks(confidence: list[float], wrong: list[bool]) -> list[float]:
    """Of the first k by confidence the share that is wrong, by plain loops; no two are equally confident."""
    order = sorted(range(len(wrong)), key=lambda place: -confidence[place])
    return [sum(wrong[place] for place in order[: k + 1]) / (k + 1) for k in range(len(order))]


def test_selection_by_plain_loops():
    test = drawn(1.0)
    found = measure_selection(None, test)
    sure = test.logits.double().softmax(-1).max(-1).values.tolist()
    wrong = (test.logits.argmax(-1) != test.labels).tolist()
    curve, best = risks(sure, wrong), risks([float(not one) for one in wrong], wrong)
    assert found["aurc"] == pytest.approx(sum(curve) / 600)
    assert found["excess_aurc"] == pytest.approx((sum(curve) - sum(best)) / 600)
    assert found["accuracy_at_80"] == pytest.approx(1 - curve[479])
    assert found["accuracy_at_90"] == pytest.approx(1 - curve[539])
    assert found["recovered"] == pytest.approx(found["excess_aurc"] - found["excess_aurc_normalised"])
    kept = selection_details(None, test)
    assert kept["risk"][kept["coverages"].index(0.8)] == pytest.approx(curve[479], abs=1e-6)
    assert kept["risk"][-1] == pytest.approx(1 - found["accuracy"])


def test_normalised_logits_help_where_lengths_mean_nothing():
    generator = torch.Generator().manual_seed(6)
    plain = drawn(1.0, 2000)
    lengths = torch.exp(torch.randn(2000, 1, generator=generator))
    found = measure_selection(None, Written(plain.logits * lengths, plain.labels))
    assert found["recovered"] > 0.01


def test_a_model_without_mistakes_is_measured_too():
    labels = torch.arange(200) % 5
    found = measure_selection(None, Written(4.0 * torch.eye(5)[labels], labels))
    assert (found["excess_aurc"], found["excess_aurc_normalised"], found["recovered"]) == (0, 0, 0)


def made_up(study, by_alpha, size="full", seeds=3) -> Results:
    """Measures as a function of the smoothing, alike for all networks."""
    outcomes = []
    for trial in study.trials(study.settings(seeds=seeds, changes={"size": size})):
        shift = 1 + 0.01 * trial.recipe.seed
        measures = {key: shift * value for key, value in by_alpha(trial.labels["alpha"]).items()}
        outcomes.append(Outcome(trial, None, measures))
    return Results(tuple(outcomes))


def scaled(ece_gained=0.03, hard_gained=0.2, together=-0.02):
    def by_alpha(alpha):
        gained = hard_gained if alpha == 0 else 0.05
        return {
            "accuracy": 0.9,
            "nll": 0.5 + gained,
            "nll_scaled": 0.5 + (together if alpha else 0),
            "nll_gained": gained,
            "ece": 0.05,
            "ece_scaled": 0.02 + (together if alpha else 0),
            "ece_gained": 0.04 if alpha == 0 else ece_gained,
            "temperature": 1.2,
        }

    return by_alpha


@pytest.mark.parametrize(
    ("turned", "fallen"),
    [
        ({}, set()),
        ({"ece_gained": -0.02}, {1, 2}),
        ({"hard_gained": 0.01}, {3}),
        ({"together": 0.02}, {4, 5}),
    ],
)
def test_claims_about_temperatures_fall_with_their_own_numbers(turned, fallen):
    results = made_up(TEMPERATURE, scaled(**turned))
    found = judge(TEMPERATURE.claims(results))
    assert {place for place, one in enumerate(found) if one.verdict == "contradicted"} == fallen
    assert {one.verdict for one in found} <= {"reproduced", "contradicted"}
    answer = TEMPERATURE.findings(results).answer
    assert answer.startswith("In part" if "ece_gained" in turned else "Yes")


def rejecting(lost=0.004, recovered=0.003, at_80=-0.005):
    def by_alpha(alpha):
        excess = 0.012 + 10 * alpha * lost
        return {
            "accuracy": 0.9,
            "aurc": 0.02 + excess,
            "excess_aurc": excess,
            "excess_aurc_normalised": excess - (recovered if alpha else 0),
            "recovered": recovered if alpha else 0.0,
            **{f"accuracy_at_{share}{end}": 0.95 for share in (80, 90) for end in ("", "_normalised")},
            "accuracy_at_80": 0.95 + (at_80 if alpha else 0),
        }

    return by_alpha


@pytest.mark.parametrize(
    ("turned", "fallen", "answer"),
    [
        ({}, set(), "Yes: smoothing makes"),
        ({"lost": -0.004}, {0, 1}, "Not always: with some networks smoothing does not harm"),
        ({"recovered": 0.001}, {3}, "Yes: smoothing makes"),
        ({"recovered": -0.001}, {2, 3}, "Yes: smoothing makes"),
        ({"at_80": 0.005}, {4}, "Yes: smoothing makes"),
    ],
)
def test_claims_about_selection_fall_with_their_own_numbers(turned, fallen, answer):
    results = made_up(SELECTION, rejecting(**turned))
    found = judge(SELECTION.claims(results))
    assert {place for place, one in enumerate(found) if one.verdict == "contradicted"} == fallen
    assert SELECTION.findings(results).answer.startswith(answer)


@both
def test_claims_are_about_every_network_also_where_some_are_not_trained(study):
    whole = made_up(study, scaled() if study is TEMPERATURE else rejecting())
    part = Results(tuple(o for o in whole.outcomes if o.trial.labels["network"].endswith("fcn")))
    assert {one.verdict for one in judge(study.claims(part))} == {"not run yet"}
    found = study.findings(part)
    assert found.answer.startswith("Not known yet")
    words = " ".join(text for section in found.sections for text in section.paragraphs)
    assert "FCN, Fashion-MNIST" in words
    assert "AlexNet, CIFAR-10" not in words
    assert "not stored with these runs" in words  # nothing was kept for the second figure
    assert {one.verdict for one in judge(study.claims(Results(())))} == {"not run yet"}
    assert study.findings(Results(())).sections == ()


@both
def test_the_whole_study_on_a_few_digits_and_its_page_without_the_runs(study, tmp_path, monkeypatch):
    tiny = Recipe(
        data=Digits(limit=200),
        model=MLP(hidden=(8,)),
        optimiser=SGD(lr=0.1, momentum=0.9),
        epochs=2,
        batch=20,
    )
    networks = {
        key: tiny.replace({"model.hidden": (8 + place,)}) for place, key in enumerate(list(grid.NAMES)[:2])
    }
    monkeypatch.setitem(grid.SIZES, "small", networks)
    before, after = page_with_and_without_runs(study, study.settings(seeds=1), tmp_path)
    assert before["warnings"] == []
    assert len(before["tables"]["runs"]) == 2 * 3
    for key in ("claims", "tables"):
        assert after[key] == before[key]
    assert len(list((tmp_path / "again" / "figures").glob("*.svg"))) == 2
