from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_rel

from softtargets.distillation import gain

accuracies = st.floats(0, 1)


def test_a_gain_computed_by_hand():
    found = gain([0.95, 0.90, 0.94], [0.93, 0.91, 0.90])
    assert found.differences == pytest.approx((0.02, -0.01, 0.04))
    assert found.mean == pytest.approx(0.05 / 3)
    assert (found.lowest, found.highest) == pytest.approx((-0.01, 0.04))
    deviation = math.sqrt(((0.01 / 3) ** 2 + (0.08 / 3) ** 2 + (0.07 / 3) ** 2) / 2)
    assert found.deviation == pytest.approx(deviation)
    reach = 4.3026527 * deviation / math.sqrt(3)  # Student's table: t(0.975, 2)
    assert found.interval == pytest.approx((0.05 / 3 - reach, 0.05 / 3 + reach), rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(accuracies, accuracies), min_size=2, max_size=12))
def test_mean_and_deviation_are_those_of_the_statistics_module(pairs):
    found = gain(*zip(*pairs, strict=True))
    differences = [a - b for a, b in pairs]
    assert found.mean == pytest.approx(statistics.fmean(differences), abs=1e-12)
    assert found.deviation == pytest.approx(statistics.stdev(differences), abs=1e-9)
    assert found.lowest <= found.mean + 1e-15
    assert found.mean <= found.highest + 1e-15
    turned = gain(*zip(*[(b, a) for a, b in pairs], strict=True))
    assert turned.interval == pytest.approx((-found.interval[1], -found.interval[0]), abs=1e-12)


@pytest.mark.parametrize("n", [2, 3, 5, 30])
def test_the_interval_is_that_of_scipys_paired_test(n):
    random = np.random.default_rng(n)
    student, baseline = random.random(n), random.random(n)
    expected = ttest_rel(student, baseline).confidence_interval(0.95)
    assert gain(student, baseline).interval == pytest.approx((expected.low, expected.high), rel=1e-9)


def test_seeds_are_paired():
    found = gain([0.5, 0.7, 0.9], [0.4, 0.6, 0.8])
    assert found.deviation == pytest.approx(0, abs=1e-15)


def test_one_seed_says_little():
    found = gain([0.75], [0.5])
    assert (found.mean, found.lowest, found.highest) == (0.25, 0.25, 0.25)
    assert math.isnan(found.deviation)
    assert found.interval == (-math.inf, math.inf)


@pytest.mark.parametrize(
    ("student", "baseline", "message"),
    [
        ([0.5, 0.6], [0.5], "same seeds, but there are 2 and 1 values"),
        ([], [], "student must have the accuracy of at least one seed"),
        ([0.5], [], "baseline must have the accuracy of at least one seed"),
        ([0.5, math.nan], [0.5, 0.5], "value 1 of student is nan"),
        ([0.5], [math.inf], "value 0 of baseline is inf"),
    ],
)
def test_bad_input_is_refused(student, baseline, message):
    with pytest.raises(ValueError, match=message):
        gain(student, baseline)
