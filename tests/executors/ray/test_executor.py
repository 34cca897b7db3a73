"""Runs on the workers of a real Ray cluster are those of one process, whatever happens to workers."""

from __future__ import annotations

import os
import platform
import random
import signal
import threading
import time

import pytest

from softtargets.exceptions import DataError, SofttargetsError, Unfinished
from softtargets.recipes import CIFAR10, MLP, SGD, Digits, Distillation, LabelSmoothing, Recipe
from softtargets.runs import RunStore, merge_runs, pack_runs
from softtargets.studies import STUDIES, find_study
from softtargets.training import TensorBoard, Watcher, Watchers, train

from .comparing import contents

QUICKSTART = find_study(STUDIES, "quickstart")


class Noting(Watcher):
    """What was heard."""

    def __init__(self):
        self.plan, self.starts, self.rows, self.ends, self.notes, self.waits = None, [], [], [], [], 0
        self.units = 0

    def planned(self, plan):
        assert self.plan is None
        self.plan = plan

    def started(self, recipe, step, total_steps):
        self.starts.append((recipe.id, step))

    def progressed(self, recipe, step, units):
        self.units += units

    def epoch(self, recipe, row):
        self.rows.append((recipe.id, row["step"]))

    def noted(self, sentence):
        self.notes.append(sentence)

    def waiting(self, recipe):
        self.waits += 1

    def finished(self, run):
        self.ends.append(run.id)


@pytest.fixture(scope="session")
def quickstart(tmp_path_factory):
    """The quickstart's runs, trained by one process."""
    root = tmp_path_factory.mktemp("serial")
    recipes = [trial.recipe for trial in QUICKSTART.trials(QUICKSTART.settings(1, {}))]
    train(recipes, RunStore(root), keep=QUICKSTART.keep, device="cpu")
    return recipes, contents(root)


def slow(seeds: int, epochs: int = 40) -> list[Recipe]:
    """Trainings of a second or so, with checkpoints worth having."""
    base = Recipe(
        data=Digits(validation=100, limit=300),
        model=MLP(hidden=(48, 48)),
        optimiser=SGD(lr=0.05, momentum=0.9),
        epochs=epochs,
        batch=16,
    )
    return [base.replace({"seed": seed}) for seed in range(seeds)]


@pytest.fixture(scope="session")
def slow_runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("slow")
    train(slow(6), RunStore(root), device="cpu")
    return contents(root)


@pytest.mark.parametrize("carry", [False, True], ids=["shared store", "runs travel"])
def test_the_quickstart_is_that_of_one_process_bit_for_bit(engine, quickstart, tmp_path, carry):
    engine.carry = carry
    recipes, serial = quickstart
    heard, root = Noting(), tmp_path / "runs"
    with TensorBoard(tmp_path / "board") as board:
        runs = engine(recipes, RunStore(root), keep=QUICKSTART.keep, watcher=Watchers(heard, board))
    assert [run.id for run in runs] == [recipe.id for recipe in recipes]
    assert contents(root) == serial
    # All was heard of, once each; nothing but runs is left in the store.
    assert (heard.plan.runs, heard.plan.reused, sorted(heard.plan.units)) == (16, 0, sorted(serial))
    assert sorted(heard.ends) == sorted(run for run, _ in heard.starts) == sorted(serial)
    assert sorted(heard.rows) == sorted((run.id, row["step"]) for run in runs for row in run.history())
    assert heard.units == sum(heard.plan.units.values())
    assert sorted(path.name for path in root.iterdir()) == sorted(serial)
    assert all(list((tmp_path / "board" / run.id).glob("events.*")) for run in runs)
    # Again: everything is there, and nobody is asked.
    again = Noting()
    engine(recipes, RunStore(root), keep=QUICKSTART.keep, watcher=again)
    assert (again.plan.reused, again.starts, again.ends) == (16, [], [])


@pytest.mark.parametrize("carry", [False, True], ids=["shared store", "runs travel"])
def test_kill_9_of_workers_at_random_moments_loses_and_doubles_nothing(engine, slow_runs, tmp_path, carry):
    engine.carry, engine.retries = carry, 50
    moments, killed, heard = random.Random(carry), [], Noting()
    over = threading.Event()

    def has_checkpoint(run):
        return (tmp_path / "runs" / run / "checkpoint.safetensors").exists()

    def kill():
        while not over.wait(moments.uniform(0.0, 1.0) if killed else 0.005) and len(killed) < 3:
            staff = engine._staff
            there = list(staff.stations) if staff else []
            at_work = [one for one in there if one.order and one.hello.process not in killed]
            # Once at least after a checkpoint: what is on disk must count.
            saved = [one for one in at_work if any(map(has_checkpoint, one.order.ids))]
            if at_work := at_work if killed else saved:
                victim = moments.choice(at_work)
                killed.append(victim.hello.process)
                os.kill(victim.hello.process, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        runs = engine(slow(6), RunStore(tmp_path / "runs"), checkpoint_seconds=0.1, watcher=heard)
    finally:
        over.set()
        killer.join()
    assert killed
    assert contents(tmp_path / "runs") == slow_runs
    assert sorted(heard.ends) == sorted(run.id for run in runs), "each ended once"
    assert sum("died: its process was killed or crashed" in note for note in heard.notes) == len(killed)
    assert any(run.provenance["resumed"] for run in runs), "from checkpoints, not from the beginning"


def test_a_run_that_kills_every_worker_is_left_out_and_the_others_go_on(engine, tmp_path):
    engine.retries = 2
    bad, *good = slow(6, epochs=20)

    class Deadly(Noting):
        def started(self, recipe, step, total_steps):
            super().started(recipe, step, total_steps)
            if recipe.id == bad.id:
                for station in engine._staff.stations:
                    if station.order and bad.id in station.order.ids:
                        os.kill(station.hello.process, signal.SIGKILL)

    heard = Deadly()
    student = good[0].replace({"regulariser": Distillation(teacher=bad)})
    with pytest.raises(SofttargetsError, match=f"run {bad.id}.*3 workers died with it") as told:
        engine([bad, student, *good], RunStore(tmp_path), watcher=heard, checkpoint_seconds=1e6)
    assert f"run {student.id} (its teacher {bad.id} was left out)" in str(told.value)
    assert "The other 5 of 7 runs are finished" in str(told.value)
    assert sorted(heard.ends) == sorted(recipe.id for recipe in good)
    assert [run for run, _ in heard.starts].count(bad.id) == 3, "three times and no more"


def test_the_end_of_the_time_leaves_checkpoints_that_others_go_on_from(engine, slow_runs, tmp_path):
    engine.carry = True
    store, heard = RunStore(tmp_path), Noting()
    engine(slow(6)[:1], store)  # workers are there: the time is that of the training
    for seconds in (
        1.0,
        1.5,
        2.2,
        3.3,
        5.0,
    ):  # until something is under way, which takes longer on a busy machine
        with pytest.raises(Unfinished) as cut:
            engine(slow(6), store, until=time.monotonic() + seconds)
        left = {recipe.id for recipe in cut.value.left}
        assert left == {r.id for r in slow(6)} - {r.id for r in cut.value.runs}
        assert left
        begun = {key for key in left if (tmp_path / key / "checkpoint.safetensors").exists()}
        if begun:
            break
    assert begun
    runs = engine(slow(6), store, watcher=heard)
    assert contents(tmp_path) == slow_runs
    resumed = {run for run, step in heard.starts if step}
    assert resumed == begun
    assert {run.id for run in runs if run.provenance["resumed"]} == resumed


def test_an_error_of_a_worker_arrives_as_its_sentence(engine, tmp_path):
    refused = slow(1)[0].replace({"regulariser": {"name": "label_smoothing", "alpha": 0.1}, "batch": 10_000})
    with pytest.raises(SofttargetsError) as here:
        train([refused], RunStore(tmp_path / "here"), device="cpu")
    with pytest.raises(type(here.value)) as there:
        engine([*slow(2, epochs=1), refused], RunStore(tmp_path / "there"))
    assert str(there.value) == str(here.value)
    assert not list((tmp_path / "there").glob("*/run.json")), "refused before anything was trained"
    missing = Recipe(data=CIFAR10(), model=MLP(), epochs=1)
    with pytest.raises(DataError, match=f"^on {platform.node()}: .*cifar10"):
        engine([missing], RunStore(tmp_path / "there"), data_dir=tmp_path / "nothing")


def test_a_run_that_another_process_trains_is_waited_for_or_left_alone(engine, tmp_path):
    store, (mine, theirs) = RunStore(tmp_path), slow(2, epochs=2)
    writer = store.claim(theirs)
    for carry in (False, True):
        engine.carry = carry
        with pytest.raises(Unfinished) as cut:
            engine([mine, theirs], store, wait=False)
        assert [recipe.id for recipe in cut.value.left] == [theirs.id]
        assert [run.id for run in cut.value.runs] == [mine.id]
    heard = Noting()
    threading.Timer(1.5, writer.release).start()
    engine([mine, theirs], store, watcher=heard)
    assert (heard.waits, heard.ends) == (1, [theirs.id])


@pytest.mark.parametrize("carry", [False, True], ids=["shared store", "runs travel"])
def test_predictions_that_are_wanted_later_are_added(engine, tmp_path, carry):
    engine.carry = carry
    recipes = slow(2, epochs=1)
    engine(recipes, RunStore(tmp_path / "runs"), keep=("test",))
    for run in engine(recipes, RunStore(tmp_path / "runs"), keep=("train", "test")):
        assert run.has_predictions("train")
    train(recipes, RunStore(tmp_path / "serial"), keep=("test",), device="cpu")
    train(recipes, RunStore(tmp_path / "serial"), keep=("train", "test"), device="cpu")
    assert contents(tmp_path / "runs") == contents(tmp_path / "serial")


@pytest.mark.parametrize("carry", [False, True], ids=["shared store", "runs travel"])
def test_a_light_teacher_teaches_by_its_lessons(engine, tmp_path, carry):
    engine.carry = carry
    teacher = slow(1, epochs=1)[0]
    student = teacher.replace({"regulariser": Distillation(teacher=teacher), "seed": 7})
    train([teacher, student], RunStore(tmp_path / "serial"), keep=("train:scores",), device="cpu")
    pack_runs(
        [RunStore(tmp_path / "serial").find(teacher)], tmp_path / "p.zip", splits={teacher.id: ("train",)}
    )
    store = RunStore(tmp_path / "runs")
    merge_runs(tmp_path / "p.zip", store)
    engine([student], store, keep=("train:scores",))
    assert store.find(teacher).is_light
    assert contents(store.root)[student.id] == contents(tmp_path / "serial")[student.id]


def test_packs_are_formed_as_on_one_machine(engine, tmp_path):
    recipes = [one.replace({"regulariser": LabelSmoothing(alpha=0.1)}) for one in slow(20, epochs=1)]
    runs = engine(recipes, RunStore(tmp_path))
    together = [run.provenance["runs_together"] for run in runs]
    assert sorted(together)[10] >= 3, "shares of 20 runs on 4 workers are packs"


def test_what_a_cluster_cannot_give_is_refused_in_a_line(engine, tmp_path):
    engine.device = "cuda"
    try:
        with pytest.raises(SofttargetsError, match=r"^device 'cuda': the Ray cluster has no GPU"):
            engine(slow(1), RunStore(tmp_path))
        engine.device = "cuda:1"
        with pytest.raises(
            SofttargetsError,
            match=r"^device 'cuda:1' cannot be used with Ray, which gives each worker its own device",
        ):
            engine(slow(1), RunStore(tmp_path))
        engine.device, engine.cpus_per_worker, engine.workers = "cpu", 64, None
        with pytest.raises(
            SofttargetsError, match=r"^a worker needs 64 CPU.*, which no node of the cluster has"
        ):
            engine(slow(1), RunStore(tmp_path))
    finally:
        engine.device, engine.cpus_per_worker, engine.workers = "cpu", 1, 4


def test_a_worker_of_another_version_is_refused(engine, tmp_path, monkeypatch):
    from softtargets.executors.ray import staff

    ours = staff.versions()
    monkeypatch.setattr(staff, "versions", lambda: {**ours, "torch": "1.0"})
    with pytest.raises(
        SofttargetsError, match=f"^the worker on {platform.node()} has torch {ours['torch']} inst"
    ):
        engine(slow(1), RunStore(tmp_path))
