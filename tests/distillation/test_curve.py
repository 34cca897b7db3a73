from __future__ import annotations

import dataclasses
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softtargets.distillation import Curve, curve


def test_a_curve_computed_by_hand():
    found = curve([(0.3, [0.5, 1.0, 0.75]), (0.1, (0.25, 0.75))])
    assert found == Curve(
        x=(0.1, 0.3), counts=(2, 3), lowest=(0.25, 0.5), mean=(0.5, 0.75), highest=(0.75, 1.0)
    )


def test_values_of_the_same_x_are_taken_together_and_a_dictionary_has_items():
    assert curve([(1, [4.0]), (0, [3.0]), (1.0, [2.0])]) == curve({0: [3.0], 1: [4.0, 2.0]}.items())


@settings(max_examples=60, deadline=None)
@given(
    runs=st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.2, 0.6]), st.floats(0, 1)), min_size=1, max_size=20),
    data=st.data(),
)
def test_the_definition_with_loops_in_any_order(runs, data):
    moved = data.draw(st.permutations(runs))
    found = curve((x, [value]) for x, value in moved)
    assert list(found.x) == sorted({x for x, _ in runs})
    for place, x in enumerate(found.x):
        there = [value for other, value in runs if other == x]
        assert found.counts[place] == len(there)
        assert found.lowest[place] == min(there)
        assert found.highest[place] == max(there)
        assert found.mean[place] == pytest.approx(sum(there) / len(there))
    assert found == curve((x, [value]) for x, value in runs)


def test_curves_are_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        curve([(0, [1])]).x = ()


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([], "a curve needs at least one point"),
        ([(0.5, [])], "the point at x = 0.5 has no values"),
        ([(math.nan, [1.0])], "x of a point must be a finite number, not nan"),
        ([(0.5, [1.0, math.nan])], "one at x = 0.5 is nan"),
    ],
)
def test_bad_input_is_refused(points, message):
    with pytest.raises(ValueError, match=message):
        curve(points)
