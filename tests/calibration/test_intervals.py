from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import optimize, stats

from calibration import exact
from softtargets.calibration import (
    CalibrationSums,
    Reliability,
    measure_calibration,
    measure_confidences,
)
from softtargets.calibration.groups import Groups
from softtargets.calibration.intervals import (
    _folded,
    classwise_interval,
    factors,
    maximum_interval,
    resampled,
)

NAMES = [
    "expected_calibration_error",
    "adaptive_calibration_error",
    "debiased_calibration_error",
    "smooth_calibration_error",
    "classwise_calibration_error",
]


def total(residuals):
    return residuals.abs().sum(-1)


@pytest.mark.parametrize("truth", [1.0, 0.6])
def test_intervals_hold_the_truth_as_often_as_they_say(truth):
    if truth == 1:
        expected = dict.fromkeys(NAMES, 0.0)
    else:
        many = exact.sampled(count=100_000, truth=truth, seed=99)
        expected = measure_calibration(*many, from_logits=True, level=None).scalars()
    hits = dict.fromkeys(NAMES, 0)
    for seed in range(30):
        logits, y = exact.sampled(count=1000, truth=truth, seed=seed)
        found = measure_calibration(logits, y, from_logits=True, resamples=100)
        for name in NAMES:
            low, high = found.intervals[name]
            hits[name] += low <= expected[name] <= high
    # Of 30 intervals that hold it 9 times in 10, fewer than 22 do about once in a hundred times.
    assert min(hits.values()) >= 22, hits


@pytest.mark.parametrize(("count", "confidence", "right"), [(50, 0.99, 1), (30, 0.95, 1), (5, 0.03, 0)])
def test_where_all_are_right_or_wrong_the_accuracy_may_still_be_another(count, confidence, right):
    said = torch.linspace(confidence - 0.005, confidence + 0.005, count, dtype=torch.float64)
    found = measure_confidences(said, torch.full((count,), right), resamples=100)
    accuracy = stats.binomtest(right * count, count).proportion_ci(0.95, method="wilson")
    most = max(confidence - accuracy.low, accuracy.high - confidence)
    for name in set(NAMES) - {"classwise_calibration_error"}:
        # Such outcomes are likely with these confidences: nothing speaks against a calibrated model.
        assert found.intervals[name] == (0, pytest.approx(most, rel=1e-3)), name
        assert 0 <= found.corrected.get(name, 0) <= most


def test_where_all_are_right_and_should_not_be_the_error_is_real():
    found = measure_confidences(torch.full((1000,), 0.9), torch.ones(1000, dtype=torch.int64), resamples=100)
    accuracy = stats.binomtest(1000, 1000).proportion_ci(0.95, method="wilson")
    low, high = found.intervals["smooth_calibration_error"]
    assert low == pytest.approx(accuracy.low - 0.9, abs=1e-6)
    assert high == pytest.approx(0.1, abs=1e-6)


def test_scatter_has_the_variance_of_the_residuals():
    logits, y = exact.sampled(count=2000)
    groups = Groups.of_cells(CalibrationSums.of(logits, y, from_logits=True))
    scatter = torch.cat(list(resampled(groups, 4000, seed=0)))
    assert len(scatter) == 4000
    p = logits.softmax(-1).amax(1)
    each = p - (logits.argmax(1) == y).double()
    assert float(scatter.sum(1).std()) == pytest.approx(float(each.std()) / 2000**0.5, rel=0.05)
    assert float(scatter.sum(1).mean()) == pytest.approx(0, abs=5e-4)


def test_an_error_smaller_than_scatter_alone_reaches_up_to_what_was_observed():
    scatter = torch.full((100, 1), 2.0, dtype=torch.float64)
    observed = torch.full((1,), 0.5, dtype=torch.float64)
    assert factors(lambda r: r.abs().sum(-1), observed, scatter, 0.95) == (0.0, 0.0, 1.0)


def test_factors_of_a_single_normal_residual_are_known():
    # One residual of size 1 with scatter 0.1: truths from 1 - 0.196 to 1 + 0.196.
    generator = torch.Generator().manual_seed(0)
    scatter = 0.1 * torch.randn(100_000, 1, generator=generator, dtype=torch.float64)
    low, middle, high = factors(total, torch.ones(1, dtype=torch.float64), scatter, 0.95)
    assert (low, middle, high) == pytest.approx((1 - 0.196, 1, 1 + 0.196), abs=3e-3)
    low, _, high = factors(total, 0.1 * torch.ones(1, dtype=torch.float64), scatter, 0.95)
    assert low == 0
    assert 0.1 * high == pytest.approx(0.1 + 0.196, abs=5e-3)


def test_no_error_observed_is_no_interval():
    found = factors(total, torch.zeros(3, dtype=torch.float64), torch.zeros(5, 3, dtype=torch.float64), 0.95)
    assert found == (0, 0, 0)


@pytest.mark.parametrize("count", [1, 3, 20, 400])
def test_examples_that_are_all_right_leave_room_for_mistakes(count):
    """Resampling shows none, but with the lowest accuracy that Wilson's interval allows there would be some."""
    y = torch.arange(count) % 4
    found = measure_calibration(0.999 * torch.eye(4)[y] + 0.001 / 4, y, from_logits=False, resamples=20)
    lowest = count / (count + stats.norm.ppf(0.975) ** 2)
    least = 0.99925 - lowest
    assert found.intervals["accuracy"] == pytest.approx((lowest, 1))
    for name in NAMES[:4]:
        assert found.intervals[name][1] == pytest.approx(max(least, found.scalars()[name]), abs=2e-5)
    # What the label lacks, other classes have too much.
    assert found.intervals["classwise_calibration_error"][1] == pytest.approx(2 * least / 4, abs=2e-5)


@pytest.mark.parametrize("seed", range(10))
def test_no_high_end_lies_below_what_confidence_and_accuracy_may_differ_by(seed):
    """The difference is a mean, whose scatter with many examples is that of its terms."""
    logits, y = exact.sampled(count=1500, truth=0.7, seed=seed)
    found = measure_calibration(logits, y, from_logits=True, resamples=50)
    p = logits.softmax(1).amax(1)
    each = p - (logits.argmax(1) == y).double()
    difference = abs(float(each.mean())) + 1.96 * float(each.std()) / 1500**0.5
    for name in NAMES[:4]:
        low, high = found.intervals[name]
        assert low <= high <= 1
        assert high >= difference - 0.002


@pytest.mark.parametrize("count", [5, 20])
def test_intervals_of_a_handful_of_examples_hold_the_truth(count):
    """A model that says 0.99 and is right in 93 of 100 cases: often no example shows a mistake."""
    random, hits = torch.Generator().manual_seed(0), dict.fromkeys(NAMES, 0)
    expected = dict.fromkeys(NAMES[:4], 0.06) | {NAMES[4]: 0.04}
    for _ in range(60):
        y = torch.randint(3, (count,), generator=random)
        said = torch.where(torch.rand(count, generator=random) < 0.93, y, (y + 1) % 3)
        scores = 0.985 * torch.eye(3)[said] + 0.005
        found = measure_calibration(scores, y, from_logits=False, resamples=50)
        for name in NAMES:
            low, high = found.intervals[name]
            hits[name] += low <= expected[name] <= high
    # Of 60 intervals that hold it 19 times in 20, fewer than 52 do about once in a hundred times.
    assert min(hits.values()) >= 52, hits


def test_the_mean_of_an_absolute_value_against_scipy():
    mean = torch.tensor([0.0, 0.5, -2.0, 3.0], dtype=torch.float64)
    spread = torch.tensor([1.0, 2.0, 0.5, 0.0], dtype=torch.float64)
    expected = [stats.foldnorm(abs(m) / s, scale=s).mean() for m, s in zip(mean[:3], spread[:3], strict=True)]
    assert _folded(mean, spread).tolist() == pytest.approx([*expected, 3.0])


def test_the_classwise_interval_begins_at_zero_where_scatter_explains_all():
    logits, y = exact.sampled(count=500, truth=1.0)
    sums = CalibrationSums.of(logits, y, from_logits=True)
    low, _, high = classwise_interval(sums, 0.95)
    assert low == 0
    assert 0 < high < 0.05


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_the_ends_of_the_classwise_interval_are_where_the_observed_error_is_a_quantile(level):
    """Mean and variance of absolute values from scipy, the crossing by Brent's method."""
    logits, y = exact.sampled(count=4000, classes=3, truth=0.5)
    sums = CalibrationSums.of(logits, y, from_logits=True)
    tables = sums.class_counts, sums.class_probability, sums.class_positives
    n, p, hits = (table[sums.class_counts > 0].double().numpy() for table in tables)
    share = np.clip((p + hits) / (2 * n), 0, 1)
    gap, scatter = (p - hits) / 4000, np.sqrt(n * share * (1 - share) * n / (n - 0.25)) / 4000

    def above(factor, deviations):
        size = stats.foldnorm(np.abs(factor * gap) / scatter, scale=scatter)
        # Residuals of an example add up to 0 over classes; twice the variance stands for that.
        return size.mean().sum() + deviations * np.sqrt(2 * size.var().sum()) - np.abs(gap).sum()

    z = stats.norm.ppf((1 + level) / 2)
    low, high = optimize.brentq(above, 0, 1, args=(z,)), optimize.brentq(above, 0, 50, args=(-z,))
    assert 0 < low < 1 < high
    expected = low * np.abs(gap).sum() / 3, high * np.abs(gap).sum() / 3
    middle = optimize.brentq(above, 0, 50, args=(0,)) * np.abs(gap).sum() / 3
    assert classwise_interval(sums, level) == pytest.approx((expected[0], middle, expected[1]), rel=1e-3)


def curve_of(counts, right, confidence) -> Reliability:
    counts, right = torch.tensor(counts), torch.tensor(right, dtype=torch.float64)
    said = torch.tensor(confidence, dtype=torch.float64)
    return Reliability(torch.linspace(0, 1, len(counts) + 1), counts, said, right / counts)


def test_the_maximum_gap_lies_between_what_exact_intervals_of_all_bins_allow():
    counts, right, said = [3, 0, 40, 900], [3, 0, 11, 870], [0.1, float("nan"), 0.6, 0.9]
    least, largest = 0.0, 0.0
    for n, k, confidence in zip(counts, right, said, strict=True):
        if n:
            found = stats.binomtest(k, n).proportion_ci(1 - 0.1 / 3, method="exact")
            least = max(least, found.low - confidence, confidence - found.high)
            largest = max(largest, abs(found.low - confidence), abs(found.high - confidence))
    assert maximum_interval(curve_of(counts, right, said), 0.9) == pytest.approx((least, largest))
    assert least > 0.1  # of the third bin alone


@pytest.mark.parametrize(("count", "shift"), [(60, 0.0), (60, 0.3), (3000, 0.0), (3000, 0.05)])
def test_the_interval_of_the_maximum_holds_the_truth_at_least_as_often_as_it_says(count, shift):
    generator = torch.Generator().manual_seed(count)
    said = torch.linspace(0.05, 0.95, 10, dtype=torch.float64)
    true, shares = (said - shift).clamp(min=0), torch.arange(1.0, 11)
    hits = 0
    for _ in range(100):
        counts = torch.multinomial(shares, count, replacement=True, generator=generator).bincount(
            minlength=10
        )
        right = torch.binomial(counts.double(), true, generator=generator)
        low, high = maximum_interval(Reliability(torch.linspace(0, 1, 11), counts, said, right / counts), 0.9)
        hits += low <= float((said - true)[counts > 0].max()) + 1e-9 <= high + 2e-9
    # Of 100 intervals that hold it 9 times in 10, fewer than 83 do about once in a hundred times.
    assert hits >= 83


@pytest.mark.parametrize("seed", range(40))
def test_every_estimate_lies_inside_its_interval(seed):
    """Random models, calibrated and not, tied, certain, of a handful of examples or of many."""
    random = torch.Generator().manual_seed(seed)
    n = [1, 2, 5, 20, 60, 200, 600, 2000][seed % 8]
    classes = 2 + seed % 5
    logits = 3 * torch.rand(1, generator=random) * torch.randn(n, classes, generator=random)
    y = torch.multinomial(logits.softmax(1), 1, generator=random).squeeze(1)
    logits = logits * (0.3, 1.0, 1.0, 3.0)[seed // 8 % 4]
    scores = logits.softmax(1)
    if seed % 3 == 1:  # votes: ties, zeros and ones
        scores = (
            torch.nn.functional.one_hot(torch.multinomial(scores, 5, True, generator=random)).float().mean(1)
        )
        scores = torch.nn.functional.pad(scores, (0, classes - scores.shape[1]))
    found = measure_calibration(scores, y, from_logits=False, resamples=200)
    told = found.scalars() | found.corrected
    assert set(found.corrected) == set(NAMES) - {"debiased_calibration_error"}
    for name, (low, high) in found.intervals.items():
        if np.isfinite(told[name]):
            assert low <= told[name] <= high, name


def test_the_corrected_error_is_as_often_above_as_below_the_true_one():
    above = 0
    for seed in range(60):
        random = torch.Generator().manual_seed(seed)
        y = (torch.rand(400, generator=random) < 0.25).long()
        found = measure_calibration(
            torch.tensor([[0.8, 0.2]]).expand(400, 2), y, from_logits=False, resamples=200
        )
        above += found.corrected["expected_calibration_error"] > 0.05
    assert 20 <= above <= 40
    many = [exact.sampled(count=300, truth=1.0, seed=seed) for seed in range(20)]
    measured = [measure_calibration(*one, from_logits=True, resamples=100) for one in many]
    name = "smooth_calibration_error"
    assert sum(one.corrected[name] < 0.5 * one.smooth_calibration_error for one in measured) >= 10
