"""Commands that train on a cluster: they end well, however they end, and leave nothing behind."""

from __future__ import annotations

import json
import os
import signal
from glob import glob
from pathlib import Path

import pytest

from softtargets.runs import RunStore
from softtargets.studies import STUDIES, find_study
from softtargets.training import train

from .comparing import contents
from .processes import of_directory, softtargets, wait_for

# The quickstart with more epochs: long enough to be stopped in the middle.
EPOCHS = 60
LONGER = ("--set", f"epochs={EPOCHS}")
STUDY = find_study(STUDIES, "quickstart")


@pytest.fixture(scope="session")
def longer(tmp_path_factory):
    root = tmp_path_factory.mktemp("longer")
    recipes = [trial.recipe for trial in STUDY.trials(STUDY.settings(1, {"epochs": EPOCHS}))]
    train(recipes, RunStore(root), keep=STUDY.keep, device="cpu")
    return contents(root)


def study(address: str, tmp_path: Path, *more: str):
    words = ["study", "run", "quickstart", "--seeds", "1", *LONGER, "--executor", "ray", "--address", address]
    words += ["--device", "cpu", "--checkpoint-seconds", "0.1"]
    return softtargets(*words, *more, "--runs-dir", tmp_path / "runs", "--out", tmp_path / "page")


def trained(tmp_path: Path) -> dict:
    """The runs without what the study measured on them."""
    return {
        run: {name: content for name, content in files.items() if not name.startswith("measures/")}
        for run, files in contents(tmp_path / "runs").items()
    }


def checkpoints(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "runs").glob("*/checkpoint.safetensors"))


def held(tmp_path: Path) -> list[Path]:
    """Locks that somebody holds."""
    from softtargets.storage import is_held

    return [path for path in (tmp_path / "runs").glob("*/lock") if is_held(path)]


def test_ctrl_c_and_a_killed_driver_lose_and_double_nothing(address, longer, tmp_path):
    stopped = study(address, tmp_path)
    wait_for(lambda: checkpoints(tmp_path), what="no checkpoint was written")
    os.killpg(stopped.pid, signal.SIGINT)  # to the whole group, as a terminal does
    out, err = stopped.communicate(timeout=90)
    assert stopped.returncode == 130, err
    assert out == ""
    assert err.splitlines()[-1].startswith(
        "interrupted; everything so far is saved. Go on with: softtargets study run"
    )
    assert f"--executor ray --address {address}" in err
    assert "Traceback" not in err
    assert not held(tmp_path)
    begun = {path.parent.name for path in checkpoints(tmp_path)}
    before = len(list((tmp_path / "runs").glob("*/run.json")))
    assert begun

    killed = study(address, tmp_path)
    wait_for(lambda: len(list((tmp_path / "runs").glob("*/run.json"))) > before or held(tmp_path))
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate()
    wait_for(lambda: not held(tmp_path), what="workers of a killed driver still train")

    last = study(address, tmp_path, "--json")
    out, err = last.communicate(timeout=150)
    assert last.returncode == 0, err
    assert trained(tmp_path) == longer
    assert json.loads(out)["report"].endswith("index.html")
    runs = [json.loads(path.read_text()) for path in (tmp_path / "runs").glob("*/run.json")]
    assert {run["id"] for run in runs if run["provenance"].get("resumed")} >= begun
    assert "resumed at step" in err


def test_a_ray_of_our_own_is_quiet_and_leaves_nothing_behind(tmp_path):
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    for name in ("RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH"):
        env.pop(name, None)
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("data: digits\nmodel: mlp\nepochs: 1\n")
    started = softtargets(
        "train", recipe, "--executor", "ray", "--device", "cpu", "--runs-dir", tmp_path / "runs", env=env
    )
    out, err = started.communicate(timeout=150)
    assert started.returncode == 0, err
    assert out.startswith("run")
    first, *between, last = err.splitlines()
    assert first == "1 run, 0 already finished"
    assert all(line.startswith("0 of 1 run done") for line in between), err  # on a slow machine
    assert last.startswith("[1/1]")
    # Neither in the directory of temporary files nor where Ray goes if that has a long name.
    assert not list(tmp_path.glob("st-ray-*"))
    assert not of_directory("/tmp/st-ray-")


def test_a_ray_of_our_own_ends_with_a_killed_driver(tmp_path):
    there = set(glob("/tmp/st-ray-*"))
    env = {**os.environ}
    for name in ("RAY_ADDRESS", "RAY_AUTH_MODE", "RAY_AUTH_TOKEN_PATH"):
        env.pop(name, None)
    words = ["study", "run", "quickstart", *LONGER, "--executor", "ray", "--workers", "1", "--device", "cpu"]
    started = softtargets(*words, "--runs-dir", tmp_path / "runs", env=env)
    wait_for(lambda: held(tmp_path), what="nothing is trained")
    assert of_directory("/tmp/st-ray-")
    os.kill(started.pid, signal.SIGKILL)
    started.communicate()
    wait_for(lambda: not of_directory("/tmp/st-ray-"), what="processes are left")
    assert not held(tmp_path)
    wait_for(lambda: there >= set(glob("/tmp/st-ray-*")), what="files are left")


def test_without_ray_one_line_says_what_to_install(tmp_path):
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("data: digits\nmodel: mlp\nepochs: 1\n")
    (tmp_path / "ray.py").write_text("raise ImportError('No module named ray')\n")
    path = os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])])
    ended = softtargets(
        "train", recipe, "--executor", "ray", cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}
    )
    out, err = ended.communicate(timeout=60)
    assert (ended.returncode, out) == (2, "")
    assert err == (
        "error: --executor ray needs Ray, which cannot be imported (No module named ray); "
        "pip install 'softtargets[ray]'\n"
    )
