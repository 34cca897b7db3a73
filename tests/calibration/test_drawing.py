from __future__ import annotations

import pytest
import torch
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from softtargets.calibration import reliability
from softtargets.calibration.drawing import (
    draw_counts,
    draw_diagram,
    draw_reliability,
    draw_sweep,
    reliability_figure,
)
from softtargets.calibration.sweep import TemperatureSweep


def test_each_curve_shows_its_full_bins_and_nothing_else():
    p = torch.tensor([[0.55, 0.45], [0.95, 0.05], [0.92, 0.08], [0.75, 0.25]], dtype=torch.float64)
    curve = reliability(p, torch.tensor([0, 0, 1, 0]), bins=10)
    axes = Figure().subplots()
    draw_reliability(axes, {"hard": curve}, {"hard": "#d62728"})
    diagonal, line = axes.lines
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata()) == [0, 1]
    assert line.get_xdata().tolist() == pytest.approx([0.55, 0.75, 0.935])
    assert line.get_ydata().tolist() == pytest.approx([1, 1, 0.5])
    assert (line.get_label(), to_hex(line.get_color())) == ("hard", "#d62728")
    (points,) = axes.collections
    small, other, large = points.get_sizes().tolist()
    assert small == other < large
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("confidence", "accuracy")


def test_every_named_curve_is_drawn():
    curves = {name: reliability(torch.tensor([[0.9, 0.1]]), torch.tensor([0])) for name in ("a", "b", "c")}
    axes = Figure().subplots()
    draw_reliability(axes, curves, dict.fromkeys(curves, "black"))
    assert [line.get_label() for line in axes.lines][1:] == ["a", "b", "c"]


def some_curve():
    p = torch.tensor([[0.55, 0.45], [0.95, 0.05], [0.92, 0.08], [0.75, 0.25]], dtype=torch.float64)
    return reliability(p, torch.tensor([0, 0, 1, 0]), bins=10)


def segments(lines):
    return [[tuple(point) for point in segment] for segment in lines.get_segments()]


def test_curves_have_intervals_when_asked_for():
    axes = Figure().subplots()
    draw_reliability(axes, {"a": some_curve()}, {"a": "black"}, level=0.9)
    low, high = some_curve().accuracy_interval(0.9)
    found = segments(axes.collections[-1])
    assert [start[1] for start, _ in found] == pytest.approx([low[b].item() for b in (5, 7, 9)])
    assert [end[1] for _, end in found] == pytest.approx([high[b].item() for b in (5, 7, 9)])


def test_a_diagram_has_a_bar_and_a_gap_for_each_full_bin():
    axes = Figure().subplots()
    draw_diagram(axes, some_curve())
    bars = [(round(b.get_x(), 9), round(b.get_y(), 9), round(b.get_height(), 9)) for b in axes.patches]
    assert bars == [
        (0.5, 0, 1), (0.5, 1, -0.45),
        (0.7, 0, 1), (0.7, 1, -0.25),
        (0.9, 0, 0.5), (0.9, 0.5, 0.435),
    ]  # fmt: skip
    assert axes.texts[0].get_text() == f"ECE {100 * some_curve().expected_calibration_error:.2f} %"
    few = Figure().subplots()
    draw_diagram(few, some_curve(), fewest=2, level=None)
    assert len(few.patches) == 2
    assert len(few.collections) == 1  # the tick of the confidence, no interval


def test_the_histogram_shows_shares_mean_confidence_and_accuracy():
    axes = Figure().subplots()
    draw_counts(axes, some_curve())
    assert [bar.get_height() for bar in axes.patches] == pytest.approx([0, 0, 0, 0, 0, 0.25, 0, 0.25, 0, 0.5])
    confidence, accuracy = (line.get_xdata()[0] for line in axes.lines)
    assert (confidence, accuracy) == pytest.approx(((0.55 + 0.95 + 0.92 + 0.75) / 4, 0.75))


def test_the_figure_puts_the_histogram_beneath_the_diagram(tmp_path):
    figure = reliability_figure(some_curve())
    figure.savefig(tmp_path / "figure.png")
    above, beneath = figure.axes
    assert above.get_position().y0 > beneath.get_position().y1
    assert above.get_position().x0 == pytest.approx(beneath.get_position().x0)
    assert above.get_position().x1 == pytest.approx(beneath.get_position().x1)
    assert above.get_xlim() == beneath.get_xlim() == (0, 1)


SWEEP = TemperatureSweep(
    (2.0, 0.5, 1.0), nll=(0.7, 0.9, 0.6), ece=(0.1, 0.3, 0.2), examples=9, metrics={"BLEU": (20, 21, 22)}
)


@pytest.mark.parametrize(
    ("measure", "ordinates", "least", "label"),
    [
        ("ece", [0.3, 0.2, 0.1], (2.0, 0.1), "expected calibration error"),
        ("nll", [0.9, 0.6, 0.7], (1.0, 0.6), "negative log-likelihood (nats)"),
        ("BLEU", [21, 22, 20], (2.0, 20), "BLEU"),
    ],
)
def test_a_line_in_the_order_of_temperatures_and_a_point_at_its_least(measure, ordinates, least, label):
    axes = Figure().subplots()
    draw_sweep(axes, {"hard": SWEEP}, {"hard": "#d62728"}, measure)
    one, line = axes.lines
    assert list(one.get_xdata()) == [1, 1]
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([0.5, 1.0, 2.0], ordinates)
    assert (line.get_label(), to_hex(line.get_color())) == ("hard", "#d62728")
    (points,) = axes.collections
    assert tuple(points.get_offsets()[0]) == least
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_xscale()) == ("temperature", label, "log")


def test_every_named_sweep_is_drawn_once_in_the_legend():
    axes = Figure().subplots()
    draw_sweep(axes, {"a": SWEEP, "b": SWEEP}, dict.fromkeys("ab", "black"))
    assert axes.get_legend_handles_labels()[1] == ["a", "b"]
    assert axes.get_ylim()[0] == 0
