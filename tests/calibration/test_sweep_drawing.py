from __future__ import annotations

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from softtargets.calibration.sweep import TemperatureSweep
from softtargets.calibration.sweep_drawing import draw_sweep

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
