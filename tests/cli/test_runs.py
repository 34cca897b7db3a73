from __future__ import annotations

import io
import json
import sys

import pytest

import softtargets.runs
from runs.made import failed, finished, unfinished
from runs.made import recipe as made_recipe
from softtargets.runs import Measured, RunStore, keep_measures

from .command import ran
from .watched import ended, recipes


def test_finished_and_failed_runs_are_verified(capsys, tmp_path):
    finished, failed = recipes(2)
    ended(tmp_path, finished)
    ended(tmp_path, failed, reason="train_loss is nan")
    assert ran(capsys, "runs", "verify", "--runs-dir", tmp_path) == (
        0,
        "2 runs checked: all files are undamaged\n",
        "",
    )


def test_an_interruption_has_an_exit_code_of_its_own(capsys, monkeypatch):
    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(softtargets.runs, "RunStore", pressed)
    code, out, err = ran(capsys, "runs", "list")
    assert (code, out) == (130, "")
    assert err in ("", "interrupted\n")  # typer says nothing of its own in some versions


class Somebody(io.StringIO):
    """Standard input of a terminal, with an answer."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "gone"), [("y\n", True), ("n\n", False), ("\n", False)])
def test_a_run_is_deleted_only_if_somebody_says_so(capsys, tmp_path, monkeypatch, answer, gone):
    (recipe,) = recipes(1)
    run = ended(tmp_path, recipe)
    monkeypatch.setattr(sys, "stdin", Somebody(answer))
    code, out, err = ran(capsys, "runs", "delete", run.id[:8], "--runs-dir", tmp_path)
    assert code == 0
    assert f"Delete run {run.id} (digits, mlp, label_smoothing 0.1, seed 0, finished" in out + err
    assert (f"deleted {run.id}" if gone else "nothing was deleted") in out
    assert run.directory.exists() is not gone


@pytest.fixture
def there(tmp_path):
    """Another machine's runs: two finished, one failed, one begun."""
    store = RunStore(tmp_path / "there")
    keep_measures(finished(store, 0), "a-study", Measured({"error": 0.5}))
    finished(store, 1)
    failed(store, 2)
    unfinished(store, 3, step=40)
    return store


def packed(capsys, there, tmp_path, *words, name="p.zip"):
    code, out, err = ran(capsys, "runs", "pack", tmp_path / name, *words, "--runs-dir", there.root)
    assert (code, err) == (0, "")
    return out


def test_runs_are_packed_and_merged(capsys, there, tmp_path):
    out = packed(capsys, there, tmp_path)
    assert f"3 runs (2 finished, 1 failed) in {tmp_path / 'p.zip'}" in out
    here = tmp_path / "here"
    merge = ("runs", "merge", tmp_path / "p.zip", "--runs-dir", here)
    assert ran(capsys, *merge) == (0, f"3 added in {here}\n", "")
    assert ran(capsys, *merge) == (0, f"3 already there in {here}\n", "")
    _, out, _ = ran(capsys, "runs", "list", "--runs-dir", here)
    assert out.count("finished, light") == 2
    _, out, _ = ran(capsys, "runs", "list", "--runs-dir", here, "--json")
    assert sorted(entry["light"] for entry in json.loads(out)) == [False, True, True]
    _, out, _ = ran(capsys, "runs", "show", made_recipe(0).id, "--runs-dir", here)
    assert "without predictions/test.safetensors, weights.safetensors" in out
    assert "measured by  a-study" in out
    _, out, _ = ran(capsys, "runs", "verify", "--runs-dir", here)
    assert out == "3 runs checked (2 of them light, without weights): all files are undamaged\n"
    file = tmp_path / "all.npz"
    code, out, _ = ran(capsys, "runs", "export", "--predictions", file, "--runs-dir", here)
    assert (code, out) == (0, f"predictions of 2 runs in {file}\n")
    code, out, _ = ran(capsys, "runs", "measure", file)
    assert (code, out.count("\n")) == (0, 3)
    code, out, _ = ran(capsys, "runs", "export", tmp_path / "logs.csv", "--runs-dir", here)
    assert code == 0


def test_some_runs_are_packed_with_what_was_asked_for(capsys, there, tmp_path):
    out = packed(capsys, there, tmp_path, made_recipe(0).id[:8], "--with", "weights")
    assert out.startswith("1 run (1 finished) in ")
    out = packed(capsys, there, tmp_path, "--where", "seed=3", "--with", "checkpoints", "--json")
    assert json.loads(out)["unfinished"] == [made_recipe(3).id]
    here = tmp_path / "here"
    _, out, _ = ran(capsys, "runs", "merge", tmp_path / "p.zip", "--runs-dir", here)
    assert out == f"1 to be resumed in {here}\n"
    _, out, _ = ran(capsys, "runs", "list", "--runs-dir", here)
    assert "interrupted" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("x.tar",), "does not end in .zip"),
        (("x.zip", "--with", "logits"), "'logits' cannot be packed"),
        (("x.zip", "--where", "sede=3"), "no run has a recipe field 'sede'"),
        (("x.zip", "ffff"), "no run 'ffff'"),
        (("x.zip", "--where", "seed=3"), "nothing to pack"),
    ],
)
def test_what_cannot_be_packed_is_said(capsys, there, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    code, out, err = ran(capsys, "runs", "pack", *words, "--runs-dir", there.root)
    assert (code, out) == (2, "")
    assert message in err
    assert not list(tmp_path.glob("*.zip"))


def test_conflicts_and_busy_runs_are_named_and_the_exit_code_says_so(capsys, there, tmp_path):
    packed(capsys, there, tmp_path)
    here = RunStore(tmp_path / "here")
    finished(RunStore(tmp_path / "third"), 0, shift=0.5)
    packed(capsys, RunStore(tmp_path / "third"), tmp_path, name="other.zip")
    ran(capsys, "runs", "merge", tmp_path / "other.zip", "--runs-dir", here.root)
    merge = ("runs", "merge", tmp_path / "p.zip", "--runs-dir", here.root)
    with here.claim(made_recipe(1)):
        code, out, err = ran(capsys, *merge)
    assert code == 2
    assert f"run {made_recipe(0).id}: metrics and predictions differ. Here: finished, engine 3" in out
    assert f"run {made_recipe(1).id} is being written by another process" in out
    assert "not everything was merged: 1 conflict: the runs that were here stay, 1 run being written" in err
    code, out, err = ran(capsys, *merge, "--replace")
    assert (code, err) == (0, "")
    assert out == f"1 added, 1 replaced, 1 already there in {here.root}\n"
    finished(RunStore(tmp_path / "fourth"), 0, shift=0.5, engine=2)
    packed(capsys, RunStore(tmp_path / "fourth"), tmp_path, name="old.zip")
    code, out, err = ran(capsys, "runs", "merge", tmp_path / "old.zip", "--runs-dir", here.root)
    assert (code, err) == (0, "")
    assert out == f"1 kept, by a newer engine in {here.root}\n"


def test_a_light_run_says_why_it_cannot_be_looked_at(capsys, there, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    packed(capsys, there, tmp_path)
    here = tmp_path / "here"
    ran(capsys, "runs", "merge", tmp_path / "p.zip", "--runs-dir", here)
    for command in ("calibrate", "view"):
        code, _, err = ran(capsys, command, made_recipe(0).id, "--runs-dir", here)
        assert code == 2
        assert "is light: its" in err
