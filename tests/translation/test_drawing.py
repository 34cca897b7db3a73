"""Pictures show the numbers they were given."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from softtargets.calibration import TemperatureSweep, measure_confidences
from softtargets.translation import chosen_token_probabilities
from softtargets.translation.drawing import draw_chosen, draw_temperatures, draw_token_reliability


@pytest.fixture
def axes():
    return Figure(layout="constrained").subplots()


def test_reliability(axes):
    generator = np.random.default_rng(0)
    p = generator.random(4000)
    right = generator.random(4000) < p**1.5
    curve = measure_confidences(p, right, level=None).reliability
    assert draw_token_reliability(axes, {"hard $x$": curve}, {"hard $x$": "C0"}) is axes
    label = axes.get_legend().get_texts()[0].get_text()
    assert f"ECE {100 * curve.expected_calibration_error:.1f} %" in label
    x, y = axes.lines[1].get_data()
    assert x == pytest.approx(curve.confidence.numpy())
    assert y == pytest.approx(curve.accuracy.numpy())


@pytest.mark.parametrize(("measure", "best"), [("ece", 1.0), ("nll", 0.5)])
def test_temperatures(axes, measure, best):
    sweep = TemperatureSweep((0.5, 1.0, 2.0), nll=(1.1, 1.4, 1.5), ece=(0.2, 0.1, 0.15), examples=9)
    bleu = {2.0: 28.5, 0.5: 27.0, 1.0: 28.0}
    left, right = draw_temperatures(axes, sweep, bleu, measure)
    assert left.lines[1].get_xydata().tolist() == [[0.5, 27.0], [1.0, 28.0], [2.0, 28.5]]
    assert left.lines[2].get_xydata().tolist() == [[2.0, 28.5]]
    factor = 100 if measure == "ece" else 1
    assert right.lines[0].get_ydata() == pytest.approx([factor * v for v in sweep.values(measure)])
    assert right.lines[1].get_xdata() == [best]
    with pytest.raises(ValueError, match="measure must be one of ece, nll, not 'brier'"):
        draw_temperatures(axes, sweep, bleu, "brier")


def test_chosen(axes):
    one = chosen_token_probabilities([np.log([0.42, 0.43, 0.9]).tolist()])
    other = chosen_token_probabilities([np.log([0.99, 0.97, 0.3]).tolist()])
    assert draw_chosen(axes, {"most": one, "least": other}, {"most": "C0", "least": "C1"}) is axes
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [
        "most (mode 0.425)",
        "least (mode 0.975)",
    ]
    assert axes.patches[0].get_data().values.tolist() == pytest.approx((100 * one.shares).tolist())
