"""Panels side by side on fair axes, and the limits that they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from softtargets.geometry.plane import sides
from softtargets.geometry.views import PlaneView

UNITS = ("centres", "templates", "activations")

Limits = tuple[tuple[float, float], tuple[float, float]]


@dataclass(frozen=True)
class FairPanel:
    """A panel in the units it is drawn in; `unit` is how long one of them is in activations."""

    view: PlaneView
    limits: Limits
    unit: float


def fair_panels(panels: Sequence[PlaneView], units: str = "centres") -> tuple[FairPanel, ...]:
    """Scale panels so that clusters that look smaller are smaller, and give the length of a unit.

    Axes have one scale in both directions and show all points. Models differ in the scale of their activations
    (Müller et al. 2019, section 2: with smoothing it is much smaller), which says nothing about clusters and would
    make any model with small activations look tight. The unit can be:

    - "centres": distances are in units of the mean distance between the three class means of the model's first panel,
      such as training. All panels of all models then have the same limits: a cluster that is half as wide on paper is
      half as wide compared with the distance between clusters. The held-out panel keeps the unit and the origin of
      the training panel, so that it shows what moved. Templates are drawn as a triangle of the same mean side around
      the same middle: their shape and direction, not their size.
    - "templates": the same in units of the mean distance between the three templates, from their middle: how far
      activations have gone beyond the templates. All panels have the same limits.
    - "activations": as they are, as in the papers' figures. Panels of one model have the same limits; different models
      do not.

    Panels belong to one model when their `net` is the same, and to one unit when model and classes are.

    >>> from softtargets.geometry import plane_view
    >>> labels, weights = torch.arange(3).repeat(4), torch.eye(3)
    >>> small, large = (plane_view(s * weights[labels], labels, weights, [0, 1, 2], net=str(s)) for s in (2, 50))
    >>> [round(panel.unit, 2) for panel in fair_panels([small, large])]
    [2.83, 70.71]
    """
    if units not in UNITS:
        raise ValueError(f"units must be one of {', '.join(UNITS)}, not {units!r}")
    if not panels:
        raise ValueError("need at least one panel")
    firsts = {(view.net, view.classes): view for view in reversed(panels)}
    scaled = [_scaled(view, firsts[view.net, view.classes], units) for view in panels]
    shown: dict[str, list[Tensor]] = {}  # what goes on one scale: panels of a net, or all
    for view, _ in scaled:
        shown.setdefault(_scale(view, units), []).extend((view.points, view.templates))
    limits = {scale: common_limits(parts) for scale, parts in shown.items()}
    return tuple(FairPanel(view, limits[_scale(view, units)], unit) for view, unit in scaled)


def common_limits(panels: Sequence[Tensor], margin: float = 0.06) -> Limits:
    """Axis limits that show all points (N, 2) of several panels on one scale.

    >>> common_limits([torch.tensor([[0.0, 0.0], [10.0, 1.0]]), torch.tensor([[4.0, -3.0]])], margin=0.1)
    ((-1.0, 11.0), (-7.0, 5.0))
    """
    points = torch.cat(
        [torch.zeros(0, 2, device="cpu"), *(points.detach().cpu() for points in panels)]
    ).double()
    if not len(points):
        raise ValueError("need at least one point to find limits for")
    low, high = points.amin(0), points.amax(0)
    reach = (1 + 2 * margin) * float((high - low).max()) / 2 or 1.0  # one point alone
    x, y = ((low + high) / 2).tolist()
    return (x - reach, x + reach), (y - reach, y + reach)


def _scale(view: PlaneView, units: str) -> str:
    return view.net if units == "activations" else ""


def _scaled(view: PlaneView, first: PlaneView, units: str) -> tuple[PlaneView, float]:
    if units == "activations":
        return view, 1.0
    corners = first.centres if units == "centres" else first.templates
    unit, middle = sum(sides(corners)) / 3, corners.mean(0)
    if unit == 0:
        raise ValueError(
            f"the class means of '{first.title}' are a single point, so their distance cannot be the unit; use "
            "units='activations'"
        )

    def moved(points: Tensor) -> Tensor:
        return (points - middle) / unit

    templates = moved(view.templates)
    if units == "centres":
        templates = (view.templates - view.templates.mean(0)) / (sum(sides(view.templates)) / 3)
    return replace(view, points=moved(view.points), centres=moved(view.centres), templates=templates), unit
