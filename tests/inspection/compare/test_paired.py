from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch

from inspection.made import net
from softtargets.calibration import measure_calibration
from softtargets.inspection.compare.paired import (
    PairedSums,
    error_difference,
    measures_of,
)
from softtargets.inspection.shared.numbers import Estimate


def test_measures_of_rows_are_those_of_plain_loops():
    logits, labels = net(20, 4, seed=3)
    rows = measures_of(logits.double(), labels)
    for i in range(20):
        z = logits[i].double().tolist()
        total = sum(map(math.exp, z))
        p = [math.exp(v) / total for v in z]
        y = int(labels[i])
        assert float(rows.nll[i]) == pytest.approx(-math.log(p[y]))
        assert float(rows.confidence[i]) == pytest.approx(max(p))
        assert int(rows.predicted[i]) == p.index(max(p))
        assert float(rows.brier[i]) == pytest.approx(sum((q - (k == y)) ** 2 for k, q in enumerate(p)))


def summed(a, b, labels, bins=15):
    sums = PairedSums(bins)
    half = len(labels) // 3
    for some in (slice(0, half), slice(half, None)):
        sums.add(measures_of(a[some].clone(), labels[some]), measures_of(b[some].clone(), labels[some]))
    measured = [measure_calibration(z, labels, from_logits=True, resamples=100) for z in (a, b)]
    return measured, sums.differences(*measured)


def test_differences_are_paired_means():
    a, labels = net(800, 5, sharpness=1.5)
    b = a + torch.randn(a.shape, generator=torch.Generator().manual_seed(1))
    _, found = summed(a.double(), b.double(), labels)
    nll = torch.nn.functional.cross_entropy
    d = (nll(b.double(), labels, reduction="none") - nll(a.double(), labels, reduction="none")).numpy()
    assert found.nll.value == pytest.approx(d.mean())
    assert found.nll.high - found.nll.value == pytest.approx(1.959964 * d.std(ddof=1) / math.sqrt(len(d)))
    right = [(z.argmax(1) == labels).double() for z in (a, b)]
    assert found.accuracy.value == pytest.approx(float((right[1] - right[0]).mean()))


def test_differences_of_errors_are_those_of_the_table():
    a, labels = net(800, 5, sharpness=1.0)
    (one, two), found = summed(a, 2 * a, labels)
    assert found.ece.value == pytest.approx(two.expected_calibration_error - one.expected_calibration_error)
    assert found.smooth_ece.value == pytest.approx(
        two.smooth_calibration_error - one.smooth_calibration_error
    )
    assert found.ece.above_zero
    assert found.smooth_ece.above_zero


def test_a_model_does_not_differ_from_itself():
    a, labels = net(500, 5, sharpness=1.3)
    _, found = summed(a, a.clone(), labels)
    assert found.ece.is_zero
    assert found.smooth_ece.is_zero
    assert found.nll == Estimate(0.0, 0.0, 0.0)
    assert found.accuracy.is_zero
    assert found.accuracy_p == 1.0


def test_rounding_makes_no_model_better():
    """One model twice, as logits and as the logarithms of its probabilities: 1e-9 less of every example is no gain."""
    logits, labels = net(500)
    a, b = measures_of(logits.double(), labels), measures_of(logits.double(), labels)
    b = replace(b, nll=a.nll - 1e-9, brier=a.brier - 1e-9)
    sums = PairedSums(15)
    sums.add(a, b)
    measured = measure_calibration(logits, labels, from_logits=True)
    found = sums.differences(measured, measured)
    assert found.nll.is_zero
    assert found.brier.is_zero
    assert found.nll.value == pytest.approx(-1e-9, rel=1e-3)


def test_two_calibrated_models_are_rarely_told_apart():
    claims = 0
    for seed in range(10):
        a, labels = net(400, 5, seed=seed)
        b = torch.zeros_like(a)  # says one in five of everything, and is right
        sums = PairedSums(15)
        sums.add(measures_of(a, labels), measures_of(b, labels))
        both = [measure_calibration(z, labels, from_logits=True, resamples=100) for z in (a, b)]
        found = sums.differences(*both)
        claims += not found.ece.is_zero
    assert claims <= 1


def test_independent_errors_add_like_squares():
    a, b = Estimate(0.1, 0.07, 0.13), Estimate(0.2, 0.16, 0.24)
    found = error_difference(a, b)
    assert (found.low, found.high) == pytest.approx((0.05, 0.15))


def test_correlation_narrows_only_what_is_no_scatter():
    a, b = Estimate(0.1, 0.07, 0.13), Estimate(0.2, 0.17, 0.23)
    assert error_difference(a, b, 1.0).low == pytest.approx(0.1)
    near = Estimate(0.03, 0.0, 0.06)
    assert error_difference(near, b, 1.0).low == error_difference(near, b).low
