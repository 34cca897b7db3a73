"""What the studies' figures have in common, looked at on the axes."""

from __future__ import annotations

import pytest

from softtargets.claims import Sample
from softtargets.report.drawing import BLUE, RED
from softtargets.studies.drawing import curve, errorbars, legend, panel_rows, panels

ROWS = [
    {"p": 0.5, "loss": Sample.of([0.0, 2.0, 4.0])},
    {"p": 0.9, "loss": Sample.of([4.0])},
]


def test_bars_are_one_deviation_and_every_seed_is_a_dot():
    _, (axes,) = panels(1, width=3, height=2)
    curve(axes, ROWS, "p", "loss", BLUE, "measured", scale=10)
    (container,) = axes.containers
    assert container[0].get_xydata().tolist() == [[0.5, 20.0], [0.9, 40.0]]
    (bars,) = container[2]
    # One seed has no deviation.
    assert [segment.tolist() for segment in bars.get_segments()] == [
        [[0.5, 0.0], [0.5, 40.0]],
        [[0.9, 40.0], [0.9, 40.0]],
    ]
    dots = [point for cloud in axes.collections[:2] for point in cloud.get_offsets().tolist()]
    assert dots == [[0.5, 0.0], [0.5, 20.0], [0.5, 40.0], [0.9, 40.0]]


@pytest.mark.parametrize(("bars", "colour"), [("", BLUE), (RED, RED)])
def test_bars_have_the_colour_of_their_line_unless_told(bars, colour):
    from matplotlib.colors import to_rgba

    _, (axes,) = panels(1, width=3, height=2)
    errorbars(axes, [0.5], [ROWS[0]["loss"]], BLUE, "measured", bars=bars)
    (container,) = axes.containers
    assert tuple(container[2][0].get_color()[0]) == to_rgba(colour)


def test_one_legend_speaks_of_all_panels_it_is_given():
    drawing, ((left, right), _) = panel_rows(2, 2, width=4, height=4)
    left.plot([0, 1], label="one")
    right.plot([0, 1], label="two")
    right.plot([0, 1], label="_not this")
    legend(drawing, left, right, ncols=2)
    (shown,) = drawing.legends
    assert [text.get_text() for text in shown.get_texts()] == ["one", "two"]
    assert len(drawing.axes) == 4
