from __future__ import annotations

import math
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import sem, t

from softtargets.claims import (
    COMPUTED_RULE,
    RULE,
    Claim,
    ComputedClaim,
    Region,
    Sample,
    above,
    below,
    published,
)


def claim(values, region, **options):
    return Claim("statement", (), "quantity", Sample.of(values), region, **options)


# For three values m - d, m, m + d the 95% interval reaches d * 4.3027 / sqrt(3) = 2.4841 d to either side.
REACH = 2.4841377


@pytest.mark.parametrize(
    ("values", "region", "verdict"),
    [
        ([0.9, 1.0, 1.1], Region(low=0), "reproduced"),
        ([0.9, 1.0, 1.1], Region(high=2), "reproduced"),
        ([0.9, 1.0, 1.1], Region(low=0, high=2), "reproduced"),
        ([0.9, 1.0, 1.1], Region(), "reproduced"),
        ([0.9, 1.0, 1.1], Region(low=2), "not reproduced"),
        ([0.9, 1.0, 1.1], Region(high=0), "not reproduced"),
        ([0.9, 1.0, 1.1], Region(low=2, high=3), "not reproduced"),
        ([0.9, 1.0, 1.1], Region(low=-3, high=0), "not reproduced"),
        ([0.9, 1.0, 1.1], Region(low=1), "not enough seeds"),
        ([0.9, 1.0, 1.1], Region(low=0.99, high=1.01), "not enough seeds"),
        ([0.9, 1.0, 1.1], Region(low=1 - 0.1 * REACH + 1e-4), "not enough seeds"),
        ([0.9, 1.0, 1.1], Region(low=1 - 0.1 * REACH - 1e-4), "reproduced"),
        ([0.9, 1.0, 1.1], Region(low=1 + 0.1 * REACH + 1e-4), "not reproduced"),
        ([0.9, 1.0, 1.1], Region(low=1 + 0.1 * REACH - 1e-4), "not enough seeds"),
        ([0.9, 1.0, 1.1], Region(high=1 + 0.1 * REACH + 1e-4), "reproduced"),
        ([0.9, 1.0, 1.1], Region(high=1 - 0.1 * REACH - 1e-4), "not reproduced"),
        ([1.0, 1.0, 1.0], Region(low=1), "not reproduced"),
        ([1.0, 1.0, 1.0], Region(high=1), "not reproduced"),
        ([1.0, 1.0, 1.0], Region(low=1, high=2), "not reproduced"),
        ([1.0, 1.0, 1.0], Region(low=1 - 1e-12, high=1 + 1e-12), "reproduced"),
        ([], Region(low=0), "not enough seeds"),
        ([1.0], Region(low=0), "not enough seeds"),
        ([1.0, 1.0], Region(low=0), "not enough seeds"),
        ([-1.0, -1.0], Region(low=0), "not enough seeds"),
        ([1.0, 1.0], Region(), "not enough seeds"),
        ([1.0, 1.0, math.nan], Region(low=0), "not enough seeds"),
        ([math.nan] * 3, Region(low=0), "not enough seeds"),
        ([math.nan] * 3, Region(high=0), "not enough seeds"),
        ([1.0, 1.0, math.inf], Region(low=0), "not enough seeds"),
        ([1.0, 1.0, -math.inf], Region(low=0), "not enough seeds"),
        ([1.0, math.inf, -math.inf], Region(low=0), "not enough seeds"),
    ],
)
def test_the_verdict_follows_the_rule(values, region, verdict):
    assert claim(values, region).verdict == verdict


@settings(max_examples=100, deadline=None)
@given(
    # Steps of 1e-6: the squares of far smaller values are 0, and the two ways to a deviation differ.
    values=st.lists(st.floats(-10, 10).map(lambda value: round(value, 6)), min_size=3, max_size=6),
    low=st.floats(-10, 10) | st.just(-math.inf),
    width=st.floats(0.1, 10) | st.just(math.inf),
)
def test_the_verdict_against_the_rule_written_out(values, low, width):
    high = low + width if math.isfinite(low) else width
    scale = sem(values)
    found = claim(values, Region(low, high)).verdict
    if scale == 0:
        inside, outside = low < values[0] < high, not low < values[0] < high
    else:
        left, right = t.interval(0.95, len(values) - 1, loc=sum(values) / len(values), scale=scale)
        # Where the interval touches an end to the last digit either answer is fair.
        if min(abs(left - low), abs(right - low), abs(left - high), abs(right - high)) < 1e-9:
            return
        inside, outside = low < left and right < high, right < low or left > high
    assert found == ("reproduced" if inside else "not reproduced" if outside else "not enough seeds")


def test_the_interval_is_at_ninety_five_percent():
    values = [1.0, 2.0, 4.0, 5.0]
    assert claim(values, Region()).interval == pytest.approx(t.interval(0.95, 3, loc=3.0, scale=sem(values)))


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([0.5], "reproduced"),
        ([0.5, 0.9], "reproduced"),
        ([0.5, 1.1], "not reproduced"),
        ([1.0], "not reproduced"),
        ([math.nan], "not reproduced"),
        ([math.inf], "not reproduced"),
    ],
)
def test_a_computed_claim_stands_if_all_its_values_lie_inside(values, verdict):
    claim = ComputedClaim("", (), "", Sample.of(values), Region(high=1))
    assert claim.verdict == verdict


def test_the_rule_is_stated_with_its_numbers():
    assert "at least 3 seeds" in RULE
    assert "95% t-interval" in RULE


def test_claims_are_measured_unless_a_class_of_them_says_otherwise():
    assert not claim([1.0], Region()).computed
    assert "no seeds" in COMPUTED_RULE


@pytest.mark.parametrize(
    ("region", "words"),
    [
        (Region(low=0), "above 0"),
        (Region(high=-0.5), "below -0.5"),
        (Region(low=-0.01, high=0.01), "between -0.01 and 0.01"),
    ],
)
def test_regions_in_words(region, words):
    assert str(region) == words


def test_claims_are_frozen_and_digits_are_only_for_show():
    first = claim([1.0], Region())
    with pytest.raises(FrozenInstanceError):
        first.statement = ""
    assert first == claim([1.0], Region(), digits=5)
    assert first != claim([1.0], Region(), remark="another")


def test_a_claim_carries_what_the_paper_printed():
    printed = published("muller-2019/ece/cifar100/hard")
    assert Claim("", (printed,), "", Sample.of([]), Region()).published[0].value == 0.15


@pytest.mark.parametrize("found", [Sample.of([0.5, 0.25]), 0.5])
def test_what_a_claim_rests_on_is_a_sample_and_one_side_of_an_end(found):
    sample, region = above(0.25, found)
    assert sample.values == (found.values if isinstance(found, Sample) else (0.5,))
    assert (region.low, region.high) == (0.25, math.inf)
    assert below(0.25, found) == (sample, Region(-math.inf, 0.25))
