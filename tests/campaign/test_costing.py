"""What a campaign costs on several devices, by a clock of our own, against sums made by hand."""

from __future__ import annotations

import math
import random

import pytest

from softtargets.campaign import campaign_cost, cells_of, from_nothing, outlook, simulate
from softtargets.campaign.costing import longest_chain, unpredictable
from softtargets.campaign.order import MARGIN, Wanted, cost, next_group
from softtargets.campaign.speeds import Speed
from softtargets.runs import RunStore

from .making import campaign_of

# A hundred units per second however many runs there are, and ten seconds of set-up.
STEADY = Speed({1: 100.0}, setup=10.0, source="table")
# Four together are as fast as four devices.
WIDE = Speed({1: 100.0, 4: 400.0}, setup=0.0, source="guessed")


def wants(name, rank=1, units=1000.0, kind="k", speed=STEADY, together=8, **more):
    return Wanted(name, rank, kind, units, speed, together, **more)


def test_one_device_takes_everything_one_after_the_other():
    found = simulate([wants("a"), wants("b"), wants("c", kind="other")], 1)
    assert found.seconds == found.busy == pytest.approx(MARGIN * (10 + 20 + 10 + 10))
    assert found.setup == pytest.approx(MARGIN * 20)
    assert (found.groups, found.used) == (2, 1.0)
    assert found.spent == pytest.approx({"a": MARGIN * 15, "b": MARGIN * 15, "c": MARGIN * 20})


def test_a_kind_is_set_up_once_on_each_device():
    found = simulate([wants(str(n), together=1) for n in range(4)], 2)
    assert found.groups == 4
    assert found.setup == pytest.approx(MARGIN * 2 * 10)
    assert found.seconds == pytest.approx(MARGIN * (10 + 10 + 10))


def test_devices_take_their_share_of_a_kind():
    runs = [wants(str(n), together=8) for n in range(8)]
    assert len(next_group(runs, math.inf, sharing=4).ids) == 2
    assert len(next_group(runs, math.inf, sharing=3).ids) == 3
    assert len(next_group(runs, math.inf, sharing=100).ids) == 1
    # What others are training counts: the last device takes as many as the first.
    assert next_group(runs, math.inf, blocked=[str(n) for n in range(6)], sharing=4).ids == ("6", "7")
    found = simulate(runs, 4)
    assert (found.groups, found.used) == (4, pytest.approx(1.0))
    assert found.seconds == pytest.approx(MARGIN * (10 + 20))
    # In a group that is only begun, too.
    long = [wants(str(n), units=1e6, together=8) for n in range(8)]
    group = next_group(long, 100.0, sharing=4)
    assert (len(group.ids), group.whole) == (2, False)


def test_narrow_packs_cost_more_hours_and_less_time():
    runs = [wants(str(n), speed=WIDE, together=4) for n in range(4)]
    one, four = simulate(runs, 1), simulate(runs, 4)
    assert one.seconds == pytest.approx(four.seconds) == pytest.approx(MARGIN * 10)
    assert four.busy == pytest.approx(4 * one.busy)


def test_students_wait_for_their_teachers():
    runs = [
        wants("teacher", units=3000.0, kind="t"),
        wants("student", needs="teacher"),
        wants("other", kind="o"),
    ]
    found = simulate(runs, 3)
    assert found.seconds == pytest.approx(MARGIN * (40 + 20))
    assert found.busy == pytest.approx(MARGIN * (40 + 20 + 20))
    assert found.used == pytest.approx(found.busy / (3 * found.seconds))
    chain = longest_chain(runs)
    assert (chain.ids, chain.seconds) == (("teacher", "student"), pytest.approx(found.seconds))


def test_what_nobody_can_tell_is_left_out_with_all_that_waits_for_it():
    runs = [
        wants("a"),
        wants("unknown", units=None),
        wants("student", needs="unknown", kind="s"),
        wants("pupil", needs="student", kind="p"),
        wants("light", kind="l", again=(wants("far", units=None),)),
    ]
    assert unpredictable(runs) == {"unknown", "student", "pupil", "light"}
    found = simulate(runs, 2)
    assert set(found.spent) == {"a"}
    assert found.seconds == pytest.approx(cost([wants("a")]))


def test_nothing_costs_nothing():
    found = simulate([], 8)
    assert (found.seconds, found.busy, found.groups, found.used) == (0.0, 0.0, 0, 1.0)
    assert longest_chain([]).ids == ()


@pytest.mark.parametrize("devices", [1, 2, 5, 64])
@pytest.mark.parametrize("seed", range(3))
def test_no_run_is_doubled_or_lost_and_time_has_its_bounds(devices, seed):
    """Never faster than the longest chain, or than all devices at work; one is never slower than several."""
    draws = random.Random(seed)
    runs = []
    for number in range(60):
        teacher = draws.choice(runs).id if runs and draws.random() < 0.3 else None
        kind = f"{draws.randrange(5)}"
        runs.append(
            wants(str(number), draws.randrange(1, 4), draws.randrange(1, 9) * 500.0, kind, needs=teacher)
        )
    found = simulate(runs, devices)
    assert set(found.spent) == {one.id for one in runs}
    assert sum(found.spent.values()) == pytest.approx(found.busy)
    assert found.seconds >= found.busy / devices - 1e-6
    work = sum(MARGIN * one.units / 100 for one in runs)
    assert found.busy == pytest.approx(work + found.setup)
    alone = {one.id: MARGIN * one.units / 100 for one in runs}
    for one in runs:  # without set-up, since a device may be ready
        alone[one.id] += alone.get(one.needs, 0.0) if one.needs else 0.0
    assert found.seconds >= max(alone.values()) - 1e-6
    assert found.seconds <= simulate(runs, 1).seconds + found.setup


# --- of a campaign in a file ---


@pytest.fixture
def found(tmp_path):
    """Two strengths of smoothing and a student, three seeds each, and the students' teachers."""
    campaign = campaign_of(tmp_path, {"study": "tiny", "seeds": 3}, {"study": "curious", "seeds": 4})
    return outlook(campaign, RunStore(tmp_path / "runs"), "cpu")


def test_the_whole_campaign_by_study(found):
    cost = campaign_cost(found, (1, 4))
    first, second = cost.studies
    assert (first.study, first.runs, first.unknown) == ("tiny", 12, 0)
    assert (second.study, second.runs) == ("curious", 4)  # three seeds are the other study's
    assert first.seconds["guessed"] == sum(first.seconds.values()) > 0
    assert [one.devices for one in cost.simulated] == [1, 4]
    assert cost.seconds == pytest.approx(cost.simulated[0].busy)
    assert cost.share("guessed") == pytest.approx(1.0)
    assert cost.share("table") == cost.share("measured") == 0.0
    assert len(cost.chain.ids) == 2
    assert cost.unknown == {}


def test_what_is_finished_costs_nothing_unless_all_is_asked_for(found):
    done = next(iter(cells_of(found.campaign).values())).recipe
    with found.store.claim(done) as writer:
        writer.fail("it was not meant to succeed", [], {"seconds": 0.0, "finished": ""})
    found.look()
    assert sum(study.runs for study in campaign_cost(found, (1,)).studies) == 15
    assert sum(study.runs for study in campaign_cost(from_nothing(found), (1,)).studies) == 16
