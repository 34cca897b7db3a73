from __future__ import annotations

import io
import re
import sys

import pytest

from softtargets.runs import RunStore
from softtargets.training import Plan, ProgressLine, Watcher, train
from softtargets.training.engine import watching


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "runs")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_training_shows_a_line_if_asked_to(recipe, store, capsys):
    train([recipe], store, device="cpu", progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("softtargets: 0 of 1 run done, ")
    assert re.fullmatch(r"softtargets: 1 of 1 run done, \d+ s", lines[-1])
    train([recipe], store, device="cpu", progress=True)
    assert capsys.readouterr().err == "", "nothing to do, nothing to say"


def test_it_is_silent_where_nobody_looks(recipe, store, capsys):
    train([recipe], store, device="cpu")
    assert capsys.readouterr().err == ""


def test_it_is_shown_on_a_terminal_unless_somebody_else_watches(monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert isinstance(watching(None, None), ProgressLine)
    own = Watcher()
    assert watching(own, None) is own
    assert not isinstance(watching(None, False), ProgressLine)
    monkeypatch.setattr(sys, "stderr", None)  # as under pythonw
    assert not isinstance(watching(None, None), ProgressLine)


def test_a_terminal_gets_one_line_that_is_written_over(recipe, monkeypatch):
    monkeypatch.setattr("softtargets.training.progress._SECONDS", 0.0)
    screen = Terminal()
    line = ProgressLine(screen)
    line.planned(Plan(runs=2, reused=0))
    line.started(recipe, 0, 4)
    line.progressed(recipe, 2, 64)
    assert screen.getvalue().count("\n") == 0
    shown = screen.getvalue().split("\r")
    assert shown[1].startswith("softtargets: 0 of 2 runs done, ")
    assert "0 of 2 runs done, 25 % of the work, " in shown[2]
