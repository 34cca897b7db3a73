from __future__ import annotations

import math

import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from softtargets.information import Evolution, EvolutionBand, band
from softtargets.information.drawing import draw_evolution

HARD = Evolution((10, 20), (2.0, 1.0), (0.25, 0.5), math.log(600))
SOFT = Evolution((10, 20), (3.0, 0.5), (0.25, 0.5), math.log(600))


def drawn(**curves):
    axes = Figure().subplots()
    draw_evolution(axes, curves, dict.fromkeys(curves, "#d62728"))
    return axes


def curves_of(axes):
    return [line for line in axes.lines if line.get_linestyle() == "-"]


def heights_of(axes):
    return [line.get_ydata()[0] for line in axes.lines if line.get_linestyle() == "--"]


def corners_of(axes):
    (filled,) = axes.collections
    assert to_hex(filled.get_facecolor()[0]) == "#d62728"
    return {tuple(corner) for corner in filled.get_paths()[0].vertices.tolist()}


def test_one_training_is_a_line_with_one_standard_error_around_it():
    axes = drawn(hard=HARD)
    (line,) = curves_of(axes)
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([10, 20], [2, 1])
    assert (line.get_label(), to_hex(line.get_color())) == ("hard", "#d62728")
    assert corners_of(axes) == {(10, 1.75), (10, 2.25), (20, 0.5), (20, 1.5)}
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("training step", "mutual information, nats")


def test_several_trainings_are_their_mean_with_a_band_from_lowest_to_highest():
    axes = drawn(seeds=band([HARD, SOFT]))
    (line,) = curves_of(axes)
    assert list(line.get_ydata()) == [2.5, 0.75]
    assert corners_of(axes) == {(10, 2), (10, 3), (20, 0.5), (20, 1)}


def test_lines_say_what_two_clusters_and_all_examples_would_be():
    axes = drawn(hard=HARD, soft=SOFT)
    assert heights_of(axes) == pytest.approx([math.log(2), math.log(600)])
    assert [text.get_text() for text in axes.texts] == ["log 2", "log 600"]
    assert -0.5 < axes.get_ylim()[0] <= 0
    assert axes.get_ylim()[1] > math.log(600)
    assert axes.get_legend_handles_labels()[1] == ["hard", "soft"]


def test_every_number_of_examples_has_its_line_once():
    few = EvolutionBand((10,), (1,), (0.1,), (0.2,), (0.3,), math.log(20))
    assert heights_of(drawn(hard=HARD, few=few)) == pytest.approx([math.log(n) for n in (2, 20, 600)])
    two = Evolution((10,), (0.1,), (0.1,), math.log(2))
    assert heights_of(drawn(two=two)) == [math.log(2)]


def test_heights_begin_at_0():
    assert drawn(high=Evolution((10, 20), (2.0, 3.0), (0.1, 0.1), math.log(600))).get_ylim()[0] == 0


def test_estimates_below_0_are_not_cut_off():
    assert drawn(none=Evolution((10,), (-0.5,), (0.25,), math.log(20))).get_ylim()[0] < -0.75
