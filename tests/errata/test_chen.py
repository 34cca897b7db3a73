"""Chen et al. 2020: what is printed does not hold, what ERRATA.md says instead does. The paper's T is our T.T."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest

from softtargets.claims import published
from softtargets.models import ResNet18
from softtargets.theory import (
    gamma_transition,
    generalization_loss,
    limiting_loss,
    matrix_loss,
    mean_field_loss,
    mean_field_p,
    optimal_matrix,
    optimal_p,
    uniform_matrix,
)
from theory.exact import looped_loss, random_stochastic

ERRATA = Path(__file__).parents[2] / "ERRATA.md"
ASYMMETRIC = np.array([[0.9, 0.1], [0.4, 0.6]])
ASYMMETRIC_3 = np.array([[0.9, 0.1, 0.0], [0.2, 0.5, 0.3], [0.0, 0.4, 0.6]])


def test_1_a_factor_of_one_half():
    for classes in (2, 3, 10, 100):
        paper = uniform_matrix(0.8, classes).T
        printed = paper @ paper.T / 2
        assert printed.sum(0) == pytest.approx(np.full(classes, 0.5))
        assert 2 * printed[0, 0] == pytest.approx(optimal_p(0.8, classes, "beta"), rel=1e-13)
        assert mean_field_p(paper.T, "beta") == pytest.approx(np.trace(paper @ paper.T) / classes, rel=1e-13)
    product = ASYMMETRIC.T @ ASYMMETRIC
    right = optimal_matrix(ASYMMETRIC, "beta")
    assert right == pytest.approx(product / product.sum(1, keepdims=True))
    assert abs(right[0, 1] - right[1, 0]) > 0.2


def test_2_labels_do_something_with_probability_one():
    a, classes = 0.8, 10
    assert a + (classes - 1) * a / (classes - 1) == pytest.approx(2 * a)
    assert uniform_matrix(a, classes).sum(1) == pytest.approx(np.ones(classes))


def test_3_what_to_believe_is_bayes_and_not_the_noise():
    best = optimal_matrix(ASYMMETRIC, "alpha")
    assert best == pytest.approx(np.array([[9 / 13, 4 / 13], [1 / 7, 6 / 7]]))
    assert looped_loss(ASYMMETRIC, ASYMMETRIC, "alpha") == pytest.approx(0.707, abs=5e-4)
    assert looped_loss(best, ASYMMETRIC, "alpha") == pytest.approx(0.545, abs=5e-4)
    to_the_next = 0.8 * np.eye(3) + 0.2 * np.roll(np.eye(3), 1, axis=1)
    assert matrix_loss(to_the_next, to_the_next, "alpha") == math.inf
    assert optimal_matrix(to_the_next, "alpha") == pytest.approx(to_the_next.T)


def test_4_ordered_pairs_are_there_twice_already():
    def printed(S, paper, factor):
        M, total = len(S), 0.0
        for i in range(M):
            for j in range(M):
                total -= paper[j, i] ** 2 * math.log(S[j, j])
                for k in range(M):
                    if k != j:
                        total -= factor * paper[k, i] * paper[j, i] * math.log(S[k, j])
        return total / M

    noise = uniform_matrix(0.8, 10)
    p = np.linspace(0.4, 0.7, 31)
    losses = {factor: [printed(uniform_matrix(x, 10), noise, factor) for x in p] for factor in (1, 2)}
    assert p[np.argmin(losses[1])] == pytest.approx(optimal_p(0.8, 10, "beta"), abs=0.01)
    assert p[np.argmin(losses[2])] == pytest.approx(0.475, abs=0.01)
    S = random_stochastic(np.random.default_rng(0), 3)
    S = (S + S.T) / 2  # equation 12 does not say which index of S is which
    assert printed(S, ASYMMETRIC_3.T, 1) == pytest.approx(looped_loss(S, ASYMMETRIC_3, "beta"), rel=1e-12)


def test_5_the_sum_is_the_mean_times_the_others():
    a, classes = 0.8, 10
    mean = ((1 - a) / (classes - 1)) ** 2
    assert a * a + (classes - 1) * mean == pytest.approx(optimal_p(a, classes, "beta"), rel=1e-13)
    assert abs(a * a + mean / (classes - 1) - optimal_p(a, classes, "beta")) > 0.004


def test_6_the_mean_field_loss_leaves_out_the_diagonal():
    paper, classes, p = ASYMMETRIC_3.T, 3, 0.7
    total = 0.0
    for one in range(classes):
        for k in range(classes):
            for j in range(classes):
                share = math.log(p) if k == j else math.log((1 - p) / (classes - 1))
                total -= paper[k, one] * paper[j, one] * share / classes
    assert mean_field_loss(p, ASYMMETRIC_3, "beta") == pytest.approx(total, rel=1e-13)
    assert mean_field_p(ASYMMETRIC_3, "beta") == pytest.approx((paper**2).sum() / classes, rel=1e-13)


def test_7_many_classes_are_not_two_and_a_term():
    a, classes, p = 0.5, 10**9, np.array([0.3, 0.6, 0.9])
    exact = generalization_loss(p, a, classes, "gamma")
    long = math.log(classes - 1)
    entropy = -p * np.log(p) - (1 - p) * np.log1p(-p)
    right = long * (1 - a * p) + a * entropy - (1 - a) * np.log1p(-p)
    assert exact == pytest.approx(right, abs=1e-7)
    assert exact == pytest.approx(limiting_loss(p, a, "gamma") + long * (1 - a * p), abs=1e-7)
    printed = generalization_loss(p, a, 2, "gamma") - a * p * long
    assert np.ptp(exact - printed) > 0.3  # a constant would have none
    assert exact - long - printed == pytest.approx((1 - a) * (1 - p) * np.log(p / (1 - p)), abs=1e-6)


def test_8_two_classes_do_not_jump_and_the_table_is_right():
    z, a = np.array([0.1, 0.2]), 0.7
    s = 2 * a - 1
    even = math.log(2) - 0.5 * np.log1p(-z * z) - s * z * np.arctanh(z)
    assert generalization_loss((1 + z) / 2, a, 2, "gamma") == pytest.approx(even, rel=1e-13)
    assert generalization_loss((1 - z) / 2, a, 2, "gamma") == pytest.approx(even, rel=1e-13)
    assert even == pytest.approx(math.log(2) + (0.5 - s) * z**2 + (0.25 - s / 3) * z**4, abs=1e-5)
    rows = re.findall(
        r"^\| (\d+) \| ([\d.]+) \| ([\d.]+) \|$", ERRATA.read_text(encoding="utf-8"), re.MULTILINE
    )
    assert [int(row[0]) for row in rows] == [3, 10, 100, 1000]
    for classes, place, high in rows:
        found = gamma_transition(int(classes))
        assert (f"{found.a:.6f}", f"{found.high:.6f}") == (place, high)


@pytest.mark.parametrize("classes", [2, 3, 10, 100])
def test_8_nothing_below_one_over_m_is_better(classes):
    u = np.linspace(0.01, 12, 400)
    up, down = (1 / (1 + (classes - 1) * np.exp(-t)) for t in (u, -u))
    for a in np.linspace(0.02, 0.98, 25):
        lowest = min(math.log(classes), generalization_loss(up, a, classes, "gamma").min())
        assert lowest <= generalization_loss(down, a, classes, "gamma").min() + 1e-12


def test_9_forward_correction_is_another_matrix():
    corrected = ASYMMETRIC  # row k: how labels of clean class k are distributed
    assert np.abs(corrected - optimal_matrix(ASYMMETRIC, "alpha")).max() > 0.2
    symmetric = np.array([[0.7, 0.3], [0.3, 0.7]])
    assert symmetric == pytest.approx(optimal_matrix(symmetric, "alpha"))


def test_10_one_class_for_all_costs_nothing():
    assert matrix_loss([[1.0, 0.0], [1.0, 0.0]], ASYMMETRIC, "gamma") == 0


def test_11_logit_smoothing_is_not_above_forward_correction():
    def three(S, h):
        def softmax(x):
            return np.exp(x) / np.exp(x).sum()

        return (
            (S @ np.log(softmax(h))).sum(),
            np.log(S @ softmax(h)).sum(),
            np.log(softmax(S @ h)).sum(),
        )

    found = three(uniform_matrix(0.9, 2), np.array([3.0, 0.0]))
    assert found == pytest.approx((-3.097, -2.129, -2.574), abs=5e-4)
    generator = np.random.default_rng(0)
    above = []
    for _ in range(300):
        classes = int(generator.integers(2, 6))
        smoothing = uniform_matrix(generator.uniform(1 / classes, 1), classes)
        label, forward, logit = three(smoothing, generator.normal(size=classes))
        assert label <= forward + 1e-12
        assert label <= logit + 1e-12
        above.append(logit > forward)
    assert any(above)
    assert not all(above)


def test_12_without_noise_hard_labels_cost_minus_log_p():
    p = 0.9
    entropy = -p * math.log(p) - (1 - p) * math.log(1 - p)
    assert generalization_loss(p, 1.0, 2, "gamma", limits=True) == pytest.approx(entropy)
    for kind in ("alpha", "beta"):
        assert generalization_loss(p, 1.0, 2, kind, limits=True) == pytest.approx(-math.log(p))


def test_13_the_printed_sums_are_the_training_loss():
    p, a, examples = 0.9, 0.8, 1000
    printed = right = 0.0
    for clean in (0, 1):
        for noisy in (0, 1):
            count = examples * (a if noisy == clean else 1 - a) / 2
            f = p if noisy == 1 else 1 - p  # memorised
            printed -= count * math.log(f if noisy == 1 else 1 - f) / examples
            right -= count * math.log(f if clean == 1 else 1 - f) / examples
    assert printed == pytest.approx(-math.log(p), rel=1e-13)  # whatever a is
    assert right == pytest.approx(-a * math.log(p) - (1 - a) * math.log(1 - p), rel=1e-13)
    assert right == pytest.approx(generalization_loss(p, a, 2, "alpha"), rel=1e-13)


def test_14_the_alpha_solution_is_not_doubly_stochastic():
    assert ASYMMETRIC.T.sum(0) == pytest.approx(np.ones(2))  # the printed solution in the paper's notation
    assert ASYMMETRIC.T.sum(1) == pytest.approx(np.array([1.3, 0.7]))
    best = optimal_matrix(ASYMMETRIC, "alpha")
    assert best.sum(1) == pytest.approx(np.ones(2))
    assert best.sum(0) == pytest.approx(np.array([0.835, 1.165]), abs=5e-4)
    doubly = 0.7 * np.eye(3) + 0.2 * np.roll(np.eye(3), 1, axis=1) + 0.1 * np.roll(np.eye(3), 2, axis=1)
    assert optimal_matrix(doubly, "alpha").sum(0) == pytest.approx(np.ones(3))


def test_15_a_stochastic_matrix_has_fewer_free_numbers():
    # As many as there are directions in which a column-stochastic matrix can be changed: the kernel of the column sums.
    for classes in (2, 3, 7):
        sums = np.kron(np.ones(classes), np.eye(classes))
        assert classes**2 - np.linalg.matrix_rank(sums) == classes * (classes - 1)


def test_16_resnet_18_has_eleven_million_parameters():
    def size(width):
        return sum(weight.numel() for weight in ResNet18((3, 32, 32), 10, width).parameters())

    assert size(64) == 11_173_962
    assert min(range(16, 23), key=lambda width: abs(size(width) - 1_000_000)) == 19
    assert size(19) == pytest.approx(1_000_000, rel=0.02)


def test_what_is_to_be_read_with_care():
    for a in (0.05, 0.3, 0.9):
        difference = optimal_p(a, 10, "beta") - optimal_p(a, 10, "alpha")
        assert difference == pytest.approx((10 * a - 1) * (a - 1) / 9)
    both = uniform_matrix(0.8, 10) @ uniform_matrix(0.8, 10)
    assert both[0, 0] == pytest.approx(0.8**2 + 0.2**2 / 9)
    memorised, clean = np.eye(2)[1], 0  # a wrong label, forward correction: f itself predicts
    with np.errstate(divide="ignore"):
        assert -np.log(memorised)[clean] == math.inf
    assert math.isfinite(-np.log(ASYMMETRIC.T @ memorised)[clean])


def test_the_survey_leaves_out_the_row_that_gets_worse():
    rows = {
        "top-1-error": "imagenet-inception-v2",
        "top-5-error": "imagenet-inception-v2",
        "bleu": "en-de-transformer",
        "perplexity": "en-de-transformer",
        "word-error": "wsj-bilstm",
    }

    def gain(quantity):
        hard, smoothed = (
            published(f"muller-2019/{quantity}/{rows[quantity]}/{which}").value
            for which in ("hard", "smoothed")
        )
        return smoothed - hard if quantity == "bleu" else hard - smoothed

    assert [quantity for quantity in rows if gain(quantity) < 0] == ["perplexity"]
    for quantity, place in rows.items():
        if quantity == "perplexity":
            with pytest.raises(KeyError):
                published(f"chen-2020/{quantity}/{place}/smoothed")
        else:
            assert published(f"chen-2020/{quantity}/{place}/smoothed").value > 0
    both = [
        published(f"muller-2019/word-error/wsj-bilstm/{which}").value
        for which in ("smoothed", "smoothed-other")
    ]
    assert published("chen-2020/word-error/wsj-bilstm/smoothed").value == min(both)
