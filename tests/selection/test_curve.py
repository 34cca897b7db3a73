from __future__ import annotations

from itertools import pairwise, permutations

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from softtargets.selection import risk_coverage
from softtargets.selection.curve import least_aurc


def areas_of_an_order(correct):
    """AURC and AUGRC by their definitions, counting."""
    n, wrong, risks, generalised = len(correct), 0, [], []
    for k, right in enumerate(correct, start=1):
        wrong += not right
        risks.append(wrong / k)
        generalised.append(wrong / n)
    return sum(risks) / n, sum(generalised) / n


def over_all_orders(confidence, correct):
    """Means over every order that the confidences allow."""
    found = [
        areas_of_an_order([correct[i] for i in order])
        for order in permutations(range(len(correct)))
        if all(confidence[a] >= confidence[b] for a, b in pairwise(order))
    ]
    return np.mean(found, axis=0)


@pytest.mark.parametrize("seed", range(12))
def test_areas_are_means_over_every_order_that_ties_allow(seed):
    random = np.random.default_rng(seed)
    confidence, correct = random.integers(0, 3, 6) / 3, random.integers(0, 2, 6)
    curve = risk_coverage(confidence, correct)
    aurc, augrc = over_all_orders(confidence, correct)
    assert curve.aurc == pytest.approx(aurc, rel=1e-12)
    assert curve.augrc == pytest.approx(augrc, rel=1e-12)
    least = min(areas_of_an_order(order)[0] for order in permutations(correct.tolist()))
    assert curve.best_aurc == pytest.approx(least, rel=1e-12)
    assert curve.excess_aurc == pytest.approx(max(aurc - least, 0), abs=1e-12)


@pytest.mark.parametrize("digits", [1, 8])
def test_the_augrc_follows_from_the_area_under_the_roc(digits):
    random = np.random.default_rng(3)
    confidence = random.random(500).round(digits)
    correct = (random.random(500) < confidence).astype(int)
    n, e = 500, int((1 - correct).sum())
    # A mistake is counted for itself, for each mistake after it, and for each right one after it.
    pairs = (1 - roc_auc_score(correct, confidence)) * e * (n - e) + e * (e + 1) / 2
    assert risk_coverage(confidence, correct).augrc == pytest.approx(pairs / n**2, rel=1e-12)


def test_by_hand():
    curve = risk_coverage(torch.tensor([0.2, 0.9, 0.5, 0.5]), torch.tensor([False, True, False, True]))
    assert curve.errors.tolist() == [0, 0.5, 1, 2]
    assert curve.risk.tolist() == [0, 0.25, 1 / 3, 0.5]
    assert curve.aurc == pytest.approx((0.25 + 1 / 3 + 0.5) / 4)
    assert curve.best_aurc == pytest.approx((1 / 3 + 2 / 4) / 4)
    assert curve.accuracy == 0.5
    assert [curve.accuracy_at(c) for c in (0.25, 0.5, 0.75)] == pytest.approx([1, 0.75, 2 / 3])
    assert curve.accuracy_at(0.375) == pytest.approx(1 - 0.25 / 1.5)  # half of the second example
    assert [curve.threshold_at(c) for c in (0.1, 0.25, 0.26, 1)] == pytest.approx([0.9, 0.9, 0.5, 0.2])
    assert curve.ends.tolist() == [1, 3, 4]


@pytest.mark.parametrize("n", [1, 2, 50])
def test_all_right_and_all_wrong(n):
    right, wrong = (risk_coverage(np.linspace(0, 1, n), np.full(n, value)) for value in (1, 0))
    assert (right.aurc, right.best_aurc, right.excess_aurc, right.augrc, right.accuracy_at(0.3)) == (
        0,
        0,
        0,
        0,
        1,
    )
    assert (wrong.aurc, wrong.best_aurc, wrong.excess_aurc) == pytest.approx((1, 1, 0))
    assert wrong.accuracy_at(0.3) == pytest.approx(0, abs=1e-15)


def test_a_perfect_order_has_no_excess_and_a_useless_one_the_error_rate():
    correct = np.array([1] * 80 + [0] * 20)
    assert risk_coverage(correct * 1.0, correct).excess_aurc == pytest.approx(0, abs=1e-15)
    useless = risk_coverage(np.full(100, 0.7), correct)
    assert useless.aurc == pytest.approx(0.2, rel=1e-12)
    assert useless.augrc == pytest.approx(0.2 * 101 / 200)


def test_duplicates_change_nothing_but_the_number_of_examples():
    confidence, correct = np.array([0.9, 0.9, 0.4, 0.3]), np.array([1, 0, 1, 0])
    once, many = (
        risk_coverage(confidence, correct),
        risk_coverage(np.tile(confidence, 500), np.tile(correct, 500)),
    )
    assert [many.accuracy_at(c) for c in (0.5, 0.75, 1)] == [once.accuracy_at(c) for c in (0.5, 0.75, 1)]
    shuffled = np.random.default_rng(0).permutation(2000)
    again = risk_coverage(np.tile(confidence, 500)[shuffled], np.tile(correct, 500)[shuffled])
    assert again.errors.tolist() == many.errors.tolist()


def test_tensors_of_a_graph_and_of_half_precision_are_taken():
    confidence = torch.tensor([0.5, 0.25], dtype=torch.bfloat16, requires_grad=True)
    assert risk_coverage(confidence, torch.tensor([True, False])).errors.tolist() == [0, 1]


def test_infinite_scores_are_in_order_too():
    assert risk_coverage([np.inf, 0.0, -np.inf], [1, 1, 0]).errors.tolist() == [0, 0, 1]


def test_the_least_area_approaches_its_limit():
    r = 0.07
    assert least_aurc(7000, 100_000) == pytest.approx(r + (1 - r) * np.log(1 - r), rel=1e-3)


@pytest.mark.parametrize(
    ("confidence", "correct", "said"),
    [
        ([0.1, float("nan")], [1, 0], "confidence of example 1 is nan"),
        ([0.1, 0.2], [1, 2], "right .1. or wrong .0., not 2"),
        ([0.1], [1, 0], "one value for each example"),
        ([], [], "at least one of each"),
    ],
)
def test_what_is_refused(confidence, correct, said):
    with pytest.raises(ValueError, match=said):
        risk_coverage(confidence, correct)


@pytest.mark.parametrize("coverage", [0, -0.1, 1.01, float("nan")])
def test_a_coverage_that_is_none_is_refused(coverage):
    with pytest.raises(ValueError, match="coverage must lie above 0"):
        risk_coverage([0.5], [1]).accuracy_at(coverage)
