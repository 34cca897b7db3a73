from __future__ import annotations

import io
import os
import sys

import pytest

from softtargets.cli.console import PlainLines, console_watcher, describe, overview, watching
from softtargets.cli.live import LiveView
from softtargets.exceptions import SofttargetsError
from softtargets.training import Plan

from .watched import Clock, ended, recipes


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_one_line_per_finished_run(capsys, tmp_path, clock):
    first, second, third = recipes(3)
    with PlainLines(clock) as lines:
        lines.planned(Plan(4, 1))
        for recipe in (first, second):
            lines.started(recipe, 0, 100)
        lines.finished(ended(tmp_path, first))
        lines.finished(ended(tmp_path, second, reason="train_loss is nan at step 7"))
        lines.finished(ended(tmp_path, third))  # by another process
    assert capsys.readouterr().err.splitlines() == [
        "4 runs, 1 already finished",
        f"[2/4] {first.id}  {describe(first)}  loss 0.500 val 0.750 test 0.700  1.2 s",
        f"[3/4] {second.id}  {describe(second)}  FAILED: train_loss is nan at step 7  1.2 s",
        f"[4/4] {third.id}  {describe(third)}  loss 0.500 val 0.750 test 0.700  1.2 s",
    ]


def test_a_resumed_run_and_a_wait_are_said(capsys, clock):
    first, second = recipes(2)
    lines = PlainLines(clock)
    lines.started(first, 30, 100)
    for _ in range(3):  # each time that one of them is done, until something is trained here again
        lines.waiting(second)
    assert capsys.readouterr().err.splitlines() == [
        f"{first.id}  resumed at step 30 of 100",
        "other processes are training the last run; waiting for them",
    ]


def test_a_long_pack_gets_one_line_every_ten_seconds(capsys, clock):
    pack = recipes(8, batch=100)
    lines = PlainLines(clock)
    lines.planned(Plan(10, 0))
    for recipe in pack:
        lines.started(recipe, 0, 1000)
    for second in range(1, 36):
        clock.wait(1)
        for recipe in pack:
            lines.progressed(recipe, second * 10, 1000)
            lines.epoch(recipe, {"train_loss": 1.0, "step": second * 10})
    said = capsys.readouterr().err.splitlines()[1:]
    assert len(said) == 3
    assert said[0].startswith("0 of 10 runs done, 8 under way, ")
    assert said[0].endswith(" left")
    clock.wait(0.1)
    # 8000 images a second; 650 of 1000 steps are left of 8 runs and all of 2
    assert "7,9" in overview(lines.pace) or "8,0" in overview(lines.pace)
    assert lines.pace.seconds_left() == pytest.approx((8 * 65_000 + 2 * 100_000) / 8000, rel=0.02)


def test_the_line_of_a_single_run_says_how_it_is_getting_on(capsys, clock):
    (recipe,) = recipes(1)
    lines = PlainLines(clock)
    lines.planned(Plan(1, 0))
    lines.started(recipe, 0, 200)
    for step in range(10, 120, 10):
        clock.wait(1)
        lines.progressed(recipe, step, 1280)
        lines.epoch(recipe, {"train_loss": 1.25, "test_accuracy": 0.5, "step": step})
    assert capsys.readouterr().err.splitlines()[1:] == [
        "0 of 1 run done, 1 under way, 1,280 images/s, 0:00:10 elapsed, 0:00:10 left  "
        "(step 100 of 200  loss 1.250 test 0.500)"
    ]


def test_nothing_is_remembered_of_runs_that_have_ended(tmp_path, clock):
    lines = PlainLines(clock)
    lines.planned(Plan(20, 0))
    for recipe in recipes(20):
        lines.started(recipe, 0, 10)
        lines.epoch(recipe, {"train_loss": 1.0})
        lines.finished(ended(tmp_path, recipe))
        lines.epoch(recipe, {"train_loss": 1.0})
    assert lines.pace.laps == {}


def test_the_speed_of_others_counts_from_when_we_began(tmp_path, clock):
    before, after = recipes(2)
    lines = PlainLines(clock)
    lines.planned(Plan(5, 0))
    clock.wait(10)
    lines.finished(ended(tmp_path, before, started="2020-01-01T00:00:00+00:00"))
    assert lines.pace.units_per_second() is None
    lines.finished(ended(tmp_path, after, started="9999-01-01T00:00:00+00:00"))
    assert lines.pace.units_per_second() == 100


def test_overview_from_beginning_to_end(tmp_path, clock):
    first, second = recipes(2)
    lines = PlainLines(clock)
    assert overview(lines.pace) == "preparing, 0:00:00 elapsed"
    lines.planned(Plan(5, 3))
    lines.started(first, 5, 10)
    said = "3 of 5 runs done, 3 reused, 1 under way, 1 resumed, ? images/s, 0:00:00 elapsed, ? left"
    assert overview(lines.pace) == said
    clock.wait(3600)
    lines.finished(ended(tmp_path, first, reason="diverged"))
    lines.finished(ended(tmp_path, second))
    assert overview(lines.pace) == "5 of 5 runs done, 3 reused, 1 failed, 1 resumed, 1:00:00 elapsed"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "term", "kind"),
    [(Terminal, "xterm", LiveView), (Terminal, "dumb", PlainLines), (io.StringIO, "xterm", PlainLines)],
)
def test_the_watcher_suits_standard_error(stream, term, kind, monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream())
    monkeypatch.setenv("TERM", term)
    for name in ("TTY_COMPATIBLE", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    assert type(console_watcher()) is kind


def test_tensorboard_is_asked_for_by_its_directory(tmp_path, monkeypatch, capsys):
    import softtargets.training as module

    heard = []

    class Fake(module.TensorBoard):
        def __init__(self, directory: os.PathLike[str]) -> None:
            heard.append(directory)

        def close(self) -> None:
            heard.append("closed")

        def planned(self, plan: Plan) -> None:
            heard.append(plan)

    monkeypatch.setattr(module, "TensorBoard", Fake)
    with watching() as watcher:
        watcher.planned(Plan(1, 0))
    assert heard == []
    with watching(tmp_path) as watcher:
        watcher.planned(Plan(2, 0))
    assert heard == [tmp_path, Plan(2, 0), "closed"]
    assert capsys.readouterr().err.splitlines() == [
        f"{runs}, 0 already finished" for runs in ("1 run", "2 runs")
    ]


def test_a_refusal_of_tensorboard_comes_before_anything_is_shown(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    with pytest.raises(SofttargetsError), watching(tmp_path / "file"):
        pass
    assert capsys.readouterr().err == ""


def test_work_is_counted_in_the_unit_of_the_data(clock, monkeypatch):
    lines, (first, second) = PlainLines(clock), recipes(2)
    lines.planned(Plan(runs=2, reused=0))
    lines.started(first, 0, 10)
    assert "images/s" in overview(lines.pace)
    monkeypatch.setattr(type(second.data), "unit", "tokens")
    lines.started(second, 0, 10)
    assert "units/s" in overview(lines.pace)
