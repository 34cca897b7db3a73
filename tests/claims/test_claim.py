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
    VERDICTS,
    Claim,
    ComputedClaim,
    Region,
    Sample,
    above,
    below,
    published,
    split_seeds,
    zone,
)


def claim(values, region, **options):
    return Claim("statement", (), "quantity", Sample.of(values), region, **options)


# For three values m - d, m, m + d the 90% interval reaches d * 2.91999 / sqrt(3) = 1.68585 d to either side.
REACH = 1.6858545


@pytest.mark.parametrize(
    ("values", "region", "verdict"),
    [
        ([0.9, 1.0, 1.1], Region(low=0), "reproduced"),
        ([0.9, 1.0, 1.1], Region(high=2), "reproduced"),
        ([0.9, 1.0, 1.1], Region(low=0, high=2), "reproduced"),
        ([0.9, 1.0, 1.1], Region(), "reproduced"),
        ([0.9, 1.0, 1.1], Region(low=2), "contradicted"),
        ([0.9, 1.0, 1.1], Region(high=0), "contradicted"),
        ([0.9, 1.0, 1.1], Region(low=2, high=3), "contradicted"),
        ([0.9, 1.0, 1.1], Region(low=-3, high=0), "contradicted"),
        ([0.9, 1.0, 1.1], Region(low=1), "inconclusive"),
        ([0.9, 1.0, 1.1], Region(low=0.99, high=1.01), "inconclusive"),
        ([0.9, 1.0, 1.1], Region(low=1 - 0.1 * REACH + 1e-4), "inconclusive"),
        ([0.9, 1.0, 1.1], Region(low=1 - 0.1 * REACH - 1e-4), "reproduced"),
        ([0.9, 1.0, 1.1], Region(low=1 + 0.1 * REACH + 1e-4), "contradicted"),
        ([0.9, 1.0, 1.1], Region(low=1 + 0.1 * REACH - 1e-4), "inconclusive"),
        ([0.9, 1.0, 1.1], Region(high=1 + 0.1 * REACH + 1e-4), "reproduced"),
        ([0.9, 1.0, 1.1], Region(high=1 - 0.1 * REACH - 1e-4), "contradicted"),
        ([1.0, 1.0, 1.0], Region(low=1), "contradicted"),
        ([1.0, 1.0, 1.0], Region(high=1), "contradicted"),
        ([1.0, 1.0, 1.0], Region(low=1, high=2), "contradicted"),
        ([1.0, 1.0, 1.0], Region(low=1 - 1e-12, high=1 + 1e-12), "reproduced"),
        ([], Region(low=0), "not run yet"),
        ([1.0], Region(low=0), "not run yet"),
        ([1.0, 1.0], Region(low=0), "not run yet"),
        ([-1.0, -1.0], Region(low=0), "not run yet"),
        ([1.0, 1.0], Region(), "not run yet"),
        ([1.0, 1.0, math.nan], Region(low=0), "inconclusive"),
        ([math.nan] * 3, Region(low=0), "inconclusive"),
        ([math.nan] * 3, Region(high=0), "inconclusive"),
        ([1.0, 1.0, math.inf], Region(low=0), "inconclusive"),
        ([1.0, 1.0, -math.inf], Region(low=0), "inconclusive"),
        ([1.0, math.inf, -math.inf], Region(low=0), "inconclusive"),
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
    found = claim(values, Region(low, high), seeds=len(values)).verdict
    if scale == 0:
        left_over, inside = 0, low < values[0] < high
        outside = not inside
    else:
        mean, left_over = sum(values) / len(values), len(values) - 3
        left, right = t.interval(0.9, len(values) - 1, loc=mean, scale=scale)
        # Outside of two ends a mean may lie on either side, so each has half of the 5 %.
        sides = max(math.isfinite(low) + math.isfinite(high), 1)
        first, last = t.interval(1 - 0.1 / sides, len(values) - 1, loc=mean, scale=scale)
        # Where the interval touches an end to the last digit either answer is fair.
        if min(abs(one - end) for one in (left, right, first, last) for end in (low, high)) < 1e-9:
            return
        inside, outside = low < left and right < high, last < low or first > high
    # Three seeds decide, whatever the others say.
    assert claim([*values, *[99.0] * left_over], Region(low, high), seeds=len(values)).verdict == found
    assert found == ("reproduced" if inside else "contradicted" if outside else "inconclusive")


def test_the_interval_is_of_ninety_five_percent():
    values = [1.0, 2.0, 4.0, 5.0]
    found = claim(values, Region(), seeds=4).interval
    assert found == pytest.approx(t.interval(0.95, 3, loc=3.0, scale=sem(values)))


def test_seeds_beyond_those_that_decide_are_shown_apart():
    found = claim([0.9, 1.0, 1.1, -5.0, -7.0], Region(low=0), seeds=3)
    assert found.verdict == "reproduced"
    assert found.deciding.values == (0.9, 1.0, 1.1)
    assert found.others.values == (-5.0, -7.0)
    assert claim([0.9, 1.0, 1.1, -5.0], Region(low=0), seeds=5).verdict == "not run yet"


def test_effects_too_small_to_count_are_none_on_either_side():
    values = [0.01, 0.011, 0.012]
    assert claim(values, Region(low=0)).verdict == "reproduced"
    assert claim(values, Region(low=0), zone=zone(0.05)).verdict == "no effect"
    assert claim([-value for value in values], Region(low=0), zone=zone(0.05)).verdict == "no effect"
    assert claim([0.1, 0.11, 0.12], Region(low=0), zone=zone(0.05)).verdict == "reproduced"


def test_a_claim_about_every_cell_falls_by_one_and_stands_by_all():
    good, bad, open_ = [1.0, 1.1, 1.2], [-1.0, -1.1, -1.2], [-1.0, 0.1, 1.0]

    def tested(**cells):
        return Claim.every("", (), "", {k: Sample.of(v) for k, v in cells.items()}, Region(low=0))

    assert tested(a=good, b=good).verdict == "reproduced"
    assert (tested(a=good, b=bad).verdict, tested(a=good, b=bad).worst) == ("contradicted", "b")
    assert tested(a=good, b=open_).verdict == "inconclusive"
    assert (tested(a=good, b=[]).verdict, tested(a=good, b=[]).worst) == ("not run yet", "b")
    assert tested().verdict == "not run yet"
    # Of so many cells one lies as far out by chance.
    slightly = [-0.5, -1.0, -1.5]
    assert claim(slightly, Region(low=0)).verdict == "contradicted"
    assert tested(a=slightly, **{f"c{place}": good for place in range(9)}).verdict == "inconclusive"


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"seeds": 1}, "at least 2 seeds"),
        ({"printed": 1.0}, "needs a margin"),
        ({"margin": 1.0}, "give both"),
    ],
)
def test_claims_that_cannot_be_judged_are_refused(options, match):
    with pytest.raises(ValueError, match=match):
        claim([1.0], Region(), **options)


def test_seeds_that_choose_do_not_judge():
    assert split_seeds([3, 1, 2, 1], choosing=2) == ([1, 2], [3])
    assert split_seeds([0]) == ([0], [])
    with pytest.raises(ValueError, match="at least one seed must choose; got 0"):
        split_seeds([0, 1], choosing=0)


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([0.5], "reproduced"),
        ([0.5, 0.9], "reproduced"),
        ([0.5, 1.1], "contradicted"),
        ([0.94], "reproduced"),
        ([0.96], "inconclusive"),
        ([1.0], "inconclusive"),
        ([1.04], "inconclusive"),
        ([math.nan], "inconclusive"),
        ([], "inconclusive"),
        ([math.inf], "contradicted"),
    ],
)
def test_a_computed_claim_stands_if_all_its_values_lie_inside(values, verdict):
    claim = ComputedClaim("", (), "", Sample.of(values), Region(high=1))
    assert claim.verdict == verdict


def test_the_rule_is_stated_with_its_numbers():
    assert "t-tests at 5 %" in RULE
    assert "95 % intervals of one claim by itself" in RULE
    assert all(verdict in RULE for verdict in VERDICTS)
    assert "within 5 % of the end" in COMPUTED_RULE


def test_claims_are_measured_unless_a_class_of_them_says_otherwise():
    assert not claim([1.0], Region()).computed
    assert "no seeds" in COMPUTED_RULE


@pytest.mark.parametrize(
    ("region", "words"),
    [
        (Region(low=0), "above 0"),
        (Region(high=-0.5), "below −0.5"),
        (Region(low=-0.01, high=0.01), "between −0.01 and 0.01"),
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
