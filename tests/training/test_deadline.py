"""A training that has so much time: it stops between two steps and goes on as if nothing had happened."""

from __future__ import annotations

import os
import signal
import time
from functools import partial

import pytest
import torch

from softtargets.exceptions import Unfinished
from softtargets.recipes import Distillation
from softtargets.runs import RunStore
from softtargets.training import Resources, Watcher, choose_device
from softtargets.training import train as train_anywhere
from softtargets.training.scheduling import loop

from .noting import Noting

# These tests compare bits, and fork; both are for the CPU, also where there is a GPU.
train = partial(train_anywhere, device="cpu")


class Clock:
    """Time that passes only where a test says so; it sleeps by passing."""

    def __init__(self):
        self.moment = 1000.0

    def monotonic(self):
        return self.moment

    def sleep(self, seconds):
        self.moment += seconds


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(loop, "time", made)
    return made


class Ageing(Watcher):
    """After an epoch of one seed so much time has passed."""

    def __init__(self, clock, seed, epoch, seconds=100.0):
        self.clock, self.at, self.seconds = clock, (seed, epoch), seconds

    def epoch(self, recipe, row):
        if (recipe.seed, row["epoch"]) == self.at:
            self.clock.moment += self.seconds


def same(one, other):
    weights = other.weights()
    equal = all(torch.equal(value, weights[name]) for name, value in one.weights().items())
    return equal and one.history() == other.history()


def test_runs_under_way_are_saved_and_ended_ones_concluded(recipe, tmp_path, clock):
    recipes = [recipe.replace({"seed": seed, "epochs": 2 if seed == 1 else 4}) for seed in range(3)]
    whole = train(recipes, RunStore(tmp_path / "whole"))
    store = RunStore(tmp_path / "cut")
    with pytest.raises(Unfinished, match="2 runs are not finished") as cut:
        train(recipes, store, watcher=Ageing(clock, 1, 2), until=1050.0)
    assert [run.id for run in cut.value.runs] == [recipes[1].id], (
        "it ended in the step in which the time was up"
    )
    assert cut.value.left == [recipes[0], recipes[2]]
    states = {entry.id: entry.status for entry in store.entries()}
    assert [states[each.id] for each in recipes] == ["interrupted", "finished", "interrupted"]
    assert not any(store.is_claimed(each) for each in recipes)
    watcher = Noting()
    resumed = train(recipes, store, watcher=watcher)
    assert [step for _, step in watcher.starts] == [10, 10]
    assert all(same(one, other) for one, other in zip(whole, resumed, strict=True))


def test_no_pack_is_begun_afterwards_and_enough_time_changes_nothing(recipe, tmp_path, clock):
    other = recipe.replace({"model.hidden": [16]})
    store = RunStore(tmp_path)
    with pytest.raises(Unfinished) as cut:
        train([recipe, other], store, watcher=Ageing(clock, 0, 4), until=1050.0)
    assert (cut.value.left, store.find(recipe) is None) == ([other], False)
    assert not (store.root / other.id).exists()
    watcher = Noting()
    with pytest.raises(Unfinished):
        train([other], store, watcher=watcher, until=900.0)
    assert watcher.starts == []
    assert [run.status for run in train([recipe, other], store, until=1e9)] == ["finished"] * 2


def test_runs_between_two_packs_are_saved_too(recipe, tmp_path, clock, monkeypatch):
    """Time that is up while others are about to join: what was in memory only goes to disk."""
    monkeypatch.setattr("softtargets.training.packing.CPU_RUNS", 2)
    recipes = [recipe.replace({"seed": seed, "epochs": epochs}) for seed, epochs in enumerate([1, 4, 4])]
    whole = train(recipes, RunStore(tmp_path / "whole"))
    take = loop.Queue.take

    def late(queue, locks, joining=()):
        clock.moment += 100.0 if joining else 0.0
        return take(queue, locks, joining)

    monkeypatch.setattr(loop.Queue, "take", late)
    store = RunStore(tmp_path / "cut")
    with pytest.raises(Unfinished):
        train(recipes, store, until=1050.0)
    states = {entry.id: entry.status for entry in store.entries()}
    assert [states[each.id] for each in recipes[:2]] == ["finished", "interrupted"]
    assert all(same(one, other) for one, other in zip(whole, train(recipes, store), strict=True))


def test_a_student_waits_with_its_teacher(recipe, tmp_path, clock):
    student = recipe.replace({"regulariser": Distillation(teacher=recipe), "augmentation": []})
    with pytest.raises(Unfinished) as cut:
        train([student], RunStore(tmp_path), watcher=Ageing(clock, 0, 2), until=1050.0)
    assert ([*cut.value.left], cut.value.runs) == ([recipe, student], [])


def test_ctrl_c_is_still_ctrl_c(recipe, tmp_path):
    class Interrupting(Watcher):
        def epoch(self, recipe, row):
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            train([recipe], RunStore(tmp_path), watcher=Interrupting(), until=time.monotonic() + 1000)
    finally:
        signal.signal(signal.SIGINT, before)
    assert [entry.status for entry in RunStore(tmp_path).entries()] == ["interrupted"]


def test_what_others_train_is_left_to_them_or_waited_for_until_the_end(recipe, tmp_path, clock):
    store, other = RunStore(tmp_path), recipe.replace({"seed": 1})
    with store.claim(recipe):
        with pytest.raises(Unfinished) as cut:
            train([recipe, other], store, wait=False)
        assert (cut.value.left, [run.id for run in cut.value.runs]) == ([recipe], [other.id])
        begun = clock.moment
        with pytest.raises(Unfinished):
            train([recipe], store, until=begun + 5)
        assert begun + 5 <= clock.moment < begun + 6


def test_helpers_stop_too(recipe, tmp_path):
    recipes = [
        recipe.replace({"seed": seed, "model.hidden": [16 + seed], "epochs": 4000}) for seed in range(2)
    ]
    begun = time.monotonic()
    with pytest.raises(Unfinished):
        train(recipes, RunStore(tmp_path), workers=2, until=begun + 12, checkpoint_seconds=1000)
    assert time.monotonic() - begun < 60
    states = {entry.status for entry in RunStore(tmp_path).entries()}
    assert "interrupted" in states
    assert states <= {"interrupted", "empty"}, (
        "nobody is still at it; on a busy machine a helper may not have begun"
    )


def test_what_was_loaded_serves_the_next_call(recipe, tmp_path, monkeypatch):
    store = RunStore(tmp_path)
    kept = Resources(store, choose_device("cpu"), None)
    train([recipe], store, resources=kept)
    monkeypatch.setattr("softtargets.training.scheduling.resources.prepare", None)  # would be called
    (run,) = train([recipe.replace({"seed": 1})], store, resources=kept)
    assert run.status == "finished"


def test_set_up_is_part_of_the_time(recipe, tmp_path):
    (run,) = train([recipe], RunStore(tmp_path))
    assert 0 < run.provenance["setup_seconds"] < run.provenance["seconds"]
