from __future__ import annotations

from softtargets.cli import page_commands


def test_where_there_is_no_terminal_long_work_says_a_line_every_half_minute(capsys):
    now = 0.0
    told = page_commands._plain_lines(lambda: now)
    for now in (1.0, 29.0, 31.0, 32.0, 60.9, 62.0):
        told("fold 1 of 5, epoch 3", int(now), 100)
    now = 100.0
    told("drawing the page", 0, 0)
    assert capsys.readouterr().err.splitlines() == [
        "fold 1 of 5, epoch 3, 31 % done",
        "fold 1 of 5, epoch 3, 62 % done",
        "drawing the page",
    ]


def test_quick_work_says_nothing(capsys):
    with page_commands.progress() as told:
        told("reading", 1, 2)
    assert capsys.readouterr() == ("", "")
