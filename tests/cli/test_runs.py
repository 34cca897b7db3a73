from __future__ import annotations

import softtargets.runs

from .command import ran
from .watched import ended, recipes


def test_finished_and_failed_runs_are_verified(capsys, tmp_path):
    finished, failed = recipes(2)
    ended(tmp_path, finished)
    ended(tmp_path, failed, reason="train_loss is nan")
    assert ran(capsys, "runs", "verify", "--runs-dir", tmp_path) == (
        0,
        "2 runs are as they were written\n",
        "",
    )


def test_an_interruption_has_an_exit_code_of_its_own(capsys, monkeypatch):
    def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(softtargets.runs, "RunStore", pressed)
    code, out, err = ran(capsys, "runs", "list")
    assert (code, out) == (130, "")
    assert err in ("", "interrupted\n")  # typer says nothing of its own in some versions
