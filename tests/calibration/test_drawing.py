from __future__ import annotations

import pytest
import torch
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from softtargets.calibration import reliability
from softtargets.calibration.drawing import draw_reliability


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
