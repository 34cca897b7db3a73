"""Who gets what next: whole packs, fair shares, teachers first, suspects alone."""

from __future__ import annotations

import random

import pytest

from softtargets.executors.ray.dispatch import PACKS, Waiting, next_order


def runs(count, kind="mlp", together=8, **more):
    return [Waiting(f"{kind}{n}", kind, together, **more) for n in range(count)]


@pytest.mark.parametrize(
    ("count", "workers", "together"), [(200, 4, 32), (200, 4, 1), (7, 4, 32), (1000, 3, 16)]
)
def test_all_are_given_once_and_the_first_get_whole_packs(count, workers, together):
    waiting, sizes = runs(count, together=together), []
    given = []
    while ids := next_order(waiting, workers, {"mlp": sum(sizes[1 - workers :])}):
        given += ids
        sizes.append(len(ids))
        waiting = [one for one in waiting if one.id not in ids]
    assert sorted(given) == sorted(one.id for one in runs(count))
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] <= max(together * PACKS, -(-count // workers))
    # As on one machine: the first take a pack, or their share if there is not enough for all.
    assert all(size >= min(together, -(-count // workers)) for size in sizes[: workers - 1])


def test_a_worker_stays_with_the_kind_it_is_set_up_for():
    waiting = [*runs(4, "cnn"), *runs(4, "mlp")]
    assert next_order(waiting, 2, {"cnn": 0}, last="mlp") == ["mlp0", "mlp1"]
    assert next_order(waiting, 2, {"cnn": 0}, last="resnet") == ["cnn0", "cnn1"]
    assert next_order(waiting, 2, {"cnn": 1}) == ["mlp0", "mlp1"], "where nobody is at work"


def test_what_others_wait_for_goes_first():
    waiting = [*runs(4, "cnn"), *runs(2, "mlp"), Waiting("teacher", "mlp", 8, teaches=True)]
    assert next_order(waiting, 3, {"mlp": 2})[0] == "teacher"


def test_suspects_train_alone_and_last():
    waiting = [Waiting("bad", "mlp", 8, alone=True), *runs(2), Waiting("worse", "mlp", 8, alone=True)]
    assert next_order(waiting, 1, {}) == ["mlp0", "mlp1"]
    assert next_order(waiting[:1] + waiting[3:], 1, {}) == ["bad"]
    assert next_order([], 3, {}) == []


def test_workers_of_any_speed_end_at_about_the_same_time():
    # Simulated: workers of speeds 1 to 3, 300 runs of one second each alone, packs cost as much as their runs.
    speeds = [1.0, 1.5, 2.0, 3.0]
    clock, waiting = [0.0] * len(speeds), runs(300, together=4)
    chance = random.Random(0)
    while waiting:
        worker = min(range(len(speeds)), key=lambda one: clock[one] + chance.random() * 1e-6)
        ids = next_order(waiting, len(speeds), {})
        clock[worker] += len(ids) / speeds[worker]
        waiting = [one for one in waiting if one.id not in ids]
    assert max(clock) < 1.06 * 300 / sum(speeds)
