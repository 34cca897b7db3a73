"""Packs as the engine trains them: made, refilled, saved, interrupted."""

from __future__ import annotations

import os
import signal
import time
from functools import partial

import pytest
import torch

from softtargets.runs import ENGINE, RunStore, RunWriter, engine_of
from softtargets.training import Watcher
from softtargets.training import train as train_anywhere
from softtargets.training.scheduling import Queue, loop

from ..noting import Noting, packs_of

# These tests compare bits; that is for the CPU, also where there is a GPU.
train = partial(train_anywhere, device="cpu")


def test_runs_of_one_kind_are_one_pack_and_equal_runs_alone(recipe, tmp_path, monkeypatch):
    sizes = packs_of(monkeypatch)
    recipes = [recipe.replace({"seed": seed, "regulariser.alpha": 0.1 * seed}) for seed in range(5)]
    recipes += [recipe.replace({"model.hidden": [16], "seed": seed}) for seed in range(2)]
    together = train(recipes, RunStore(tmp_path / "together"))
    assert sizes == [5, 2]
    assert {run.provenance["runs_together"] for run in together} == {5, 2}
    for each, run in zip(recipes, together, strict=True):
        (alone,) = train([each], RunStore(tmp_path / "alone"))
        assert all(torch.equal(value, run.weights()[name]) for name, value in alone.weights().items())
        assert alone.history() == run.history()
        assert torch.equal(alone.predictions("test").logits, run.predictions("test").logits)


def test_the_seconds_of_a_pack_are_shared_out(recipe, tmp_path):
    begun = time.monotonic()
    runs = train([recipe.replace({"seed": seed}) for seed in range(6)], RunStore(tmp_path))
    assert 0 < sum(run.provenance["seconds"] for run in runs) < time.monotonic() - begun


def test_runs_that_end_make_room_for_others(recipe, tmp_path, monkeypatch):
    monkeypatch.setattr("softtargets.training.packing.CPU_RUNS", 3)
    sizes = packs_of(monkeypatch)
    lengths, measured = [1, 2, 4, 3, 1, 2], [1, 1, 3, 2, 5, 1]
    recipes = [
        recipe.replace({"seed": seed, "epochs": epochs, "measure_epochs": every})
        for seed, (epochs, every) in enumerate(zip(lengths, measured, strict=True))
    ]
    watcher = Noting()
    store = RunStore(tmp_path / "refilled")
    together = train(recipes, store, watcher=watcher)
    assert [run.status for run in together] == ["finished"] * 6
    assert sizes[0] == 3
    assert len(sizes) > 2, "others joined when some had ended"
    assert sorted(watcher.starts) == sorted((recipe.id, 0) for recipe in recipes), "each starts once"
    for each, run in zip(recipes, together, strict=True):
        (alone,) = train([each], RunStore(tmp_path / "alone"))
        assert all(torch.equal(value, run.weights()[name]) for name, value in alone.weights().items())
        assert alone.history() == run.history()
        assert not store.is_claimed(each)


def test_ctrl_c_saves_every_run_of_a_pack(recipe, tmp_path):
    recipes = [recipe.replace({"seed": seed}) for seed in range(3)]
    whole = train(recipes, RunStore(tmp_path / "whole"))

    class Interrupting(Watcher):
        def epoch(self, recipe, row):
            if row["epoch"] == 2 and recipe.seed == 1:
                os.kill(os.getpid(), signal.SIGINT)

    store = RunStore(tmp_path / "cut")
    with pytest.raises(KeyboardInterrupt):
        train(recipes, store, watcher=Interrupting())
    assert [entry.status for entry in store.entries()] == ["interrupted"] * 3
    watcher = Noting()
    resumed = train(recipes, store, watcher=watcher)
    assert [step for _, step in watcher.starts] == [10] * 3
    for one, other in zip(whole, resumed, strict=True):
        assert all(torch.equal(value, other.weights()[name]) for name, value in one.weights().items())
        assert one.history() == other.history()


def test_ctrl_c_in_an_epoch_that_is_not_measured(recipe, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "_REPORT_SECONDS", 0)
    recipes = [recipe.replace({"seed": seed, "measure_epochs": 3 + seed}) for seed in range(2)]
    whole = train(recipes, RunStore(tmp_path / "whole"))
    assert [[row["epoch"] for row in run.history()] for run in whole] == [[3, 4], [4]]
    for place, stop in enumerate((5, 8)):  # between two epochs, and in the middle of one

        class Interrupting(Watcher):
            def progressed(self, recipe, step, units, stop=stop):
                if (recipe.seed, step) == (1, stop):
                    os.kill(os.getpid(), signal.SIGINT)

        store = RunStore(tmp_path / f"cut-{place}")
        with pytest.raises(KeyboardInterrupt):
            train(recipes, store, watcher=Interrupting())
        watcher = Noting()
        resumed = train(recipes, store, watcher=watcher)
        assert [step for _, step in watcher.starts] == [stop] * 2
        for one, other in zip(whole, resumed, strict=True):
            assert all(torch.equal(value, other.weights()[name]) for name, value in one.weights().items())
            assert one.history() == other.history()
            assert one.provenance["images"] == other.provenance["images"] == 600


@pytest.mark.parametrize("told", [True, False])
def test_a_run_tells_by_which_versions_its_parts_were_trained(recipe, tmp_path, monkeypatch, told):
    """What was begun under one engine and finished under the next has the numbers of neither alone."""

    class Interrupting(Watcher):
        def epoch(self, recipe, row):
            if row["epoch"] == 2:
                os.kill(os.getpid(), signal.SIGINT)

    store = RunStore(tmp_path / "cut")
    with monkeypatch.context() as before:
        before.setattr("softtargets.runs.provenance.ENGINE", 5)
        if not told:  # a checkpoint of a version that did not note it
            before.setattr(loop, "note_part", lambda *_: None)
        with pytest.raises(KeyboardInterrupt):
            train([recipe], store, watcher=Interrupting())
    (run,) = train([recipe], store)
    assert [part.get("engine") for part in run.provenance["parts"]] == [5 if told else None, ENGINE]
    assert run.provenance["engine"] == ENGINE
    assert engine_of(run.provenance) == f"{5 if told else 'unknown'}, then {ENGINE}"
    (alone,) = train([recipe], RunStore(tmp_path / "alone"))
    assert "parts" not in alone.provenance
    assert "part" not in alone.provenance


def test_runs_cut_at_different_places_go_on_in_packs_of_their_own(recipe, tmp_path, monkeypatch):
    recipes = [recipe.replace({"seed": seed}) for seed in range(3)]
    store = RunStore(tmp_path / "cut")

    class Stop(Watcher):
        def progressed(self, recipe, step, images):
            if step >= self.until:
                raise RuntimeError("power cut")

    monkeypatch.setattr(loop, "_REPORT_SECONDS", 0)
    for until, part in ((3, recipes[:2]), (4, recipes[2:])):
        watcher = Stop()
        watcher.until = until
        with pytest.raises(RuntimeError):
            train(part, store, watcher=watcher, checkpoint_seconds=0)
    sizes = packs_of(monkeypatch)
    resumed = train(recipes, store)
    assert sizes == [2, 1]
    for each, run in zip(recipes, resumed, strict=True):
        (alone,) = train([each], RunStore(tmp_path / "alone"))
        assert all(torch.equal(value, run.weights()[name]) for name, value in alone.weights().items())


def test_a_run_among_many_short_ones_is_saved_in_time(recipe, tmp_path, monkeypatch):
    monkeypatch.setattr("softtargets.training.packing.CPU_RUNS", 2)
    writes = []
    checkpoint = RunWriter.checkpoint

    def noting(self, saved):
        writes.append((self.recipe.seed, saved.progress["step"]))
        checkpoint(self, saved)

    monkeypatch.setattr(RunWriter, "checkpoint", noting)
    clock = iter(range(10**9))
    monkeypatch.setattr(loop.time, "monotonic", lambda: next(clock) / 100)
    recipes = [recipe.replace({"seed": 0, "epochs": 12})]
    recipes += [recipe.replace({"seed": seed, "epochs": 1}) for seed in range(1, 8)]
    train(recipes, RunStore(tmp_path), checkpoint_seconds=0.3)
    steps = [step for seed, step in writes if seed == 0]
    assert steps, "never saved"
    assert steps[0] < 25, "while the short ones come and go"


def test_interrupted_between_two_packs_nothing_is_lost(recipe, tmp_path, monkeypatch):
    monkeypatch.setattr("softtargets.training.packing.CPU_RUNS", 2)
    recipes = [recipe.replace({"seed": seed, "epochs": epochs}) for seed, epochs in ((0, 6), (1, 1), (2, 1))]
    store = RunStore(tmp_path / "cut")
    take = Queue.take

    def interrupted(self, locks, joining=()):
        if joining:
            os.kill(os.getpid(), signal.SIGINT)
        return take(self, locks, joining)

    monkeypatch.setattr(Queue, "take", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(recipes, store)
    monkeypatch.setattr(Queue, "take", take)
    watcher = Noting()
    (resumed, *_) = train(recipes, store, watcher=watcher)
    assert (recipes[0].id, 5) in watcher.starts
    (alone,) = train(recipes[:1], RunStore(tmp_path / "alone"))
    assert all(torch.equal(value, resumed.weights()[name]) for name, value in alone.weights().items())
    assert not any(store.is_claimed(each) for each in recipes)


def test_a_checkpoint_still_being_written_does_not_end_up_beside_a_finished_run(
    recipe, tmp_path, monkeypatch
):
    """As on a GPU, where a thread writes while the device goes on; here with a slow disk."""
    monkeypatch.setattr(loop, "Saver", partial(loop.Saver, in_background=True))
    checkpoint, written = RunWriter.checkpoint, []

    def slowly(self, saved):
        time.sleep(0.5)
        checkpoint(self, saved)
        written.append(saved.progress["step"])

    monkeypatch.setattr(RunWriter, "checkpoint", slowly)
    (run,) = train([recipe.replace({"epochs": 1})], RunStore(tmp_path), checkpoint_seconds=0)
    assert written
    assert not (run.directory / "checkpoint.safetensors").exists()
    assert run.problems() == []
