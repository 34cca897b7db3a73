from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from softtargets.inspection.shared.paired_counts import accuracy_difference, mcnemar


@given(st.integers(0, 40), st.integers(0, 40))
def test_mid_p_is_the_exact_p_less_half_of_what_was_observed(a, b):
    if a == b:
        assert mcnemar(a, b) <= 1
        return
    exact = binomtest(min(a, b), a + b, 0.5).pvalue
    point = math.comb(a + b, a) * 0.5 ** (a + b)
    assert mcnemar(a, b) == pytest.approx(exact - point, abs=1e-9)


@given(st.integers(0, 50), st.integers(0, 50))
def test_accuracies_change_sides(a, b):
    one, other = accuracy_difference(a, b, 200), accuracy_difference(b, a, 200)
    assert one.value == -other.value
    assert one.low == pytest.approx(-other.high)
    assert one.low <= one.value <= one.high or a + b == 0


def test_intervals_of_accuracy_differences_hold_the_truth():
    random = np.random.default_rng(0)
    held = 0
    for _ in range(1000):
        only_a, only_b, _ = random.multinomial(300, [0.06, 0.10, 0.84])
        found = accuracy_difference(int(only_a), int(only_b), 300)
        held += found.low <= 0.04 <= found.high
    assert 0.93 <= held / 1000 <= 0.98
