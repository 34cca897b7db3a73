from __future__ import annotations

import itertools

import pytest

from bench.looking import ink, texts
from bench.scale.making import made_up, store
from benchmarks.scale import BENCH
from benchmarks.scale.drawing import APART, draw_scale, drawings
from benchmarks.scale.results import EACH, WHOLE
from softtargets.report.drawing import house_style


def test_curves_for_each_for_all_and_of_processes():
    with house_style():
        drawing = draw_scale(made_up())
        assert ink(drawing) > 0.02
    each, whole, competing = drawing.axes
    assert (len(each.lines), len(whole.lines), len(competing.lines)) == (len(EACH), len(WHOLE), 2)
    assert "find a run 200 ms" in texts(each)
    assert "runs list 50.0 ms" in texts(whole)
    assert (each.get_xscale(), each.get_yscale()) == ("log", "log")
    assert texts(competing) == ["claims given back", "runs finished"]


def test_labels_lie_apart_and_inside_their_panel():
    with house_style():
        drawing = draw_scale(made_up())
    drawing.draw_without_rendering()
    for axes in drawing.axes[:2]:
        box = axes.get_window_extent()
        heights = sorted((axes.transData.transform(text.xy)[1] - box.y0) / box.height for text in axes.texts)
        assert heights[0] >= 0
        assert heights[-1] <= 1
        assert min(b - a for a, b in itertools.pairwise(heights)) == pytest.approx(APART, abs=2e-3)
        assert all(text.get_window_extent().x1 <= box.x1 + 2 for text in axes.texts)


def test_what_was_not_measured_on_the_largest_store_says_on_which():
    results = BENCH.results().keeping(store(10, [("find", 0.1), ("claim", 0.2)]))
    with house_style():
        (axes,) = draw_scale(results.keeping(store(1000, [("find", 0.1)]))).axes
    assert texts(axes) == ["find a run 50.0 ms", "claim and give back 100 ms with 10"]


def test_where_little_was_measured_little_is_drawn():
    assert drawings(BENCH.results()) == {}
    with house_style():
        drawing = draw_scale(BENCH.results().keeping(store(10, [("find", 0.1)])))
        assert ink(drawing) > 0
    assert len(drawing.axes) == 1
