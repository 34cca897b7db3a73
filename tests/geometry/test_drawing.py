from __future__ import annotations

import warnings

import pytest
import torch
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from geometry.making import clustered
from softtargets.geometry import fair_panels, plane_view
from softtargets.geometry.drawing import common_limits, draw_panel, draw_panels, draw_plane


def test_each_class_has_its_points_its_colour_and_its_name():
    points = torch.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]])
    axes = Figure().subplots()
    draw_plane(axes, points, torch.tensor([7, 1, 7, 3]), {7: "cat", 1: "dog"}, {7: "#111111", 1: "#222222"})
    cats, dogs = axes.collections
    assert cats.get_offsets().tolist() == [[0, 1], [4, 5]]
    assert dogs.get_offsets().tolist() == [[2, 3]]
    assert [part.get_label() for part in axes.collections] == ["cat", "dog"]
    assert [to_hex(part.get_facecolor()[0]) for part in axes.collections] == ["#111111", "#222222"]


def test_the_old_name_of_the_limits_is_kept():
    assert common_limits([torch.tensor([[0.0, 0.0], [2.0, 2.0]])], margin=0) == ((0, 2), (0, 2))


def views(names=("a", "b", "c"), splits=("training", "held out")):
    values, labels, weights = clustered(examples=60)
    named = dict(zip((0, 1, 2), names, strict=True))
    return [
        plane_view(scale * values, labels, weights, [0, 1, 2], names=named, net=net, split=split, most=5)
        for net, scale in (("hard", 9.0), ("smooth", 1.0))
        for split in splits
    ]


def test_a_panel_shows_points_means_and_templates_where_they_are():
    (panel, *_) = fair_panels(views())
    axes = Figure().subplots()
    draw_panel(axes, panel)
    for c, part in enumerate(axes.collections):
        assert part.get_offsets().tolist() == panel.view.points[panel.view.labels == c].tolist()
    outline, templates, centres = (line.get_xydata().tolist() for line in axes.lines)
    assert templates == panel.view.templates.tolist()
    assert outline == [*templates, templates[0]]
    assert centres == panel.view.centres.tolist()
    assert (axes.get_xlim(), axes.get_ylim()) == panel.limits
    assert axes.get_aspect() == 1
    assert axes.get_title() == "hard, training"
    assert f"spread {panel.view.measures.spread:.2f}" in axes.get_xlabel()
    assert f"one unit is {panel.unit:.3g}" in axes.get_xlabel()


@pytest.mark.parametrize("units", ["centres", "templates", "activations"])
def test_four_panels_side_by_side(units):
    figure = Figure(figsize=(10.4, 3.3), layout="constrained")
    drawn = draw_panels(figure, views(), units=units)
    assert [axes.get_title() for axes in figure.axes] == [
        "hard, training",
        "hard, held out",
        "smooth, training",
        "smooth, held out",
    ]
    assert [(axes.get_xlim(), axes.get_ylim()) for axes in figure.axes] == [panel.limits for panel in drawn]
    expected = fair_panels(views(), units)
    assert [panel.unit for panel in drawn] == [panel.unit for panel in expected]
    figure.canvas.draw()
    boxes = [axes.get_window_extent() for axes in figure.axes]
    assert len({(round(box.width, 3), round(box.height, 3)) for box in boxes}) == 1
    assert len({round(box.y0, 3) for box in boxes}) == 1


def test_more_panels_make_more_rows_with_a_legend_each():
    figure = Figure(layout="constrained")
    draw_panels(figure, [*views(), *views()][:6], columns=4)
    assert len(figure.axes) == 8
    assert [axes.axison for axes in figure.axes] == [True] * 6 + [False] * 2
    legends = [axes.get_legend() is not None for axes in figure.axes]
    assert legends == [True, False, False, False, True, False, False, False]
    with pytest.raises(ValueError, match="columns must be at least 1, not 0"):
        draw_panels(Figure(), views(), columns=0)


@pytest.mark.parametrize("name", ["$x$", "_the", "\\alpha", "$", "a_b^c", "<s>"])
def test_tokens_are_shown_as_they_are(name):
    figure = Figure(layout="constrained")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        draw_panels(figure, views(names=(name, "b", "c")))
        figure.canvas.draw()
    first = figure.axes[0].get_legend().get_texts()[0]
    shown, is_formula = first._preprocess_math(first.get_text())
    assert shown.strip() == name
    assert not is_formula


def test_tensors_with_a_gradient_can_be_drawn():
    axes = Figure().subplots()
    points = torch.zeros(2, 2, requires_grad=True)
    draw_plane(axes, points.bfloat16(), torch.tensor([0, 0]), {0: "a"}, {0: "#111111"})
    assert axes.collections[0].get_offsets().tolist() == [[0, 0], [0, 0]]
