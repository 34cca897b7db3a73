from __future__ import annotations

from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from softtargets.distillation import curve
from softtargets.distillation.drawing import draw_curves


def test_a_line_through_the_means_and_a_band_from_lowest_to_highest():
    axes = Figure().subplots()
    draw_curves(axes, {"M3": curve([(0.5, [0.25, 0.75]), (0.0, [0.5, 1.0])])}, {"M3": "#d62728"})
    (line,) = axes.lines
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([0, 0.5], [0.75, 0.5])
    assert (line.get_label(), to_hex(line.get_color())) == ("M3", "#d62728")
    (band,) = axes.collections
    corners = {tuple(corner) for corner in band.get_paths()[0].vertices.tolist()}
    assert corners == {(0, 0.5), (0, 1), (0.5, 0.25), (0.5, 0.75)}
    assert to_hex(band.get_facecolor()[0]) == "#d62728"
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("smoothness index gamma", "accuracy")


def test_every_named_curve_is_drawn_once_in_the_legend():
    axes = Figure().subplots()
    curves = {name: curve([(0, [1])]) for name in ("M1", "M2", "M3")}
    draw_curves(axes, curves, dict.fromkeys(curves, "black"), xlabel="alpha", ylabel="test accuracy")
    assert axes.get_legend_handles_labels()[1] == ["M1", "M2", "M3"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("alpha", "test accuracy")
