"""Rows of the strip chart: where marks stand, and what the headline counts."""

from __future__ import annotations

import math

import pytest

from softtargets.claims import Claim, ComputedClaim, Region, Sample, judge, zone
from softtargets.report.strip import headline, strip_row


def row(values, region=None, **options):
    claim = Claim("", (), "", Sample.of(values), region or Region(low=0), **options)
    return strip_row(judge([claim])[0])


def test_marks_keep_their_order_and_their_ratios():
    found = row([0.9, 1.0, 1.1], printed=2.0, margin=0.5, zone=zone(0.1))
    (edge, value), *_ = found.ends
    assert value == 0
    assert (found.mean - edge) / (found.printed - edge) == pytest.approx(1 / 2, abs=1e-3)
    low, high = Sample.of([0.9, 1.0, 1.1]).interval(0.95)
    assert found.interval.width / (found.printed - edge) == pytest.approx((high - low) / 2, abs=1e-3)
    assert (found.margin.start + found.margin.end) / 2 == pytest.approx(found.printed, abs=0.01)
    assert found.zone.start < edge < found.zone.end


def test_open_ends_reach_to_the_edge_of_the_row():
    above, below = row([1.0, 1.1, 1.2]), row([1.0, 1.1, 1.2], Region(high=0))
    assert (above.region.end, above.region.open_end, above.region.open_start) == (100, True, False)
    assert (below.region.start, below.region.open_start) == (0, True)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 1.0]])
def test_what_is_not_run_yet_shows_nothing_of_ours(values):
    found = row(values, printed=1.0, margin=0.5)
    assert (found.mean, found.interval, found.cells) == (None, None, ())
    assert found.printed is not None


def test_a_seed_without_a_number_leaves_a_row_without_marks():
    found = row([1.0, math.nan, 1.0])
    assert (found.mean, found.interval) == (None, None)
    assert 0 <= found.ends[0][0] <= 100


def test_seeds_that_all_agree_have_a_scale_all_the_same():
    found = row([0.0, 0.0, 0.0])
    assert 0 < found.mean < 100


def test_every_cell_is_marked_and_the_worst_is_the_point():
    cells = {"a": Sample.of([1.0, 1.1, 1.2]), "b": Sample.of([3.0, 3.1, 3.2])}
    found = strip_row(judge([Claim.every("", (), "", cells, Region(low=0))])[0])
    assert len(found.cells) == 2
    assert found.mean == min(found.cells)


def test_a_number_on_the_edge_looks_so():
    claim = ComputedClaim("", (), "", Sample.of([0.0099]), Region(high=0.01))
    found = strip_row(judge([claim])[0])
    assert abs(found.mean - found.ends[0][0]) < 2  # percent of the width: nothing is at the other end


def test_labels_that_would_meet_are_turned_away_from_each_other():
    assert row([10.0, 11.0, 12.0], Region(1.0, 1.5)).anchors == ["end", "start"]
    assert row([1.2, 1.3, 1.25], Region(1.0, 1.5)).anchors == ["middle", "middle"]


def judged(*groups):
    return judge([Claim("", (), "", Sample.of(values), Region(low=0)) for values in groups])


GOOD, BAD, OPEN, NONE = [0.999, 1.0, 1.001], [-0.999, -1.0, -1.001], [-1.0, 0.1, 1.0], []


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ((GOOD, GOOD, BAD), "Of 3 claims 2 are reproduced and 1 is contradicted."),
        ((GOOD, BAD, OPEN, OPEN), "Of 4 claims 1 is reproduced, 1 is contradicted and 2 are inconclusive."),
        ((GOOD, GOOD, GOOD), "All 3 claims are reproduced."),
        ((GOOD, GOOD), "Both claims are reproduced."),
        ((GOOD, NONE), "Unfinished: 1 of 2 claims is not run yet. 1 is reproduced."),
        ((NONE, NONE), "Unfinished: 2 of 2 claims are not run yet."),
        ((BAD,), "The claim is contradicted."),
        ((NONE,), "The claim is not run yet."),
    ],
)
def test_the_headline_counts_and_what_is_not_run_comes_first(groups, said):
    assert headline(judged(*groups)) == said
