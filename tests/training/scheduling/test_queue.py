from __future__ import annotations

from functools import partial

import pytest
import torch

from softtargets.runs import RunStore
from softtargets.training import Watcher
from softtargets.training import train as train_anywhere
from softtargets.training.device_state import DeviceState
from softtargets.training.sizing import USED, footprint
from softtargets.training.tasks import prepare

from ..noting import Noting, packs_of

# These tests compare bits; that is for the CPU, also where there is a GPU.
train = partial(train_anywhere, device="cpu")


def test_runs_that_could_not_join_are_not_asked_again_and_again(recipe, tmp_path, monkeypatch):
    """Waiting runs that another process holds must not make packs be built anew for nothing."""
    monkeypatch.setattr("softtargets.training.packing.CPU_RUNS", 3)
    sizes = packs_of(monkeypatch)
    recipes = [recipe.replace({"seed": seed, "epochs": 1 + seed}) for seed in range(3)]
    waiting = recipe.replace({"seed": 9, "epochs": 1})
    store = RunStore(tmp_path)
    monkeypatch.setattr(RunStore, "is_claimed", lambda self, recipe: False)  # it looks free, but is not
    held = store.claim(waiting)
    ended = []

    class Releasing(Watcher):
        def finished(self, run):
            ended.append(run.id)
            if len(ended) == 3:
                held.release()

    train([*recipes, waiting], store, watcher=Releasing())
    assert sizes == [3, 2, 1]


def test_processes_take_their_share(recipe, tmp_path, monkeypatch):
    sizes = packs_of(monkeypatch)
    recipes = [recipe.replace({"seed": seed, "epochs": 1}) for seed in range(8)]
    train(recipes, RunStore(tmp_path), sharing=4)
    assert sizes == [2, 2, 1, 1, 1, 1]


# --- sized to memory ---


def room_for(recipe, runs):
    """As many free bytes as so many runs need."""
    found = footprint(recipe, prepare(recipe.data, torch.device("cpu")), torch.device("cpu"), stacked=True)
    return int(found.of(runs) / USED) + 1


def free(monkeypatch, memory):
    monkeypatch.setattr("softtargets.training.scheduling.queue.free_memory", lambda device: memory)


@pytest.fixture
def recipes(recipe):
    return [recipe.replace({"seed": seed, "epochs": 2}) for seed in range(5)]


def test_packs_are_as_large_as_memory_allows_and_runs_stay_the_same(recipe, recipes, tmp_path, monkeypatch):
    sizes = packs_of(monkeypatch)
    whole = train(recipes, RunStore(tmp_path / "whole"))
    assert sizes == [5]
    sizes.clear()
    free(monkeypatch, room_for(recipe, 2))
    parts = train(recipes, RunStore(tmp_path / "parts"))
    assert sizes == [2, 2, 1]
    for one, other in zip(whole, parts, strict=True):
        assert all(torch.equal(value, other.weights()[name]) for name, value in one.weights().items())
        assert one.history() == other.history()
        assert torch.equal(one.predictions("test").logits, other.predictions("test").logits)


def test_one_run_is_always_tried(recipes, tmp_path, monkeypatch):
    sizes = packs_of(monkeypatch)
    free(monkeypatch, 0)
    runs = train(recipes, RunStore(tmp_path))
    assert [run.status for run in runs] == ["finished"] * 5
    assert sizes == [1] * 5


def test_a_pack_that_was_made_small_is_refilled_and_grows_no_larger(recipe, tmp_path, monkeypatch):
    """What is free is looked at once, before the pack: later its own memory would be counted against it."""
    sizes = packs_of(monkeypatch)
    figures = iter([room_for(recipe, 3)])
    monkeypatch.setattr("softtargets.training.scheduling.queue.free_memory", lambda device: next(figures))
    lengths = [1, 2, 4, 3, 1, 2]
    recipes = [recipe.replace({"seed": seed, "epochs": epochs}) for seed, epochs in enumerate(lengths)]
    watcher = Noting()
    train(recipes, RunStore(tmp_path), watcher=watcher)
    assert sizes[0] == max(sizes) == 3
    assert len(sizes) > 2, "others joined when some had ended"
    assert sorted(watcher.starts) == sorted((recipe.id, 0) for recipe in recipes)


def test_processes_share_the_memory_too(recipe, tmp_path, monkeypatch):
    sizes = packs_of(monkeypatch)
    recipes = [recipe.replace({"seed": seed, "epochs": 1}) for seed in range(8)]
    free(monkeypatch, 2 * room_for(recipe, 3))
    train(recipes, RunStore(tmp_path), sharing=2)
    assert sizes == [3, 3, 1, 1]


def test_where_nothing_is_known_the_table_decides(recipes, tmp_path, monkeypatch):
    sizes = packs_of(monkeypatch)
    free(monkeypatch, None)
    train(recipes, RunStore(tmp_path / "memory"))
    free(monkeypatch, 0)
    monkeypatch.setattr("softtargets.training.sizing.activations", lambda *_: None)
    train(recipes, RunStore(tmp_path / "net"))
    assert sizes == [5, 5]


def test_what_was_estimated_too_low_is_still_halved(recipes, tmp_path, monkeypatch):
    sizes = packs_of(monkeypatch)
    step = DeviceState._step

    def greedy(self, size):
        if len(self.courses) > 1:
            raise torch.OutOfMemoryError("CUDA out of memory")
        step(self, size)

    monkeypatch.setattr(DeviceState, "_step", greedy)
    free(monkeypatch, room_for(recipes[0], 4))
    runs = train(recipes, RunStore(tmp_path))
    assert [run.status for run in runs] == ["finished"] * 5
    assert sizes == [4, 2, 1, 1, 1, 1, 1]
