"""Whatever interrupts a training, resuming it gives bit for bit what an uninterrupted one gives."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import time
from functools import partial

import pytest
import torch

from forking import finish, start
from softtargets.exceptions import StorageError
from softtargets.recipes import Distillation
from softtargets.runs import Run, RunStore
from softtargets.training import Watcher
from softtargets.training import train as train_anywhere

# These tests compare bits, and fork; both are for the CPU, also where there is a GPU.
train = partial(train_anywhere, device="cpu")


def same(one: Run, other: Run) -> bool:
    """Equal weights, predictions and metrics, to the last bit."""
    weights, others = one.weights(), other.weights()
    assert weights.keys() == others.keys()
    equal = all(torch.equal(weights[name], others[name]) for name in weights)
    for split in ("validation", "test"):
        a, b = one.predictions(split), other.predictions(split)
        equal &= torch.equal(a.logits, b.logits) and torch.equal(a.features, b.features)
    return equal and one.history() == other.history()


def train_saving_every_step(recipes, root):
    train(recipes, RunStore(root), checkpoint_seconds=0)


def test_kill_9_at_ten_random_moments_changes_nothing(recipe, tmp_path):
    recipe = recipe.replace({"epochs": 30})
    (whole,) = train([recipe], RunStore(tmp_path / "whole"))
    store = RunStore(tmp_path / "killed")
    moments = random.Random(0)
    steps = [0]
    for _ in range(10):
        child = start(train_saving_every_step, [recipe], store.root)
        # A moment within the next few steps, however fast this machine is.
        target = steps[-1] + moments.randint(1, 10)
        while step_on_disk(store, recipe) < target:
            assert child.is_alive()
            time.sleep(0.001)
        time.sleep(moments.uniform(0, 0.01))
        child.kill()
        assert finish(child) == -signal.SIGKILL
        steps.append(step_on_disk(store, recipe))
    assert steps == sorted(steps)
    assert steps[-1] < 30 * 5
    assert store.find(recipe) is None
    (resumed,) = train([recipe], store)
    assert resumed.provenance["resumed"] == 10
    assert same(whole, resumed)


def step_on_disk(store: RunStore, recipe) -> int:
    """How far a run's checkpoint has come. Read at once: `safe_open` opens a file twice, and between the two it may be
    replaced."""
    path = store.root / recipe.id / "checkpoint.safetensors"
    if not path.exists():
        return 0
    content = path.read_bytes()
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return json.loads(header["__metadata__"]["progress"])["step"]


def die_at_commit(commit: int, after: bool, recipe, root) -> None:
    """Train until the n-th atomic replacement of a file, and die just before or just after it."""
    replace, calls = os.replace, 0

    def fatal(source, target):
        nonlocal calls
        calls += 1
        if calls == commit and not after:
            os.kill(os.getpid(), signal.SIGKILL)
        replace(source, target)
        if calls == commit:
            os.kill(os.getpid(), signal.SIGKILL)

    os.replace = fatal
    train_saving_every_step([recipe], root)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_kill_9_at_every_single_commit_of_a_file_changes_nothing(recipe, after, tmp_path):
    """The exhaustive version: die just before, or just after, each atomic replacement up to the last one."""
    recipe = recipe.replace({"epochs": 1})
    (whole,) = train([recipe], RunStore(tmp_path / "whole"))
    # The recipe, a checkpoint for each step but the last, weights, two predictions, recipe, metrics and the manifest.
    commits = 1 + 4 + 1 + 2 + 1 + 1 + 1
    for commit in range(1, commits + 2):
        store = RunStore(tmp_path / str(commit))
        code = finish(start(die_at_commit, commit, after, recipe, store.root))
        assert code == (-signal.SIGKILL if commit <= commits else 0)
        finished = store.find(recipe) is not None
        assert finished == (commit > commits or (commit == commits and after))
        assert same(whole, train([recipe], store)[0])
        assert not list(store.root.rglob("*.tmp"))


@pytest.fixture
def heard():
    """Ctrl-C interrupts, also where the tests run in the background of a script, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heard")
def test_ctrl_c_saves_between_two_steps_and_resuming_is_exact(recipe, tmp_path):
    (whole,) = train([recipe], RunStore(tmp_path / "whole"))
    store = RunStore(tmp_path / "interrupted")

    class Interrupting(Watcher):
        def epoch(self, recipe, row):
            if row["epoch"] == 2:
                os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train([recipe], store, watcher=Interrupting())
    assert [entry.status for entry in store.entries()] == ["interrupted"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    (resumed,) = train([recipe], store)
    assert resumed.provenance["resumed"] == 1
    assert same(whole, resumed)


def test_a_full_disk_is_one_clear_error_and_costs_nothing(recipe, tmp_path, monkeypatch):
    first, second = recipe, recipe.replace({"seed": 1})
    store = RunStore(tmp_path)
    (done,) = train([first], store)
    (whole,) = train([second], RunStore(tmp_path / "whole"))
    fsync, left = os.fsync, 5

    def filling(descriptor):
        nonlocal left
        left -= 1
        if left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", filling)
    with pytest.raises(
        StorageError, match="the disk is full; free some space and run the same command again"
    ):
        train([first, second], store, checkpoint_seconds=0)
    monkeypatch.undo()
    assert done.problems() == []
    assert not list(tmp_path.rglob("*.tmp"))
    assert same(whole, train([first, second], store)[1])


class Noting(Watcher):
    """Writes down every run that is started."""

    def __init__(self, log):
        self._log = log

    def started(self, recipe, step, total_steps):
        with open(self._log, "a") as file:
            file.write(f"{recipe.id} {step}\n")


def train_noting(recipes, root, log):
    train(recipes, RunStore(root), watcher=Noting(log), checkpoint_seconds=0)


def test_two_processes_train_each_run_once(recipe, tmp_path):
    recipes = [recipe.replace({"seed": seed, "epochs": 3}) for seed in range(6)]
    recipes.append(recipes[0].replace({"regulariser": Distillation(teacher=recipes[1])}))
    store, log = RunStore(tmp_path / "runs"), tmp_path / "log"
    children = [start(train_noting, recipes, store.root, log) for _ in range(2)]
    assert [finish(child) for child in children] == [0, 0]
    assert sorted(log.read_text().split("\n")[:-1]) == sorted(f"{recipe.id} 0" for recipe in recipes)
    for recipe in recipes:
        run = store.find(recipe)
        assert run.problems() == []
        assert same(run, train([recipe], RunStore(tmp_path / "alone"))[0])


def test_a_run_whose_process_died_is_taken_over(recipe, tmp_path):
    recipe = recipe.replace({"epochs": 300})
    store = RunStore(tmp_path)
    child = start(train_saving_every_step, [recipe], tmp_path)
    while step_on_disk(store, recipe) < 3:
        assert child.is_alive()
        time.sleep(0.001)
    waited = []

    class KillingTheOther(Watcher):
        def waiting(self, recipe):
            waited.append(recipe)
            child.kill()

    (run,) = train([recipe], store, watcher=KillingTheOther())
    assert finish(child) == -signal.SIGKILL
    assert waited
    assert run.provenance["resumed"] == 1
