from __future__ import annotations

import io
import sys

import pytest

import softtargets.runs

from .command import ran
from .watched import ended, recipes


def test_finished_and_failed_runs_are_verified(capsys, tmp_path):
    finished, failed = recipes(2)
    ended(tmp_path, finished)
    ended(tmp_path, failed, reason="train_loss is nan")
    assert ran(capsys, "runs", "verify", "--runs-dir", tmp_path) == (
        0,
        "2 runs checked: all files are as they were written\n",
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
