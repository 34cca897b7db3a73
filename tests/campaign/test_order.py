"""What is trained next, with a clock of our own: numbers in, groups out."""

from __future__ import annotations

import math

import pytest

from softtargets.campaign.order import (
    GROUPS_PER_DEVICE,
    MARGIN,
    WORTH_BEGINNING,
    Wanted,
    cost,
    next_group,
    next_round,
    schedule,
    soonest,
)
from softtargets.campaign.speeds import Speed

# A hundred images per second however many runs there are, and ten seconds of set-up.
STEADY = Speed({1: 100.0}, setup=10.0, source="table")


def wants(name, rank=1, units=1000.0, kind="k", speed=STEADY, together=8, **more):
    return Wanted(name, rank, kind, units, speed, together, **more)


def test_the_cost_of_a_group_is_its_set_up_once_and_its_work():
    assert cost([wants("a")]) == pytest.approx(MARGIN * (10 + 10))
    assert cost([wants("a"), wants("b")]) == pytest.approx(MARGIN * (10 + 20))
    assert cost([wants("a")], ready=["k"]) == pytest.approx(MARGIN * 10)
    assert cost([wants("a"), wants("b", units=None)]) == math.inf


def test_a_run_may_be_done_sooner_than_its_group():
    group = [wants("a", units=5000.0), wants("b", begun=True), wants("c", units=9000.0)]
    assert soonest(group) == pytest.approx((10 + 10) / MARGIN)
    assert soonest(group, ready=["k"]) == pytest.approx(10 / MARGIN)
    assert soonest([*group, wants("d", units=None)]) == 0.0, "nobody can tell"
    assert next_group(group, 1000.0).soonest == soonest(group)
    several = [*group, wants("d", kind="l", units=100.0)]
    assert next_round(several, 1000.0, devices=2).soonest == soonest(several[3:])


def test_packs_that_a_device_has_room_for_cost_nothing_more():
    wide = Speed({1: 100.0, 4: 400.0}, setup=0.0, source="table")
    group = [wants(str(n), speed=wide) for n in range(4)]
    assert cost(group) == pytest.approx(cost(group[:1]))
    narrow = [wants(str(n), speed=wide, together=2) for n in range(4)]
    assert cost(narrow) == pytest.approx(2 * cost(group[:1]))


def test_each_run_of_a_group_takes_its_own_time():
    """Students with a teacher beside them, say, are of the kind of those without."""
    slow = Speed({1: 10.0, 2: 50.0}, setup=10.0, source="table")
    mixed = [wants("a"), wants("b", speed=slow)]
    assert cost(mixed) == cost(mixed[::-1]) == pytest.approx(MARGIN * (10 + 10 + 20))


def test_teachers_that_are_trained_again_do_so_together_and_once():
    teachers = [wants(f"t{n}", kind="t", units=2000.0) for n in range(3)]
    students = [wants(f"s{n}", again=(teachers[n % 2],)) for n in range(4)]
    alone = cost([wants(f"s{n}") for n in range(4)])
    assert cost(students) == pytest.approx(alone + MARGIN * (10 + 2 * 20))
    assert cost(students, ready=["t"]) == pytest.approx(alone + MARGIN * 2 * 20)
    other = wants("s", again=(teachers[0], wants("u", kind="u")))
    assert cost([other]) == pytest.approx(MARGIN * (20 + 10 + 20 + 10 + 10))


def test_rank_decides_and_runs_of_one_rank_and_kind_go_together():
    left = [wants("late", 2, kind="other"), wants("a"), wants("b"), wants("c", kind="third")]
    assert next_group(left, math.inf).ids == ("a", "b")


def test_no_more_runs_than_train_well_together():
    assert next_group([wants(str(n), together=3) for n in range(5)], math.inf).ids == ("0", "1", "2")


def test_what_fits_whole_goes_before_what_ranks_higher():
    left = [wants("long", 1, units=100_000, kind="x"), wants("short", 2)]
    group = next_group(left, 60)
    assert (group.ids, group.whole) == (("short",), True)
    assert next_group(left, 2000).ids == ("long",)


def test_a_pack_is_cut_to_what_fits_whole():
    left = [wants(str(n)) for n in range(5)]
    # Ten seconds of set-up and ten for each run, with the margin: three are 44 seconds, four are 55.
    assert next_group(left, 50).ids == ("0", "1", "2")


# Eight together are four times as fast as one.
PACKING = Speed({1: 100.0, 8: 400.0}, setup=10.0, source="table")


def test_a_few_of_a_pack_are_left_to_the_next_session_if_something_else_fits():
    pack = [wants(f"p{n}", units=4000.0, speed=PACKING) for n in range(8)]
    other = wants("other", 2, kind="o", units=2000.0)
    assert cost(pack) == pytest.approx(MARGIN * 90)
    # One of them takes 50 s, four times as long as in the pack.
    assert next_group([*pack, other], 60, session=100).ids == ("other",)
    assert next_group([*pack, other], 100, session=100).ids == tuple(one.id for one in pack)
    assert next_group([*pack, other], 60, session=60).ids == ("p0",), "the next session can do no more"
    assert next_group([*pack, other], 60).ids == ("p0",), "there is nothing to wait for"
    assert next_group(pack, 60, session=100).ids == ("p0",), "better than to idle"
    assert next_group([*pack, other], 60, session=100).whole


def test_a_run_that_was_begun_is_not_left_to_the_next_session():
    pack = [wants(f"p{n}", units=4000.0, speed=PACKING, begun=not n) for n in range(8)]
    assert next_group([*pack, wants("other", 2, kind="o", units=2000.0)], 60, session=100).ids == ("p0",)


def test_company_that_is_faster_anyway_is_no_reason_to_wait():
    """Speeds that packing does not change: nothing is lost by training the slow one now."""
    slow = wants("slow", units=300.0, speed=Speed({1: 10.0}, setup=0.0, source="table"))
    fast = [
        wants(f"f{n}", units=1000.0, speed=Speed({1: 100.0}, setup=0.0, source="table")) for n in range(7)
    ]
    other = wants("other", 50, kind="o", units=1000.0)
    assert next_group([slow, *fast, other], 34, session=500).ids == ("slow",)
    flat = Speed({1: 100.0}, setup=0.0, source="table")
    student = wants("student", speed=flat, again=(wants("t", kind="t", speed=flat),))
    pupils = [wants(f"s{n}", speed=flat) for n in range(7)]
    assert next_group([student, *pupils, other], 25, session=500).ids == ("student",)


def test_a_kind_that_is_set_up_may_be_cut_where_setting_it_up_anew_costs_more():
    pack = [wants(f"p{n}", units=400.0, speed=PACKING) for n in range(8)]
    other = wants("other", 2, kind="o", units=100.0)
    # Three of eight: 3.5 s each now, 2.25 s each with the set-up of the next session.
    three = 1.1 * (3 * 400 / PACKING.per_second(3)) + 0.01
    assert next_group([*pack, other], three, ready=["k"], session=100).ids == ("p0", "p1", "p2")
    assert next_group([*pack, other], three + 11, session=100).ids == ("other",)


def test_sessions_that_leave_narrow_packs_to_each_other_need_less_time():
    """A campaign of packs and of small runs, cut into sessions in both ways."""
    packs = [
        wants(f"{kind}{n}", rank, 2000.0, kind, PACKING) for rank, kind in enumerate("abc") for n in range(8)
    ]
    small = [wants(f"s{n}", 9, 500.0, f"s{n}") for n in range(12)]

    def seconds(session):
        left, spent = [*packs, *small], 0.0
        while left:
            budget, ready = 100.0, set()
            while (group := next_group(left, budget, ready, session=session)) and group.whole:
                budget, spent = budget - group.seconds, spent + group.seconds
                ready |= {one.kind for one in left if one.id in group.ids}
                left = [one for one in left if one.id not in group.ids]
        return spent

    assert seconds(100.0) < 0.9 * seconds(0.0)


def test_if_nothing_fits_whole_the_highest_ranked_begins():
    left = [wants("low", 2, units=90_000, kind="y"), wants("a", units=100_000), wants("b", units=100_000)]
    group = next_group(left, 100)
    assert (group.ids, group.whole) == (("a", "b"), False)


def test_nothing_is_begun_that_would_be_stopped_before_it_has_trained():
    left = [wants("a", units=100_000)]
    assert next_group(left, 10 + WORTH_BEGINNING - 1) is None
    assert next_group(left, 10 + WORTH_BEGINNING).ids == ("a",)
    assert next_group(left, WORTH_BEGINNING, ready=["k"]).ids == ("a",)


def test_what_was_begun_comes_before_new_runs_of_its_rank_and_not_of_others():
    left = [
        wants("first", 1, kind="x"),
        wants("new", 2),
        wants("begun", 2, units=100.0, begun=True, kind="z"),
    ]
    assert next_group(left, math.inf).ids == ("first",)
    assert next_group(left[1:], math.inf).ids == ("begun",)


def test_a_student_waits_for_its_teacher_and_for_a_blocked_one_for_ever():
    left = [wants("student", needs="teacher"), wants("teacher", 1, kind="t"), wants("other", 2, kind="o")]
    assert next_group(left, math.inf).ids == ("teacher",)
    assert next_group(left[:1], math.inf).ids == ("student",), "its teacher is done"
    assert next_group(left, math.inf, blocked=["teacher"]).ids == ("other",)
    assert next_group(left[:1], math.inf, blocked=["teacher"]) is None


def test_lower_ranks_go_along_where_that_costs_less_than_setting_up_again():
    left = [wants("first", 1), wants("second", 5, units=900), wants("third", 6, units=900)]
    assert next_group(left, math.inf).ids == ("first", "second"), "nine seconds, set-up takes ten"
    costly = [wants("first", 1), wants("second", 5, units=1100)]
    assert next_group(costly, math.inf).ids == ("first",)
    assert next_group(left, MARGIN * 20).ids == ("first",), "nothing that would not fit"


def test_unknown_work_waits_for_a_time_without_end():
    left = [wants("unknown", 1, units=None, kind="x"), wants("known", 2)]
    assert next_group(left, 1000).ids == ("known",)
    group = next_group(left[:1], 1000)
    assert (group.whole, group.seconds) == (False, None)
    assert next_group(left, math.inf).ids == ("unknown",)


def test_nothing_left_is_nothing_to_do():
    assert next_group([], 100) is None
    assert next_group([wants("a")], 0) is None


def test_a_schedule_counts_the_time_down_and_set_up_once():
    left = [
        wants("t", 1, kind="t"),
        wants("s", 1, needs="t"),
        wants("long", 2, units=100_000),
        wants("u", 3, units=1100, needs="t"),
    ]
    groups = schedule(left, 100)
    assert [group.ids for group in groups] == [("t",), ("s",), ("u",), ("long",)]
    assert [group.whole for group in groups] == [True, True, True, False]
    assert sum(group.seconds for group in groups[:3]) == pytest.approx(MARGIN * (20 + 20 + 11))
    assert [group.ids for group in schedule(left, 25)] == [("t",)]


def test_several_devices_are_given_several_groups_that_all_fit():
    many = [wants(str(n), kind=f"kind {n}") for n in range(50)]
    alone = next_round(many, math.inf, 1)
    assert alone == next_group(many, math.inf)
    assert len(next_round(many, math.inf, 3).ids) == 3 * GROUPS_PER_DEVICE
    short = next_round(many, 2.5 * alone.seconds, 3)
    assert (len(short.ids), short.whole) == (3 * 2, True), "two after another on each, and no third"
    assert short.seconds == pytest.approx(2 * alone.seconds)
    # What cannot be finished is begun where a device has nothing else to do.
    long = [wants(str(n), kind=f"kind {n}", units=100_000) for n in range(5)]
    cut = next_round(long, 100, 2)
    assert (cut.ids, cut.whole) == (("0", "1"), False)
    student = wants("student", kind="other", needs="0")
    assert next_round([many[0], student], math.inf, 2).ids == ("0",), "students wait for the next round"
    assert next_round([], math.inf, 2) is None
