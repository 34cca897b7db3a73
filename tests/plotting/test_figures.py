"""Figures: what is drawn is what was measured, on the axes that were given, with pyplot left alone."""

import subprocess
import sys

import matplotlib
import numpy as np
import pytest
import torch

matplotlib.use("Agg")
from matplotlib import pyplot
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from softtargets import calibration, distillation, geometry, selection
from softtargets.plotting import (
    distillation_curves,
    reliability_diagram,
    risk_coverage,
    temperature_sweep,
    template_plane,
)
from softtargets.plotting.look import ON_DARK, ON_LIGHT


def made(factor=2.0, examples=800, classes=5, seed=0):
    random = torch.Generator().manual_seed(seed)
    z = 2 * torch.randn(examples, classes, generator=random)
    y = torch.multinomial(z.softmax(1), 1, generator=random).squeeze(1)
    return factor * z, y


def on_a_plane():
    random = torch.Generator().manual_seed(1)
    templates = torch.randn(3, 8, generator=random)
    labels = torch.arange(3).repeat_interleave(20)
    return 3 * templates[labels] + 0.3 * torch.randn(60, 8, generator=random), labels, templates


CURVES = {"teacher": {0.0: [0.9, 0.91], 0.2: [0.92, 0.93]}, "student": [(0.0, [0.8]), (0.2, [0.85, 0.87])]}
Z, Y = made()
DRAWN = {
    "reliability": lambda **o: reliability_diagram(Z, Y, **o),
    "reliabilities": lambda **o: reliability_diagram({"a": Z, "b": (Z / 2, Y)}, Y, **o),
    "coverage": lambda **o: risk_coverage(Z, Y, **o),
    "sweep": lambda **o: temperature_sweep(Z, Y, **o),
    "plane": lambda **o: template_plane(*on_a_plane(), **o),
    "distillation": lambda **o: distillation_curves(CURVES, **o),
}


def axes():
    return Figure().subplots()


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
def test_axes_that_are_given_come_back_and_pyplot_stays_alone(draw, monkeypatch):
    ax, settings = axes(), dict(matplotlib.rcParams)
    for name in ("subplots", "figure", "gca", "gcf"):
        monkeypatch.setattr(pyplot, name, lambda *_, **__: pytest.fail("pyplot was touched"))
    assert draw(ax=ax) is ax
    assert dict(matplotlib.rcParams) == settings
    assert ax.get_xlabel()
    assert ax.get_legend() is not None
    assert all(text.get_text() for text in ax.get_legend().get_texts())
    ax.figure.savefig("/dev/null", format="png")


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
def test_without_axes_there_is_a_new_figure(draw):
    before = set(pyplot.get_fignums())
    ax = draw(title="What $1 buys")
    (number,) = set(pyplot.get_fignums()) - before
    assert ax.figure.number == number
    assert ax.get_title(loc="left") == r"What \$1 buys"
    ax.figure.savefig("/dev/null", format="png")
    pyplot.close(ax.figure)


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
def test_dark_axes_have_light_words_and_other_axes_of_the_figure_stay(draw):
    figure = Figure()
    ax, other = figure.subplots(1, 2)
    draw(ax=ax, dark=True)
    paper = np.mean(to_rgb(ax.get_facecolor()))
    words = [ax.xaxis.label, ax.yaxis.label, *ax.get_legend().get_texts(), *ax.get_xticklabels()]
    assert all(np.mean(to_rgb(word.get_color())) - paper > 0.5 for word in words)
    assert other.get_facecolor() == Figure().subplots().get_facecolor()
    assert figure.get_facecolor() == Figure().get_facecolor()


def test_a_dark_style_of_the_users_is_noticed():
    with matplotlib.style.context("dark_background"):
        ax = Figure().subplots()
        reliability_diagram({"a": Z, "b": Z / 2}, Y, ax=ax)
    assert [line.get_color() for line in ax.lines[1:3]] == list(ON_DARK[:2])


def test_bars_are_the_accuracies_of_bins():
    ax = reliability_diagram(Z, Y, ax=axes(), bins=10)
    found = calibration.reliability(Z.softmax(1), Y, bins=10)
    full = found.counts > 0
    bars = [bar for bar in ax.patches if bar.get_facecolor()[:3] == to_rgb(ON_LIGHT[0])]
    assert [bar.get_height() for bar in bars] == pytest.approx(found.accuracy[full].tolist(), abs=1e-6)
    assert ax.texts[0].get_text() == f"ECE {100 * found.expected_calibration_error:.2f} %"


def test_arrays_and_what_was_measured_give_the_same_picture():
    p = Z.softmax(1)
    whole = calibration.measure_calibration(p, Y, from_logits=False, level=None)
    drawn = [
        reliability_diagram({"x": one, "y": one}, Y, ax=axes()).lines[1].get_ydata()
        for one in (p, p.numpy(), Z, whole, whole.reliability, calibration.reliability(p, Y))
    ]
    for other in drawn[1:]:
        assert other == pytest.approx(drawn[0], abs=1e-6)


def test_one_column_is_the_second_of_two_classes():
    p = torch.tensor([0.1, 0.9, 0.6, 0.3])
    y = torch.tensor([0, 1, 0, 1])
    both = reliability_diagram({"a": torch.stack([1 - p, p], 1), "b": p, "c": p[:, None]}, y, ax=axes())
    assert both.lines[1].get_ydata() == pytest.approx(both.lines[2].get_ydata())
    assert both.lines[1].get_ydata() == pytest.approx(both.lines[3].get_ydata())


@pytest.mark.parametrize("draw", DRAWN.values(), ids=DRAWN)
def test_axes_that_cannot_be_drawn_on_are_refused(draw):
    for ax, kind in ((Figure().subplots(1, 2), "ndarray"), (Figure(), "Figure")):
        with pytest.raises(TypeError, match=f"ax must be one axes of matplotlib.* not {kind}"):
            draw(ax=ax)
    for projection in ("3d", "polar"):
        with pytest.raises(ValueError, match=f"not those of projection='{projection}'"):
            draw(ax=Figure().add_subplot(projection=projection))


def test_lines_of_a_coverage_are_error_rates():
    curve = selection.measure_selection(Z, Y, from_logits=True).curve
    ax = risk_coverage(Z, Y, ax=axes())
    x, y = ax.lines[0].get_data()
    assert y[-1] == pytest.approx(1 - curve.accuracy)
    half = int(np.flatnonzero(np.isclose(x, 0.5))[0])
    assert y[half] == pytest.approx(1 - curve.accuracy_at(0.5))
    assert f"AURC {curve.aurc:.3g}" in ax.get_legend().get_texts()[0].get_text()
    least = ax.lines[1].get_ydata()
    assert (least <= y + 1e-12).all()
    assert len(risk_coverage({"a": curve, "b": Z / 2}, Y, ax=axes()).lines) == 2
    assert len(risk_coverage(curve, ax=axes(), best=False).lines) == 1


def test_a_sweep_of_probabilities_is_that_of_their_logarithms():
    of_logits = temperature_sweep(Z, Y, ax=axes()).lines[1].get_ydata()
    of_probabilities = temperature_sweep(Z.double().softmax(1), Y, ax=axes()).lines[1].get_ydata()
    assert of_probabilities == pytest.approx(of_logits, abs=2e-3)
    ready = calibration.temperature_sweep(Z, Y, temperatures=[0.5, 1.0, 2.0])
    ax = temperature_sweep(ready, ax=axes(), measure="nll")
    assert ax.lines[1].get_ydata() == pytest.approx(ready.nll)
    assert "lowest at T = 2" in ax.get_legend().get_texts()[0].get_text()


def test_points_on_the_plane_are_those_of_the_view():
    activations, labels, templates = on_a_plane()
    view = geometry.plane_view(activations, labels, templates, [0, 1, 2], names=["a", "b", "c"])
    one = template_plane(
        activations.numpy(), labels.numpy(), templates.numpy(), ax=axes(), names=["a", "b", "c"]
    )
    other = template_plane(view, ax=axes())
    for mine, theirs in zip(one.collections, other.collections, strict=True):
        assert np.asarray(mine.get_offsets()) == pytest.approx(np.asarray(theirs.get_offsets()))
    shown = [text.get_text() for text in one.get_legend().get_texts()]
    assert shown[:3] == ["a", "b", "c"]
    assert shown[-1] == "class mean"


def test_a_curve_of_one_seed_may_have_plain_numbers():
    ax = distillation_curves({"student": {0.0: 0.9, 0.1: 0.92}}, ax=axes())
    assert list(ax.lines[0].get_ydata()) == [0.9, 0.92]


def test_curves_of_distillation_are_means_over_seeds():
    ax = distillation_curves(
        {**CURVES, "ready": distillation.curve([(0.1, [0.5])]), "_x": {0: [1]}}, ax=axes()
    )
    assert [line.get_ydata().tolist() for line in map(_as_array, ax.lines[:3])] == [
        pytest.approx([0.905, 0.925]),
        pytest.approx([0.8, 0.86]),
        pytest.approx([0.5]),
    ]
    assert len(ax.get_legend().get_texts()) == 4


def _as_array(line):
    line.set_ydata(np.asarray(line.get_ydata(), dtype=float))
    return line


def test_what_is_wrong_is_said():
    with pytest.raises(ValueError, match="labels are missing: give scores and labels, or a Reliability"):
        reliability_diagram(Z, ax=axes())
    with pytest.raises(ValueError, match="mapping of names to data is empty"):
        risk_coverage({}, ax=axes())
    with pytest.raises(ValueError, match="weights of the last layer"):
        template_plane(Z, Y, ax=axes())
    with pytest.raises(ValueError, match="mapping from names to curves"):
        distillation_curves([0.1, 0.2], ax=axes())
    with pytest.raises(ValueError, match="do not add up to 1"):
        reliability_diagram(Z.softmax(1) / 2, Y, ax=axes())


def test_it_works_without_a_display():
    script = (
        "from softtargets.plotting import risk_coverage\n"
        "ax = risk_coverage([[0.9, 0.1], [0.4, 0.6]], [0, 1])\n"
        "ax.figure.savefig('/dev/null', format='png')"
    )
    import os

    clean = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "WAYLAND_DISPLAY", "MPLBACKEND")}
    subprocess.run([sys.executable, "-c", script], check=True, env=clean)


@pytest.mark.parametrize("draw", [reliability_diagram, risk_coverage, temperature_sweep])
def test_labels_that_do_not_count_are_left_out(draw):
    labels = Y.clone()
    labels[::3] = -100
    counted = labels != -100
    found = draw(Z, labels, ax=axes(), ignore_index=-100)
    alone = draw(Z[counted], Y[counted], ax=axes())
    assert len(found.lines) == len(alone.lines) > 0
    for one, other in zip(found.lines, alone.lines, strict=True):
        np.testing.assert_array_equal(one.get_xydata(), other.get_xydata())
    with pytest.raises(ValueError, match="left out by ignore_index"):
        draw(Z, labels, ax=axes())
    with pytest.raises(ValueError, match="every label is -100"):
        draw(Z, torch.full_like(Y, -100), ax=axes(), ignore_index=-100)
