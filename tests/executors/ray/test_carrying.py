"""Runs that travel arrive as they were, and the head keeps others from training them meanwhile."""

from __future__ import annotations

import errno
import fcntl
import os

import pytest

from softtargets.executors.ray import carrying
from softtargets.executors.ray.carrying import HeadStore, head_store, packed, probing, unpack
from softtargets.executors.ray.worker import _sees
from softtargets.recipes import Distillation
from softtargets.runs import Run, RunStore
from softtargets.training import train

from .comparing import contents


def test_a_run_arrives_with_all_its_files(recipe, tmp_path):
    recipe = recipe.replace({"epochs": 1})
    (run,) = train([recipe], RunStore(tmp_path / "there"), device="cpu")
    unpack(packed(run), RunStore(tmp_path / "here"))
    assert contents(tmp_path / "here", set()) == contents(tmp_path / "there", set())
    assert packed(Run(tmp_path / "there" / "0123456789abcdef")) is None


def test_a_held_run_is_written_by_the_head_and_by_nobody_else(recipe, tmp_path):
    recipe = recipe.replace({"epochs": 1})
    (run,) = train([recipe], RunStore(tmp_path / "there"), device="cpu")
    head, others = HeadStore(tmp_path / "here"), RunStore(tmp_path / "here")
    assert head.hold(recipe)
    assert others.claim(recipe) is None
    assert head.take_in(packed(run), recipe) == []
    assert others.claim(recipe) is None, "still held"
    head.let_go(recipe.id)
    assert contents(tmp_path / "here", set()) == contents(tmp_path / "there", set())
    writer = others.claim(recipe)
    assert not head.hold(recipe)
    other = recipe.replace({"seed": 5})
    writer.release()
    assert head.hold(recipe)
    assert head.hold(other)
    head.let_all_go()
    assert not others.is_claimed(recipe)


def test_a_different_result_of_the_same_recipe_is_named_and_does_not_replace_the_stored_one(recipe, tmp_path):
    recipe = recipe.replace({"epochs": 1})
    (run,) = train([recipe], RunStore(tmp_path / "there"), device="cpu")
    (mine,) = train([recipe], RunStore(tmp_path / "here"), device="cpu")
    history = [{**row, "train_loss": row["train_loss"] + 1} for row in mine.history()]
    weights, provenance = mine.weights(), mine.provenance
    RunStore(tmp_path / "here").delete(mine.id)
    with RunStore(tmp_path / "here").claim(recipe) as writer:
        writer.finish(weights, {}, history, provenance)
    (said,) = HeadStore(tmp_path / "here").take_in(packed(run), recipe)
    assert said.startswith(f"run {run.id}: metrics differ. Here: ")
    assert Run(tmp_path / "here" / run.id).history() == history


def test_a_light_run_gives_way_to_one_with_weights(recipe, tmp_path):
    teacher = recipe.replace({"epochs": 1})
    (run,) = train([teacher], RunStore(tmp_path / "there"), device="cpu")
    from softtargets.runs import merge_runs, pack_runs

    pack_runs([run], tmp_path / "light.zip")
    merge_runs(tmp_path / "light.zip", RunStore(tmp_path / "here"))
    assert Run(tmp_path / "here" / run.id).is_light
    assert HeadStore(tmp_path / "here").take_in(packed(run), teacher) == []
    assert not Run(tmp_path / "here" / run.id).is_light
    student = teacher.replace({"regulariser": Distillation(teacher=teacher)})
    assert train([student], RunStore(tmp_path / "here"), device="cpu")[0].status == "finished"


def test_workers_see_a_store_whose_locks_hold(tmp_path):
    store = head_store(tmp_path)
    with probing(store) as probe:
        assert _sees(probe)
        assert not _sees(carrying.Probe(probe.token_file, "another", probe.lock_file))
        assert not _sees(carrying.Probe(tmp_path / "nothing", probe.token, probe.lock_file))
        (tmp_path / "free").touch()
        assert not _sees(carrying.Probe(probe.token_file, probe.token, tmp_path / "free")), (
            "no lock is held there"
        )
        with probing(store) as other:
            assert other.token != probe.token
            assert _sees(probe)
    assert list(tmp_path.iterdir()) == [tmp_path / "free"]


def test_what_a_killed_head_left_is_removed(tmp_path):
    for name in ("token", "lock"):
        (tmp_path / f".probe-0123.{name}").touch()
    with probing(head_store(tmp_path)):
        pass
    assert list(tmp_path.iterdir()) == []


def test_without_locks_in_the_file_system_the_head_locks_on_its_own_disk(recipe, tmp_path, monkeypatch):
    flock, refusing = fcntl.flock, tmp_path / "runs"

    def no_locks(descriptor, operation):
        if os.readlink(f"/proc/self/fd/{descriptor}").startswith(str(refusing)):
            raise OSError(errno.ENOLCK, "No locks available")
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", no_locks)
    monkeypatch.setattr(carrying.tempfile, "tempdir", str(tmp_path / "disk"))
    (tmp_path / "disk").mkdir()
    store, other = head_store(refusing), head_store(refusing)
    assert not store.locks_files
    assert store.hold(recipe)
    assert other.is_claimed(recipe)
    assert other.claim(recipe) is None
    recipe = recipe.replace({"epochs": 1})
    (run,) = train([recipe], RunStore(tmp_path / "there"), device="cpu")
    assert store.hold(recipe)
    assert store.take_in(packed(run), recipe) == []
    store.let_all_go()
    assert contents(refusing, set())[recipe.id] == contents(tmp_path / "there", set())[recipe.id]
    with probing(store) as probe:
        assert not _sees(probe)


@pytest.mark.parametrize("seed", range(2))
def test_a_checkpoint_travels_and_the_training_goes_on_from_it(recipe, tmp_path, seed):
    from softtargets.training import Watcher

    recipe = recipe.replace({"seed": seed})

    class Cut(Exception):
        pass

    class Cutting(Watcher):
        def progressed(self, one, step, units):
            if step >= 8:
                raise Cut

    with pytest.raises(Cut):
        train([recipe], RunStore(tmp_path / "there"), device="cpu", checkpoint_seconds=0, watcher=Cutting())
    head = HeadStore(tmp_path / "here")
    assert head.hold(recipe)
    assert head.take_in(packed(Run(tmp_path / "there" / recipe.id)), recipe) == []
    head.let_all_go()
    (resumed,) = train([recipe], RunStore(tmp_path / "here"), device="cpu")
    train([recipe], RunStore(tmp_path / "whole"), device="cpu")
    assert resumed.provenance["resumed"] == 1
    assert contents(tmp_path / "here") == contents(tmp_path / "whole")
