"""Charts: what the widget is given, and the picture of the same, looked at on its axes."""

from __future__ import annotations

import pytest

from softtargets.claims import Sample
from softtargets.report import Curve, Map, Panel, lines, maps
from softtargets.report.charts import draw_lines, draw_maps
from softtargets.report.drawing import BLUE, RED
from softtargets.report.widgets import check_widget

SAMPLES = [Sample.of([0.0, 2.0, 4.0]), Sample.of([4.0]), Sample(())]
MEASURED = Curve.of("measured", BLUE, [0.5, 0.9, 1.0], SAMPLES, scale=10)
THEORY = Curve("theory", RED, [0.0, 1.0], [1.0, 2.0], line="dashed")
PANEL = Panel("Loss", "p", "loss, nats", (MEASURED, THEORY), limits=(0, 50))
PLANE = Map("Map", "a", "p", [0.1, 0.2, 0.3], [0.5, 0.6], [[0.0, 1.0, None], [2.0, 3.0, 4.0]], 0.0, 3.0)


def test_bars_are_one_deviation_and_every_seed_is_a_dot():
    assert MEASURED.y == [20.0, 40.0, None]
    assert (MEASURED.low, MEASURED.high) == (
        [0.0, 40.0, None],
        [40.0, 40.0, None],
    )  # one seed has no deviation
    assert MEASURED.dots == [[0.0, 20.0, 40.0], [40.0], []]


def test_the_picture_shows_what_the_widget_is_given():
    drawing = draw_lines([PANEL])
    (axes,) = drawing.axes
    (container,) = axes.containers
    assert container[0].get_xydata()[:2].tolist() == [[0.5, 20.0], [0.9, 40.0]]
    assert [segment.tolist() for segment in container[2][0].get_segments()][:2] == [
        [[0.5, 0.0], [0.5, 40.0]],
        [[0.9, 40.0], [0.9, 40.0]],
    ]
    assert axes.get_ylim() == (0, 50)
    assert [text.get_text() for text in drawing.legends[0].get_texts()] == ["theory", "measured"]


def test_curves_of_a_group_have_one_entry_in_the_legend():
    curves = [Curve(name, BLUE, [0.0], [1.0], group="a = 0.5") for name in ("measured", "predicted")]
    (legend,) = draw_lines([Panel("", "", "", curves), Panel("", "", "", curves)]).legends
    assert [text.get_text() for text in legend.get_texts()] == ["a = 0.5"]


def test_a_line_without_points_has_a_band():
    (axes,) = draw_lines([Panel("", "", "", [Curve("mean", BLUE, [0, 1], [1, 2], [0, 1], [2, 3])])]).axes
    assert len(axes.collections) == 1
    assert not axes.containers


def test_a_map_shows_its_values_and_its_scale():
    drawing = draw_maps([PLANE])
    image = drawing.axes[0].images[0]
    assert image.get_array().tolist()[1] == [2.0, 3.0, 4.0]
    assert image.get_clim() == (0.0, 3.0)


@pytest.mark.parametrize(
    "figure",
    [
        lines("l", "t", [PANEL], [{"p": 0.5}]),
        maps("m", "t", [PLANE], [{"a": 0.1}]),
    ],
)
def test_a_figure_has_its_widget_and_its_picture(figure):
    check_widget(figure.widget)
    assert figure.draw() is not None


@pytest.mark.parametrize(
    ("figure", "complaint"),
    [
        (
            lines("l", "t", [Panel("", "", "", [Curve("c", BLUE, [0.0, 1.0], [1.0])])], []),
            r"curves\[0\], needs as many 'y' as 'x', 2",
        ),
        (
            maps("m", "t", [Map("", "", "", [0.1], [0.5], [[1.0]], 1.0, 1.0)], []),
            "colours from a lower to a higher end",
        ),
        (
            maps("m", "t", [Map("", "", "", [0.1], [0.5], [[1.0, 2.0]], 0.0, 1.0)], []),
            "a list of 1 for 'values'",
        ),
    ],
)
def test_what_a_script_could_not_draw_is_refused(figure, complaint):
    with pytest.raises(ValueError, match=complaint):
        check_widget(figure.widget)
