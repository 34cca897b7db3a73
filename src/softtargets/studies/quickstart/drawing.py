"""The quickstart's pictures, drawn from the rows of `figures`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from torch import Tensor

from softtargets.calibration import Reliability
from softtargets.calibration.drawing import draw_reliability
from softtargets.geometry.drawing import common_limits, draw_plane
from softtargets.report.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, Drawing, plain
from softtargets.studies.drawing import errorbars, legend, panels
from softtargets.studies.quickstart.grid import ALPHAS, PLANE, TEACHER_ALPHAS, TEMPERATURES
from softtargets.studies.results import Row, matching

# Bins with fewer predictions than this are left out of the diagram: their accuracy is mostly chance.
FEWEST = 10
_KINDS = dict(zip(TEACHER_ALPHAS, (("hard targets", RED), ("smoothing 0.1", BLUE)), strict=True))
_errorbars = partial(errorbars, bars=GREY)


def draw_sweep(rows: Sequence[Row]) -> Drawing:
    """Accuracy and calibration error over alpha, both before and after a temperature."""
    drawing, (left, right) = panels(2, width=8.6, height=3.1)
    positions = range(len(ALPHAS))
    _errorbars(left, positions, [row["accuracy"] for row in rows], BLUE, "test accuracy", scale=100)
    left.set(title="Accuracy", ylabel="test accuracy, %")
    _errorbars(right, positions, [row["ece"] for row in rows], RED, "as trained (T = 1)")
    _errorbars(right, positions, [row["ece_scaled"] for row in rows], GREEN, "after temperature scaling")
    right.set(title="Calibration", ylabel="expected calibration error")
    right.set_ylim(bottom=0)
    right.legend(loc="upper left")
    for axes in (left, right):
        axes.set_xticks(list(positions), [f"{alpha:g}" for alpha in ALPHAS])
        axes.set_xlabel("label smoothing alpha")
    return drawing


def draw_reliabilities(curves: Mapping[str, Reliability]) -> Drawing:
    """Reliability diagrams beside how often each confidence occurs."""
    colours = dict(zip(curves, (RED, GREEN, BLUE, PURPLE), strict=False))
    drawing, (left, right) = panels(2, width=8.6, height=3.9)
    draw_reliability(left, curves, colours, fewest=FEWEST)
    left.set_title("Reliability diagram, 15 bins")
    for index, (name, curve) in enumerate(curves.items()):
        width = float(curve.edges[1] - curve.edges[0]) / (len(curves) + 0.6)
        x = (curve.edges[:-1] + (index + 0.5) * width).numpy()
        shares = (100 * curve.counts / curve.counts.sum()).numpy()
        right.bar(x, shares, width=width, color=colours[name], align="edge")
    right.set(title="How often each confidence occurs", xlabel="confidence", ylabel="predictions, %")
    right.set_xlim(0, 1.02)
    legend(drawing, left, ncols=2)
    return drawing


def draw_planes(clouds: Mapping[tuple[float, str], tuple[Tensor, Tensor]]) -> Drawing:
    """A panel for each alpha and split; the panels of one model share their scale."""
    names = {label: plain(f"digit {label}") for label in PLANE}
    colours = dict(zip(PLANE, (BLUE, ORANGE, PURPLE), strict=True))
    drawing, axes = panels(4, width=10.4, height=3.0)
    for panel, ((alpha, split), (points, labels)) in zip(axes, clouds.items(), strict=True):
        draw_plane(panel, points, labels, names, colours)
        limits = common_limits([clouds[alpha, other][0] for other in ("train", "test")])
        panel.set(xlim=limits[0], ylim=limits[1])
        smoothing = "hard targets" if alpha == 0 else f"smoothing {alpha:g}"
        panel.set_title(f"{smoothing}: {'training' if split == 'train' else 'held out'}", fontsize=9.5)
    legend(drawing, axes[0], ncols=3)
    return drawing


def draw_distillation(rows: Sequence[Row]) -> Drawing:
    """The teachers, and beside them their students over temperature."""
    drawing, (left, right) = panels(2, width=8.6, height=3.3, ratios=[1, 2.1])
    for position, (alpha, (name, colour)) in enumerate(_KINDS.items()):
        teacher, alone, *students = (row["accuracy"] for row in matching(rows, alpha=alpha))
        _errorbars(left, [position], [teacher], colour, name, scale=100)
        beside = [place + 0.06 * position for place in range(len(TEMPERATURES))]
        _errorbars(right, beside, students, colour, f"teacher: {name}", scale=100)
        level = 100 * alone.mean
        right.axhline(level, color=colour, linestyle=":", linewidth=1.4, label=f"no teacher, {name}")
    left.set(title="The teachers", ylabel="test accuracy, %", xlim=(-0.6, 1.6))
    left.set_xticks([0, 1], [name for name, _ in _KINDS.values()])
    right.set(
        title="Their students", xlabel="temperature of the teacher's targets", ylabel="test accuracy, %"
    )
    right.set_xticks(range(len(TEMPERATURES)), [f"{t:g}" for t in TEMPERATURES])
    legend(drawing, right, ncols=2)
    return drawing
