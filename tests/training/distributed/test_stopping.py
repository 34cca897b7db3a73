"""What ends a training by several processes, and how it goes on: with as many processes, with more, with one."""

from __future__ import annotations

import os
import random
import signal
import time
from contextlib import suppress

import pytest
import yaml

from forking import finish, start
from softtargets.recipes import CNN, SGD, Digits, Recipe
from softtargets.runs import RunStore

from ..test_crash import same, step_on_disk
from .launching import commanded, launch, said, together, waiting_for
from .test_equality import SINGLE, apart
from .trainings import trained

RECIPE = Recipe(
    data=Digits(validation=100, limit=150),
    model=CNN(channels=(4, 4), hidden=8, dropout=0.2),
    regulariser={"name": "online_label_smoothing"},
    optimiser=SGD(lr=0.02, momentum=0.9),
    epochs=40,
    batch=32,
)
STEPS = 200


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The run by two processes that nobody stops."""
    root = tmp_path_factory.mktemp("whole")
    assert together(2, trained, [RECIPE], root) == [0, 0]
    return RunStore(root).find(RECIPE)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump(RECIPE.to_dict()))
    return path


def begun(ranks, file, tmp_path, *more, steps=5, **options):
    """A command under way in so many processes, with a checkpoint of so many steps on disk."""
    store = RunStore(tmp_path / "runs")
    words = ("train", file, "--device", "cpu", "--runs-dir", store.root, "--checkpoint-seconds", "0", *more)
    children = launch(ranks, commanded, *words, folder=tmp_path, **options)
    waiting_for(lambda: step_on_disk(store, RECIPE) >= steps)
    return store, children


def ended(children, seconds=10.0):
    """How each of them ends, before long."""
    begin = time.monotonic()
    codes = [finish(child) for child in children]
    assert time.monotonic() - begin < seconds
    return codes


def test_a_killed_process_stops_the_others_with_a_line_and_the_run_goes_on_exactly(whole, file, tmp_path):
    moments = random.Random(0)
    for victim in (1, 0):
        store, children = begun(
            2, file, tmp_path, steps=step_on_disk(RunStore(tmp_path / "runs"), RECIPE) + 5
        )
        time.sleep(moments.uniform(0, 0.05))
        children[victim].kill()
        codes = ended(children)
        assert codes[victim] == -signal.SIGKILL
        assert codes[1 - victim] == 2
        line = said(tmp_path, 1 - victim).splitlines()[-1]
        assert line.startswith(f"error: rank {victim} is gone; the saved part of the run is intact")
        assert "Traceback" not in said(tmp_path, 1 - victim)
        assert store.find(RECIPE) is None
    assert together(2, trained, [RECIPE], store.root) == [0, 0]
    run = store.find(RECIPE)
    assert run.provenance["resumed"] == 2
    assert run.provenance["ranks"] == [2]
    assert same(whole, run)


def test_a_run_goes_on_with_another_number_of_processes(whole, file, tmp_path):
    store, children = begun(3, file, tmp_path, steps=20)
    children[2].kill()
    assert ended(children) == [2, 2, -signal.SIGKILL]
    assert said(tmp_path, 1) == ""  # the first one says it
    until = finish(start(stopped_after, RECIPE, store.root, step_on_disk(store, RECIPE) + 20))
    assert until == 0
    assert together(2, trained, [RECIPE], store.root) == [0, 0]
    run = store.find(RECIPE)
    assert run.provenance["ranks"] == [3, 1, 2]
    assert apart(whole, run) < SINGLE * 10
    assert len(run.history()) == len(whole.history())


def stopped_after(recipe, root, step):
    """Train alone for a while."""
    from softtargets.training import Watcher

    class Stopping(Watcher):
        def epoch(self, recipe, row):
            if row["step"] >= step:
                os.kill(os.getpid(), signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        trained([recipe], root, watcher=Stopping())
    except KeyboardInterrupt:
        return
    raise AssertionError("it was not stopped")


def test_a_lost_process_is_named_also_where_the_launcher_asks_the_others_to_stop(file, tmp_path):
    _, children = begun(2, file, tmp_path)
    children[1].kill()
    os.kill(children[0].pid, signal.SIGTERM)
    assert ended(children) == [2, -signal.SIGKILL]
    assert said(tmp_path, 0).splitlines()[-1].startswith("error: rank 1 is gone; ")


@pytest.mark.parametrize("whom", [(0, 1), (1, 0), (1,), (0,)], ids=str)
def test_whoever_is_asked_to_stop_all_stop_at_the_same_step_and_save(whole, file, tmp_path, whom):
    store, children = begun(2, file, tmp_path)
    # Launchers pass on what a terminal sent to all; some may have ended by then.
    for rank in whom:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
            with suppress(ProcessLookupError):
                os.kill(children[rank].pid, number)
            time.sleep(0.003)
    assert ended(children) == [130, 130]
    assert said(tmp_path, 0).splitlines()[-1] == (
        f"interrupted; run {RECIPE.id} is saved; the same command resumes it"
    )
    assert said(tmp_path, 1) == ""
    assert 0 < step_on_disk(store, RECIPE) < STEPS
    assert together(2, trained, [RECIPE], store.root) == [0, 0]
    assert same(whole, store.find(RECIPE))


def test_the_end_of_the_time_is_that_of_all(whole, file, tmp_path):
    store = RunStore(tmp_path / "runs")
    words = ("train", file, "--device", "cpu", "--runs-dir", store.root, "--for", "1s")
    assert together(2, commanded, *words, folder=tmp_path) == [3, 3]
    assert said(tmp_path, 0).splitlines()[-1].startswith("the time is up and 1 run is not finished; run ")
    assert said(tmp_path, 1) == ""
    assert together(2, trained, [RECIPE], store.root) == [0, 0]
    assert same(whole, store.find(RECIPE))


def test_a_time_limit_and_restarts_are_refused_together(file, tmp_path):
    words = ("train", file, "--device", "cpu", "--runs-dir", tmp_path / "runs", "--for", "1s")
    given = {"TORCHELASTIC_MAX_RESTARTS": "3"}
    assert together(2, commanded, *words, folder=tmp_path, environment=given) == [2, 2]
    assert "torchrun --max-restarts 3 would start again when the time is up" in said(tmp_path, 0)


def test_a_run_that_is_no_longer_made_of_numbers_fails_in_all_processes_alike(file, tmp_path):
    words = ("train", file, "--device", "cpu", "--runs-dir", tmp_path / "runs", "--set", "optimiser.lr=1e9")
    assert together(2, commanded, *words, folder=tmp_path) == [2, 2]
    assert "failed: " in said(tmp_path, 0).splitlines()[-1]
    assert "is nan" in said(tmp_path, 0) or "is inf" in said(tmp_path, 0)
    assert said(tmp_path, 1) == ""


def test_two_groups_of_processes_share_the_runs_of_a_store(tmp_path):
    recipes = [RECIPE.replace({"epochs": 6, "seed": seed}) for seed in range(4)]
    children = [child for _ in range(2) for child in launch(2, trained, recipes, tmp_path)]
    assert ended(children, 60) == [0, 0, 0, 0]
    runs = [RunStore(tmp_path).find(recipe) for recipe in recipes]
    assert all(run.status == "finished" for run in runs)
    assert all(run.provenance["ranks"] == [2] for run in runs)


def test_what_fails_in_one_process_is_said_by_the_first(file, tmp_path):
    words = ("train", file, "--device", "cpu", "--runs-dir", tmp_path / "runs")
    assert together(2, broken_as_1, *words, folder=tmp_path) == [2, 2]
    assert said(tmp_path, 0).splitlines()[-1] == "error: rank 1 has failed: digits cannot be read here"


def broken_as_1(*words):
    from softtargets.exceptions import DataError
    from softtargets.training.scheduling import resources

    def refuse(*_):
        raise DataError("digits cannot be read here")

    if os.environ["RANK"] == "1":
        resources.prepare = refuse
    commanded(*words)


def test_a_process_that_hangs_in_torch_is_ended_when_another_one_is_gone(file, tmp_path):
    words = ("train", file, "--device", "cpu", "--runs-dir", tmp_path / "runs")
    children = launch(2, stuck_as_0, tmp_path / "stuck", *words, folder=tmp_path)
    waiting_for((tmp_path / "stuck").exists)
    children[1].kill()
    assert ended(children, 15) == [2, -signal.SIGKILL]
    assert said(tmp_path, 0).splitlines()[-1].startswith("error: rank 1 is gone; ")


def stuck_as_0(mark, *words):
    """A process that never comes out of its tenth exchange, as with NCCL when another one is gone."""
    from softtargets.training.distributed import crew  # the module

    exchange, calls = crew.distributed.all_reduce, 0

    def stuck(*given, **named):
        nonlocal calls
        calls += 1
        if calls == 10:
            mark.touch()
            time.sleep(600)
        return exchange(*given, **named)

    if os.environ["RANK"] == "0":
        crew.distributed.all_reduce = stuck
    commanded(*words)
