"""Whole translations: against loops, scipy, and a simulated model whose probabilities are true."""

from __future__ import annotations

import math

import numpy as np
import pytest

from softtargets.exceptions import SofttargetsError
from softtargets.translation import exact_matches, sequence_calibration, spearman


def test_by_loops():
    log_p = [-0.2, -1.5, -4.0, -9.0, -0.9]
    lengths, exact = [3, 5, 8, 4, 2], [True, False, False, False, True]
    scores = [1.0, 0.7, 0.55, 0.2, 1.0]
    found = sequence_calibration(log_p, lengths, exact, scores, bins=5)
    assert found.expected_exact == pytest.approx(sum(map(math.exp, log_p)))
    assert found.observed_exact == 2
    gaps, matches, per = [0.0] * 5, [0.0] * 5, []
    for z, n, hit, worth in zip(log_p, lengths, exact, scores, strict=True):
        p, q = math.exp(z), math.exp(z / n)
        per.append(q)
        gaps[min(int(q * 5), 4)] += q - worth
        matches[min(int(p * 5), 4)] += p - hit
    assert found.graded_gap == pytest.approx(sum(map(abs, gaps)) / 5)
    assert found.exact.expected_calibration_error == pytest.approx(sum(map(abs, matches)) / 5)
    assert found.mean_token_probability == pytest.approx(sum(per) / 5)
    assert found.mean_score == pytest.approx(0.69)


def test_probabilities_that_are_true_are_calibrated():
    generator = np.random.default_rng(0)
    p = generator.beta(0.6, 1.5, 20_000)
    exact = generator.random(20_000) < p
    found = sequence_calibration(np.log(p), np.full(20_000, 6), exact, exact.astype(float))
    assert found.exact.expected_calibration_error < 0.01
    assert found.expected_exact == pytest.approx(found.observed_exact, rel=0.03)
    bold = sequence_calibration(np.log(p) / 2, np.full(20_000, 6), exact, exact.astype(float))
    assert bold.exact.expected_calibration_error > 0.1
    assert bold.rank_correlation == pytest.approx(found.rank_correlation)


@pytest.mark.parametrize("ties", [False, True])
def test_spearman_is_scipys(ties):
    stats = pytest.importorskip("scipy.stats")
    generator = np.random.default_rng(1)
    x = generator.normal(size=200)
    y = x + generator.normal(size=200)
    if ties:
        x, y = x.round(), y.round()
    assert spearman(x, y) == pytest.approx(stats.spearmanr(x, y).statistic)
    assert math.isnan(spearman(x, np.zeros(200)))


def test_exact_matches():
    assert exact_matches(["a b", "", "c"], ["a  b\n", "", "C"]).tolist() == [True, True, False]
    with pytest.raises(SofttargetsError, match="each of the 1 translations, not 2"):
        exact_matches(["a"], ["a", "b"])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"log_probs": [0.5, -1.0]}, "at most 0, not 0.5"),
        ({"log_probs": [math.nan, -1.0]}, "at most 0, not nan"),
        ({"lengths": [0, 2]}, "at least one token, EOS, not 0"),
        ({"scores": [30.0, 0.5]}, "between 0 and 1, not 30; divide"),
        ({"scores": [0.5]}, r"not \(2,\), \(2,\), \(2,\) and \(1,\)"),
    ],
)
def test_refusals(change, words):
    given = {
        "log_probs": [-1.0, -2.0],
        "lengths": [2, 3],
        "exact": [True, False],
        "scores": [1.0, 0.5],
    } | change
    with pytest.raises(SofttargetsError, match=words):
        sequence_calibration(**given)
    with pytest.raises(SofttargetsError, match="at least one"):
        sequence_calibration([], [], [], [])
