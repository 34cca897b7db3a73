"""Real launchers: torchrun, also with restarts and on a campaign, and the executor of several ranks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import yaml

import softtargets
from softtargets.exceptions import SofttargetsError, Unfinished
from softtargets.executors import RanksExecutor
from softtargets.recipes import Distillation
from softtargets.runs import RunStore
from softtargets.training import RankLost, Watcher

from ..test_crash import same, step_on_disk
from .launching import together, waiting_for
from .test_stopping import RECIPE
from .trainings import BASE, trained

SOURCES = str(Path(softtargets.__file__).parents[1])


def torchrun(*words, **options):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    return subprocess.Popen(
        [*command, *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": SOURCES, **options},
    )


def workers_of(launcher):
    """The processes that torchrun has started, by their rank."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            given = dict(
                line.split(b"=", 1) for line in (entry / "environ").read_bytes().split(b"\0") if b"=" in line
            )
        except (OSError, ValueError):
            continue
        if parent == launcher.pid and b"RANK" in given:
            found[int(given[b"RANK"])] = int(entry.name)
    return found


def test_torchrun_starts_a_killed_training_again_and_it_goes_on(tmp_path):
    path, store = tmp_path / "recipe.yaml", RunStore(tmp_path / "runs")
    path.write_text(yaml.safe_dump(RECIPE.to_dict()))
    words = ("-m", "softtargets", "train", path, "--device", "cpu", "--runs-dir", store.root)
    launcher = torchrun("--max-restarts=1", *words, "--checkpoint-seconds", "0")
    waiting_for(lambda: step_on_disk(store, RECIPE) >= 5)
    os.kill(workers_of(launcher)[1], signal.SIGKILL)
    said, told = launcher.communicate(timeout=120)
    assert launcher.returncode == 0, told
    # Torch 2.8 and 2.9 say who is connected, and two ranks at a time tear each other's lines.
    lines = [line for line in said.splitlines() if "[Gloo]" not in line and "peer ranks" not in line]
    assert lines[0] == f"run                  {RECIPE.id}"  # of one rank: the others are silent
    assert "error: rank 1 is gone; " in told
    run = store.find(RECIPE)
    assert run.provenance["resumed"] == 1
    assert together(2, trained, [RECIPE], tmp_path / "whole") == [0, 0]
    assert same(run, RunStore(tmp_path / "whole").find(RECIPE))


def test_ctrl_c_on_torchrun_saves_and_says_so(tmp_path):
    path, store = tmp_path / "recipe.yaml", RunStore(tmp_path / "runs")
    path.write_text(yaml.safe_dump(RECIPE.to_dict()))
    launcher = torchrun("-m", "softtargets", "train", path, "--device", "cpu", "--runs-dir", store.root,
                        "--checkpoint-seconds", "0")  # fmt: skip
    waiting_for(lambda: step_on_disk(store, RECIPE) >= 5)
    launcher.send_signal(signal.SIGINT)
    _, told = launcher.communicate(timeout=60)
    assert launcher.returncode != 0
    assert f"interrupted; run {RECIPE.id} is saved; the same command resumes it" in told
    assert 5 <= step_on_disk(store, RECIPE) < 200


def test_executor_ranks_is_the_engine_with_several_processes(tmp_path):
    student = BASE.replace({"regulariser": Distillation(teacher=BASE), "seed": 3})
    heard = []

    class Hearing(Watcher):
        def started(self, recipe, step, total_steps):
            heard.append((recipe.id, step))

        def finished(self, run):
            heard.append((run.id, run.status))

    store = RunStore(tmp_path / "runs")
    (run,) = RanksExecutor(ranks=2)([student], store, device="cpu", watcher=Hearing(), keep=["test:scores"])
    assert run.status == "finished"
    assert run.provenance["ranks"] == [2]
    assert run.has_only_scores("test")
    assert not run.has_predictions("validation")
    assert heard == [
        (BASE.id, 0), (BASE.id, "finished"), (student.id, 0), (student.id, "finished")
    ]  # fmt: skip
    with pytest.raises(SofttargetsError, match="fewer than the 2 ranks"):
        RanksExecutor(ranks=2)([BASE.replace({"batch": 1})], store, device="cpu")


def test_executor_ranks_passes_on_ctrl_c_the_end_of_the_time_and_the_loss_of_a_process(tmp_path):
    # So long that it has not ended before a busy machine comes to pass anything on.
    store, long = RunStore(tmp_path / "runs"), RECIPE.replace({"epochs": 4 * RECIPE.epochs})

    def when_begun(act):
        class Acting(Watcher):
            acted = False

            def progressed(self, recipe, step, units):
                if not self.acted and step_on_disk(store, long) > begun:
                    self.acted = True
                    act()

        begun = step_on_disk(store, long)
        return {"watcher": Acting(), "checkpoint_seconds": 0, "device": "cpu"}

    executor = RanksExecutor(ranks=2)
    with pytest.raises(KeyboardInterrupt):
        executor([long], store, **when_begun(lambda: os.kill(os.getpid(), signal.SIGINT)))
    with pytest.raises(RankLost, match="rank 0 is gone"):
        executor([long], store, **when_begun(lambda: os.kill(rank_of(0), signal.SIGKILL)))
    with pytest.raises(Unfinished) as cut:
        executor([long], store, device="cpu", until=time.monotonic() - 1)
    assert cut.value.left == [long]
    (run,) = executor([long], store, device="cpu")
    assert run.provenance["resumed"] == 2
    assert together(2, trained, [long], tmp_path / "whole") == [0, 0]
    assert same(run, RunStore(tmp_path / "whole").find(long))


def rank_of(rank):
    """The process of a rank that the executor in this process has started."""
    (launcher,) = [
        int(entry.name)
        for entry in Path("/proc").glob("[0-9]*")
        if _parent(entry) == os.getpid() and b"torch.distributed.run" in (entry / "cmdline").read_bytes()
    ]
    return workers_of(type("Launcher", (), {"pid": launcher}))[rank]


def _parent(entry):
    try:
        return int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, IndexError):
        return None


@pytest.mark.parametrize("number", [None, 0])
def test_a_number_of_processes_must_be_said(number, tmp_path):
    with pytest.raises(
        SofttargetsError, match=r"--ranks N" if number is None else "ranks must be at least 1, not 0"
    ):
        RanksExecutor(ranks=number)([BASE], RunStore(tmp_path), device="cpu")
