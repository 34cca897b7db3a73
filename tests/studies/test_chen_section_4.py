"""S* = T Tᵗ: its recipes, its measures by plain loops, its claims where they hold and where not, and the page."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from softtargets.claims import judge
from softtargets.recipes import ClassConditional, CrossEntropy, Digits, LabelSmoothing, Symmetric
from softtargets.studies import STUDIES, Outcome, Results, Trial, find_study
from softtargets.studies.chen_section_4.grid import BAYES, HARD, SCALAR, STAR, STRONG, WAYS, noise_matrix
from softtargets.studies.chen_section_4.measures import measure, predicted
from studies.written import Written, page_with_and_without_runs

STUDY = find_study(STUDIES, "chen-section-4")
CIFAR = find_study(STUDIES, "chen-section-4-cifar10")
PLANE, FORWARD = find_study(STUDIES, "chen-mnist"), find_study(STUDIES, "chen-forward-correction")


@pytest.mark.parametrize(
    ("study", "size", "cells"),
    [(STUDY, "small", 8), (STUDY, "full", 16), (CIFAR, "small", 8), (CIFAR, "full", 8)],
)
def test_every_way_is_trained_as_its_name_says(study, size, cells):
    trials = study.trials(study.settings(seeds=2, changes={"size": size}))
    assert len({trial.recipe.id for trial in trials}) == len(trials) == 2 * cells
    for trial in trials:
        kind, rate, way = (trial.labels[key] for key in ("noise", "rate", "method"))
        loss, wrong = trial.recipe.regulariser, trial.recipe.noise
        if kind == "symmetric":
            assert wrong == Symmetric(rate=rate)
            T = [[1 - rate if i == j else rate / 9 for j in range(10)] for i in range(10)]
        else:
            assert isinstance(wrong, ClassConditional)
            T = [[{0: 1 - rate, 1: rate}.get((j - i) % 10, 0.0) for j in range(10)] for i in range(10)]
            assert np.array(wrong.matrix) == pytest.approx(np.array(T))
        # What another label of the same example would be, by counting over clean classes.
        again = [[sum(T[i][k] * T[i][c] for i in range(10)) for c in range(10)] for k in range(10)]
        if way == HARD:
            assert loss == CrossEntropy()
        elif way == SCALAR:
            assert (loss.alpha, loss.spread, loss.matrix) == (pytest.approx(rate), "others", None)
        elif way == STRONG or (way == STAR and kind == "symmetric"):
            assert (loss.spread, loss.matrix) == ("others", None)
            assert 1 - loss.alpha == pytest.approx(again[0][0], abs=1e-6)
        elif way == STAR:
            assert isinstance(loss, LabelSmoothing)
            assert loss.alpha == 1
            assert np.array(loss.matrix) == pytest.approx(np.array(again), abs=1e-6)
        else:
            assert way == BAYES
            assert np.array(loss.matrix) == pytest.approx(np.array(T).T, abs=1e-6)


def test_runs_that_other_studies_make_are_shared():
    def ids(study):
        return {trial.recipe.id for trial in study.trials(study.settings(changes={"size": "full"}))}

    mine = ids(STUDY)
    assert len(mine) == 48
    assert len(mine & (ids(PLANE) | ids(FORWARD))) == 30


def trial_of(kind: str, rate: float, way: str) -> Trial:
    some = STUDY.trials(STUDY.settings(seeds=1))[0]
    return Trial(some.recipe, {"noise": kind, "rate": rate, "method": way})


@pytest.mark.parametrize(("kind", "rate"), [("symmetric", 0.4), ("pair", 0.4)])
def test_both_losses_by_plain_loops(kind, rate):
    generator = torch.Generator().manual_seed(2)
    logits, labels = torch.randn(40, 10, generator=generator), torch.randint(10, (40,), generator=generator)
    T, clean, beta = noise_matrix(kind, rate), 0.0, 0.0
    for row, label in zip(logits.double().tolist(), labels.tolist(), strict=True):
        total = math.log(sum(math.exp(value) for value in row))
        clean += (total - row[label]) / 40
        beta += sum(T[label][c] * (total - value) for c, value in enumerate(row)) / 40
    found = measure(trial_of(kind, rate, STAR), Written(logits, labels))
    assert (found["loss"], found["loss_beta"]) == (pytest.approx(clean), pytest.approx(beta))
    known = predicted(STAR, T, "beta")[0]
    assert found["deviation_beta"] == pytest.approx(beta / known - 1)
    # Hard labels, memorised, exclude what happens: nothing to deviate from.
    hard = measure(trial_of(kind, rate, HARD), Written(logits, labels))
    assert "deviation_beta" not in hard


@pytest.mark.parametrize(("kind", "rate"), [("symmetric", 0.4), ("pair", 0.4)])
def test_a_model_that_has_memorised_its_targets_does_not_deviate(kind, rate):
    """Every pair of clean class and given label as often as T says, and the target of the label put out."""
    T = noise_matrix(kind, rate)
    S = T.T @ T  # both are doubly stochastic
    rows, labels = [], []
    for i in range(10):
        for k in range(10):
            for _ in range(round(450 * T[i, k])):
                rows.append(S[k])
                labels.append(i)
    logits = torch.from_numpy(np.log(np.maximum(np.array(rows), 1e-30)))
    found = measure(trial_of(kind, rate, STAR), Written(logits, torch.tensor(labels)))
    assert found["deviation_beta"] == pytest.approx(0, abs=1e-6)


def made_up(size: str = "small", seeds: int = 3, **losses: float) -> Results:
    """Losses against corrupted labels by way, the order that the theory has unless told otherwise."""
    beta = {HARD: 3.0, SCALAR: 2.2, STRONG: 2.1, BAYES: 1.8, STAR: 1.5}
    beta |= {{"strong": STRONG, "star": STAR, "scalar": SCALAR}[key]: value for key, value in losses.items()}
    outcomes = []
    for trial in STUDY.trials(STUDY.settings(seeds=seeds, changes={"size": size})):
        way, jitter = trial.labels["method"], 0.001 * trial.recipe.seed
        measures = {
            "loss_beta": beta[way] + jitter * beta[way],
            "loss": 1.0 + (0.3 + jitter if way == STAR else 0.0),
            "accuracy": 0.8 + (0.02 + jitter if way == STAR else 0.0),
            "early_accuracy": 0.9,
            "ece": 0.1,
            "by_heart": 0.9,
            "deviation_beta": 0.01 + jitter,
        }
        outcomes.append(Outcome(trial, Provided(), measures))
    return Results(tuple(outcomes))


class Provided:
    """What a page says of a run."""

    provenance = {"examples": {"train": 60, "test": 4}}  # noqa: RUF012


def test_claims_hold_where_the_theory_does_and_fall_with_their_own_numbers():
    assert {one.verdict for one in judge(STUDY.claims(made_up()))} == {"reproduced"}
    assert STUDY.findings(made_up()).answer.startswith("Yes: against corrupted test labels S* has the lowest")
    for turned, fallen in (({"star": 3.5}, {0, 1, 2}), ({"strong": 1.4}, {2}), ({"scalar": 1.4}, {1})):
        found = judge(STUDY.claims(made_up(**turned)))
        assert {place for place, one in enumerate(found) if one.verdict == "contradicted"} == fallen
        assert STUDY.findings(made_up(**turned)).answer.startswith("Not always")


def test_stronger_smoothing_is_compared_with_weaker_smoothing_by_one_p():
    stronger = STUDY.claims(made_up())[1]
    assert dict(stronger.cells)["pair 0.45"].mean == pytest.approx(-0.1, abs=0.001)
    assert dict(stronger.cells)["symmetric 0.5"].mean == pytest.approx(-0.7, abs=0.001)


def test_claims_are_about_every_noise_of_the_size_also_where_some_are_not_trained():
    part = Results(tuple(o for o in made_up("full").outcomes if o.trial.labels["noise"] == "symmetric"))
    found = judge(STUDY.claims(part))
    assert {one.verdict for one in found} == {"not run yet"}
    words = STUDY.findings(part)
    assert words.answer.startswith("Not known yet")
    assert len(words.sections) == 3
    assert [one.verdict for one in judge(STUDY.claims(Results(())))] == ["not run yet"] * 6
    assert STUDY.findings(Results(())).sections == ()


def test_the_whole_study_on_a_few_digits_and_its_page_without_the_runs(tmp_path):
    changes = {"data": Digits(limit=60), "model.hidden": (8,), "epochs": 1, "batch": 30}
    before, after = page_with_and_without_runs(STUDY, STUDY.settings(seeds=1, changes=changes), tmp_path)
    assert before["warnings"] == []
    assert len(before["tables"]["runs"]) == sum(map(len, WAYS.values()))
    for key in ("claims", "tables"):
        assert after[key] == before[key]
    for name in ("matrices", "ways"):
        assert (tmp_path / "again" / "figures" / f"{name}.svg").stat().st_size > 5_000
