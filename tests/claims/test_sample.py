from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import sem, t

from softtargets.claims import Sample

numbers = st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=12)


@settings(max_examples=50, deadline=None)
@given(numbers)
def test_mean_and_spread_are_those_of_the_statistics_module(values):
    sample = Sample.of(values)
    assert sample.n == len(values)
    assert sample.mean == pytest.approx(statistics.fmean(values), rel=1e-12, abs=1e-9)
    assert sample.spread == pytest.approx(statistics.stdev(values), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("values", [[1.0, 2.0], [0.1, 0.2, 0.4], [5.0, -3.0, 2.0, 8.0, 1.0]])
def test_the_interval_is_scipys(confidence, values):
    expected = t.interval(confidence, len(values) - 1, loc=np.mean(values), scale=sem(values))
    assert Sample.of(values).interval(confidence) == pytest.approx(expected, rel=1e-12)


def test_an_interval_from_the_table_of_student():
    # n = 3, mean 2, deviation 1; t(0.975, 2) = 4.303
    low, high = Sample.of([1, 2, 3]).interval()
    assert (low, high) == pytest.approx((2 - 4.303 / math.sqrt(3), 2 + 4.303 / math.sqrt(3)), abs=1e-3)


def test_equal_values_have_an_interval_of_no_width():
    assert Sample.of([0.5, 0.5, 0.5]).interval() == (0.5, 0.5)


@pytest.mark.parametrize("values", [[], [3.0]])
def test_fewer_than_two_values_say_nothing(values):
    sample = Sample.of(values)
    assert math.isnan(sample.spread)
    assert sample.interval() == (-math.inf, math.inf)


def test_the_mean_of_few_values():
    assert math.isnan(Sample.of([]).mean)
    assert Sample.of([3.0]).mean == 3


def test_a_sample_is_made_of_any_numbers():
    assert (
        Sample.of(range(3))
        == Sample.of(np.arange(3))
        == Sample.of(x for x in (0, 1, 2))
        == Sample((0.0, 1.0, 2.0))
    )
    assert all(type(value) is float for value in Sample.of(np.arange(3, dtype=np.float32)).values)


def test_samples_are_frozen():
    with pytest.raises(AttributeError):
        Sample.of([1]).values = ()


def test_differences_are_taken_seed_by_seed():
    assert Sample.of([3, 5, 9]).minus(Sample.of([1, 1, 4])) == Sample.of([2, 4, 5])
    paired = Sample.of([10, 20, 30.0]).minus(Sample.of([9, 19, 29]))
    assert paired.spread == 0


def test_samples_of_different_length_cannot_be_paired():
    with pytest.raises(ValueError, match="cannot pair 3 values with 2"):
        Sample.of([1, 2, 3]).minus(Sample.of([1, 2]))


def test_not_a_number_stays_one():
    assert math.isnan(Sample.of([1.0, math.nan, 2.0]).mean)
    assert all(map(math.isnan, Sample.of([1.0, math.nan, 2.0]).interval()))


def test_the_spread_of_many_values_takes_time_in_proportion(monkeypatch):
    """The mean is found once, and not again for every value."""
    sums = []
    monkeypatch.setattr(Sample, "mean", property(lambda sample: sums.append(1) or 2.0))
    assert Sample.of([1.0, 2.0, 3.0] * 50).spread == pytest.approx(math.sqrt(100 / 149))
    assert len(sums) == 1
