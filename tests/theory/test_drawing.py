from __future__ import annotations

import io

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from softtargets.theory import landscape, optimum_curve
from softtargets.theory.drawing import draw_landscape, draw_optimum


def test_a_landscape_has_its_losses_as_colours_and_the_best_p_as_a_line():
    found = landscape(10, "alpha", a=[0.2, 0.5, 0.8], p=[0.1, 0.4, 0.6, 0.9])
    axes = Figure().subplots()
    mesh = draw_landscape(axes, found)
    assert (np.asarray(mesh.get_array()).reshape(4, 3) == found.loss).all()
    low, high = mesh.get_clim()
    assert low == found.loss.min()
    assert (found.loss <= high).mean() == pytest.approx(0.9, abs=0.1)
    (line,) = axes.lines
    assert (list(line.get_xdata()), list(line.get_ydata())) == ([0.2, 0.5, 0.8], [0.2, 0.5, 0.8])
    assert (axes.get_xlim(), axes.get_ylim()) == ((0.2, 0.8), (0.1, 0.9))
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("clean rate a", "p")


def test_where_the_best_p_jumps_the_line_is_broken():
    found = landscape(10, "gamma")
    axes = Figure().subplots()
    draw_landscape(axes, found)
    below, above = axes.lines
    assert max(below.get_xdata()) <= found.jump < min(above.get_xdata())
    assert len(below.get_xdata()) + len(above.get_xdata()) == len(found.a)


def test_infinite_losses_can_be_drawn():
    axes = Figure().subplots()
    mesh = draw_landscape(axes, landscape(10, "alpha", a=[0.5, 1.0], p=[0.5, 1.0], limits=True))
    assert np.isfinite(mesh.get_array()).all()
    axes.figure.savefig(io.BytesIO(), format="png")


def test_a_landscape_of_one_line_is_refused():
    with pytest.raises(ValueError, match="at least two a and two p, but the landscape has 1 and 2"):
        draw_landscape(Figure().subplots(), landscape(10, "alpha", a=[0.5], p=[0.5, 0.6]))


def test_curves_have_names_and_colours_and_dots_where_they_jump():
    curves = {"beta": optimum_curve(10, "beta"), "gamma": optimum_curve(10, "gamma")}
    axes = Figure().subplots()
    draw_optimum(axes, curves, {"beta": "#0072b2", "gamma": "#d55e00"})
    assert axes.get_legend_handles_labels()[1] == ["beta", "gamma"]
    diagonal, beta, below, above, jump = axes.lines
    assert list(diagonal.get_xdata()) == list(diagonal.get_ydata()) == [0, 1]
    assert list(beta.get_ydata()) == list(curves["beta"].p)
    assert to_hex(beta.get_color()) == "#0072b2"
    assert {to_hex(line.get_color()) for line in (below, above, jump)} == {"#d55e00"}
    assert set(below.get_ydata()) == {0.1}
    assert jump.get_linestyle() == ":"
    assert list(jump.get_xdata()) == [below.get_xdata()[-1], above.get_xdata()[0]]
    assert list(jump.get_ydata()) == [below.get_ydata()[-1], above.get_ydata()[0]]
