"""The quickstart's pictures, drawn from the rows of `figures`."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

from softtargets.calibration import Reliability
from softtargets.calibration.drawing import draw_reliability
from softtargets.geometry.drawing import common_limits, draw_plane
from softtargets.report.drawing import BLUE, GREEN, ORANGE, PURPLE, RED, Drawing, canvas, plain
from softtargets.studies.quickstart.grid import PLANE

# Bins with fewer predictions than this are left out of the diagram: their accuracy is mostly chance.
FEWEST = 10
CURVES = (RED, GREEN, BLUE, PURPLE)
CLASSES = dict(zip(PLANE, (BLUE, ORANGE, PURPLE), strict=True))


def draw_reliabilities(curves: Mapping[str, Reliability]) -> Drawing:
    """Reliability diagrams beside how often each confidence occurs."""
    colours = dict(zip(curves, CURVES, strict=False))
    drawing = canvas(8.6, 3.9)
    left, right = drawing.subplots(1, 2)
    draw_reliability(left, curves, colours, fewest=FEWEST)
    left.set_title("Reliability diagram, 15 bins")
    for index, (name, curve) in enumerate(curves.items()):
        width = float(curve.edges[1] - curve.edges[0]) / (len(curves) + 0.6)
        x = (curve.edges[:-1] + (index + 0.5) * width).numpy()
        shares = (100 * curve.counts / curve.counts.sum()).numpy()
        right.bar(x, shares, width=width, color=colours[name], align="edge")
    right.set(title="How often each confidence occurs", xlabel="confidence", ylabel="predictions, %")
    right.set_xlim(0, 1.02)
    drawing.legend(loc="outside lower center", ncols=2)
    return drawing


def draw_planes(clouds: Mapping[tuple[float, str], tuple[Tensor, Tensor]]) -> Drawing:
    """A panel for each alpha and split; the panels of one model share their scale."""
    names = {label: plain(f"digit {label}") for label in PLANE}
    drawing = canvas(10.4, 3.0)
    axes = drawing.subplots(1, 4)
    for panel, ((alpha, split), (points, labels)) in zip(axes, clouds.items(), strict=True):
        draw_plane(panel, points, labels, names, CLASSES)
        limits = common_limits([clouds[alpha, other][0] for other in ("train", "test")])
        panel.set(xlim=limits[0], ylim=limits[1])
        panel.set_title(plane_title(alpha, split), fontsize=9.5)
    handles, labels = axes[0].get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside lower center", ncols=3)
    return drawing


def plane_title(alpha: float, split: str) -> str:
    """``smoothing 0.1: held out``."""
    smoothing = "hard targets" if alpha == 0 else f"smoothing {alpha:g}"
    return f"{smoothing}: {'training' if split == 'train' else 'held out'}"
