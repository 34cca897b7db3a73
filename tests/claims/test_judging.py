"""Claims judged together: Holm over a page, the printed number beside the direction, and reasons."""

from __future__ import annotations

import math

import pytest

from softtargets.claims import Claim, ComputedClaim, Region, Sample, judge, zone


def claim(*values, **options):
    options = {"region": Region(low=0)} | options
    return Claim("", (), "", Sample.of(values), options.pop("region"), **options)


CLEAR, SLIGHT, NOTHING = (0.99, 1.0, 1.01), (0.5, 1.0, 1.5), (-1.0, 0.1, 1.0)


def test_what_one_claim_shows_alone_it_need_not_show_among_many():
    assert judge([claim(*SLIGHT)])[0].verdict == "reproduced"
    judged = judge([claim(*SLIGHT), claim(*NOTHING), claim(*NOTHING)])
    assert [one.verdict for one in judged] == ["inconclusive"] * 3
    assert judged[0].reason == "by itself “reproduced” (p = 0.037), but not among all claims of this page"
    assert judged[1].reason == "the interval crosses the end of the region"
    alone, on_page = judged[0].p["reproduced"]
    assert on_page == pytest.approx(3 * alone)


def test_a_clear_claim_leaves_the_level_to_the_others():
    judged = judge([claim(*SLIGHT), claim(*CLEAR)])
    assert [one.verdict for one in judged] == ["reproduced", "reproduced"]


def test_claims_that_are_not_run_count_so_that_verdicts_stay_when_they_are():
    judged = judge([claim(*SLIGHT), claim(), claim(1.0)])
    assert [one.verdict for one in judged] == ["inconclusive", "not run yet", "not run yet"]
    assert [one.reason for one in judged[1:]] == [f"{n} of the 3 seeds that decide" for n in (0, 1)]


@pytest.mark.parametrize(
    ("printed", "value"),
    [(1.0, "reproduced"), (1.2, "reproduced"), (0.8, "reproduced"), (2.0, "contradicted"), (-1.0, "contradicted"),
     (1.5, "inconclusive")],
)  # fmt: skip
def test_the_printed_number_is_a_question_of_its_own(printed, value):
    (judged,) = judge([claim(*CLEAR, printed=printed, margin=0.5)])
    assert (judged.verdict, judged.value) == ("reproduced", value)


def test_where_no_number_is_printed_there_is_no_verdict_on_it():
    assert judge([claim(*CLEAR)])[0].value is None
    assert judge([claim(1.0, printed=1.0, margin=0.5)])[0].value == "not run yet"


def test_only_what_is_asked_counts_and_a_claim_about_a_number_is_judged_among_numbers():
    number = claim(*SLIGHT, region=Region(0, 2), printed=1.0, margin=1.0)
    judged = judge([number, claim(*CLEAR), claim(*NOTHING), claim(*NOTHING)])
    assert [(one.verdict, one.value) for one in judged[:2]] == [
        ("reproduced", "reproduced"),
        ("reproduced", None),
    ]
    assert judged[0].p == {}
    assert set(judged[1].p) == {"reproduced", "contradicted"}
    # Beside as many others it is one of four numbers, and not shown any more.
    assert [
        one.verdict
        for one in judge([number, *[claim(*NOTHING, region=Region(0, 2), printed=1.0, margin=1.0)] * 3])
    ] == ["inconclusive"] * 4


def test_of_many_cells_the_number_is_that_of_the_one_that_is_shown():
    cells = {"a": Sample.of([0.49, 0.5, 0.51]), "b": Sample.of([8.9, 9.0, 9.1])}
    (judged,) = judge([Claim.every("", (), "", cells, Region(low=0), printed=0.5, margin=0.2)])
    assert (judged.verdict, judged.value) == ("reproduced", "reproduced")


def test_a_seed_without_a_number_leaves_a_claim_open():
    for value in (math.nan, math.inf):
        (judged,) = judge([claim(1.0, 1.1, value, zone=zone(0.1), printed=1.0, margin=1.0)])
        assert (judged.verdict, judged.value) == ("inconclusive", "inconclusive")
        assert judged.reason == "a seed has no finite number"


def test_the_chance_of_test_examples_counts():
    values = (0.99, 1.0, 1.01)
    assert judge([Claim("", (), "", Sample.of(values, 0.01), Region(low=0))])[0].verdict == "reproduced"
    wide = Claim("", (), "", Sample.of(values, 1.0), Region(low=0))
    assert judge([wide])[0].verdict == "inconclusive"
    assert wide.interval == pytest.approx((1 - 1.96, 1 + 1.96), abs=1e-2)


def test_computed_claims_take_no_part_in_chance():
    computed = ComputedClaim("", (), "", Sample.of([0.5]), Region(high=1))
    edge = ComputedClaim("", (), "", Sample.of([0.99]), Region(high=1))
    judged = judge([computed, claim(*SLIGHT), edge])
    assert [one.verdict for one in judged] == ["reproduced", "reproduced", "inconclusive"]
    assert judged[2].reason.startswith("on the edge")
    assert judge([]) == ()
