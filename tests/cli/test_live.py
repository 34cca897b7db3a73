from __future__ import annotations

import io
import threading

import pytest
from rich.console import Console

from softtargets.cli.live import LiveView, table
from softtargets.training import Plan

from .watched import Clock, ended, recipes


@pytest.fixture
def clock() -> Clock:
    return Clock()


def terminal(width: int = 120, height: int = 30) -> Console:
    return Console(
        file=io.StringIO(), force_terminal=True, width=width, height=height, color_system="standard"
    )


def lines_of(view: LiveView) -> list[str]:
    frame = view.frame()
    return [*frame.head, *frame.lines]


def test_a_frame_says_everything_about_every_run_under_way(clock):
    first, second, third = recipes(3, batch=100)
    view = LiveView(terminal(), clock)
    view.planned(Plan(5, 1))
    view.started(first, 0, 1000)
    view.started(second, 400, 1000)
    view.started(third, 0, 1000)
    for second_of_time in range(1, 6):
        clock.wait(1)
        view.progressed(first, second_of_time * 50, 5000)
        view.progressed(second, 400 + second_of_time * 50, 5000)
    view.epoch(first, {"train_loss": 0.51234, "validation_accuracy": 0.9, "test_accuracy": 0.1})
    view.epoch(second, {"train_loss": 1.5, "test_accuracy": 0.25})
    name = "digits mlp label_smoothing 0.1 seed "
    # 750 + 350 + 1000 steps of runs under way and 1000 of one to come, 100 images each
    assert lines_of(view) == [
        "1 of 5 runs done, 1 reused, 3 under way, 1 resumed, 10,000 images/s, 0:00:05 elapsed, 0:00:31 left",
        f"run{' ' * 34}      id                    done       step    loss    accuracy   images/s     left",
        f"{name}0  {first.id[:6]}  ━━━━────────────   25%   250/1000   0.512   val 0.900      5,000  0:00:15",
        f"{name}1  {second.id[:6]}  ━━━━━━━━━━──────   65%   650/1000   1.500  test 0.250      5,000  0:00:07",
        f"{name}2  {third.id[:6]}  ────────────────    0%     0/1000                              ?        ?",
    ]


def test_runs_that_have_ended_disappear_and_failures_stay_above(tmp_path, clock):
    first, second = recipes(2)
    console = terminal()
    view = LiveView(console, clock)
    view.planned(Plan(3, 0))
    view.started(first, 0, 10)
    view.started(second, 0, 10)
    view.finished(ended(tmp_path, first))
    assert console.file.getvalue() == ""
    assert [line for line in lines_of(view) if "seed 0" in line] == []
    view.finished(ended(tmp_path, second, reason="train_loss is [nan] at step 3"))
    said = f"{second.id}  digits mlp label_smoothing 0.1 seed 1  FAILED: train_loss is [nan] at step 3\n"
    assert console.file.getvalue() == said
    assert lines_of(view) == ["2 of 3 runs done, 1 failed, ? images/s, 0:00:00 elapsed, ? left"]
    assert view.pace.laps == {}


def test_waiting_is_shown_until_something_happens(tmp_path, clock):
    first, second = recipes(2)
    view = LiveView(terminal(), clock)
    view.planned(Plan(2, 0))
    view.waiting(first)
    assert lines_of(view)[1] == "other processes are training the last 2 runs; waiting for them"
    view.finished(ended(tmp_path, first))
    assert len(lines_of(view)) == 1
    view.waiting(second)
    view.started(second, 0, 10)
    assert "waiting" not in "".join(lines_of(view))


@pytest.mark.parametrize("width", [10, 20, 40, 80, 200])
@pytest.mark.parametrize("height", [1, 2, 3, 4, 10, 66, 67, 68, 80])
def test_a_frame_never_exceeds_the_terminal_and_counts_what_it_leaves_out(width, height, clock):
    view = LiveView(terminal(width, height), clock)
    view.planned(Plan(100, 0))
    for recipe in recipes(64):
        view.started(recipe, 10, 2_000_000)
    lines = lines_of(view)
    assert len(lines) < max(height, 2)
    shown = sum("1/2" in line or "0%" in line for line in lines)
    assert all(len(line) <= width for line in lines)
    if height >= 10 and width >= 20:
        left_out = 64 - shown
        assert (lines[-1] == f"and {left_out} more") == (left_out > 0)
        assert shown > 0
    assert shown == 64 or height <= 70


@pytest.mark.parametrize(
    ("width", "columns"),
    [
        (120, ["id", "done", "step", "loss", "accuracy", "images/s", "left"]),
        (95, ["id", "done", "step", "loss", "accuracy", "images/s", "left"]),
        (80, ["done", "loss", "accuracy", "images/s", "left"]),
        (50, ["done", "left"]),
        (30, ["done"]),
    ],
)
def test_a_narrow_terminal_does_without_some_columns(width, columns, clock):
    view = LiveView(terminal(width), clock)
    view.started(recipes(1)[0], 0, 100)
    head, line = table(list(view.pace.laps.values()), width, 10)
    assert head.split() == ["run", *columns]
    assert line.startswith("digits")
    assert "seed 0 " in line


def test_ascii_terminals_get_ascii(clock):
    view = LiveView(terminal(60), clock)
    view.started(recipes(1)[0], 50, 100)
    for width in (60, 120):
        assert "".join(table(list(view.pace.laps.values()), width, 10, plain=True)).isascii()


def test_drawing_while_events_come_from_another_thread(tmp_path):
    console = terminal()
    view = LiveView(console)
    some = recipes(10)
    ends = [ended(tmp_path, recipe) for recipe in some]
    failures, frames, done = [], 0, threading.Event()

    def draw() -> None:
        nonlocal frames
        try:
            while not done.wait(1e-4):  # a pause in which the other thread gets the lock
                console.render_lines(view.frame())
                frames += 1
        except Exception as error:  # a thread would keep it to itself
            failures.append(error)

    thread = threading.Thread(target=draw)
    thread.start()
    view.planned(Plan(10, 0))
    for recipe, run in zip(some, ends, strict=True):
        view.started(recipe, 0, 100)
        for step in range(100):
            view.progressed(recipe, step, 32)
        seen = frames
        while frames < seen + 3 and not failures:
            view.progressed(recipe, 100, 32)
        view.finished(run)
    done.set()
    thread.join()
    assert failures == []


def test_the_view_draws_itself_and_leaves_nothing_behind(clock):
    console = terminal(120, 12)
    with LiveView(console, clock) as view:
        view.planned(Plan(70, 0))
        for recipe in recipes(64):
            view.started(recipe, 3, 10)
        view._live.refresh()
    drawn = console.file.getvalue()
    assert "and 56 more" in drawn
    assert "\x1b[32m━━━━\x1b[0m" in drawn
    assert drawn.endswith("\x1b[2K")
    assert len(console.render_lines(view.frame())) == 11
