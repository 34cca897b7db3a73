"""Penultimate activations on the plane of three templates, as pages of studies show them and keep them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import torch
from torch import Tensor

from softtargets.geometry import (
    COLOURS,
    PlaneMeasures,
    PlaneView,
    draw_panels,
    fair_panels,
    plane_view,
    sides,
)
from softtargets.report import Figure, Widget
from softtargets.report.drawing import Drawing, canvas
from softtargets.runs import Predictions

# Of each class, as in the paper's figures.
SHOWN = 100
# Digits of a coordinate that are kept: more are less than a pixel.
_DIGITS = 4


def view_of(
    said: Predictions, weights: Tensor, classes: Sequence[int], names: Sequence[str] = ()
) -> PlaneView:
    """One panel: a hundred examples of each of three classes, measured on all of them."""
    titles = dict(zip(classes, names, strict=True)) if names else None
    return plane_view(said.features, said.labels, weights, classes, names=titles, most=SHOWN)


def plane_numbers(view: PlaneView) -> dict[str, float]:
    """How tight the clusters are, how equilateral the triangle of their means, and how long its mean side."""
    return {
        "spread": view.measures.spread,
        "triangle": view.measures.centres_equilateral,
        "scale": sum(sides(view.centres)) / 3,
    }


def kept_view(view: PlaneView) -> dict[str, Any]:
    """A panel as plain values for JSON, from which `shown_view` makes it again."""
    return {
        "classes": list(view.classes),
        "names": list(view.names),
        "labels": view.labels.tolist(),
        "measures": {key: _plain(value) for key, value in asdict(view.measures).items()},
        **{key: _rounded(getattr(view, key)) for key in ("points", "templates", "centres")},
    }


def shown_view(kept: Mapping[str, Any], net: str, split: str) -> PlaneView:
    """A panel from what was kept of it, and whose it is."""
    measures: dict[str, Any] = {
        key: math.nan if value is None else value for key, value in kept["measures"].items()
    }
    a, b, c = kept["classes"]
    x, y, z = kept["names"]
    places = {key: torch.tensor(kept[key], dtype=torch.float64) for key in ("points", "templates", "centres")}
    return PlaneView(
        labels=torch.tensor(kept["labels"]),
        classes=(a, b, c),
        names=(x, y, z),
        measures=PlaneMeasures(**measures),
        net=net,
        split=split,
        **places,
    )


_ALT = "Scatter plots of three classes: training and held-out images, with hard targets and with smoothing."


def planes_figure(
    name: str, title: str, views: Sequence[PlaneView], caption: str = "", alt: str = _ALT
) -> Figure:
    """Panels of the same three classes side by side, in activations as they are, as in the papers."""
    rows = (
        {"net": view.net, "split": view.split, "class": view.names[view.classes.index(int(label))]}
        | {"x": float(point[0]), "y": float(point[1])}
        for view in views
        for point, label in zip(view.points, view.labels, strict=True)
    )
    return Figure.of(
        name,
        title,
        lambda: _draw(views),
        rows,
        caption,
        alt,
        widget=Widget("plane", _data(views)),
    )


def _draw(views: Sequence[PlaneView]) -> Drawing:
    drawing = canvas(2.6 * min(len(views), 4), 3.3 * -(-len(views) // 4))
    draw_panels(drawing, views, units="activations")
    return drawing


def _data(views: Sequence[PlaneView]) -> dict[str, Any]:
    panels = [
        {
            "title": panel.view.title,
            "points": [
                [float(x), float(y), panel.view.classes.index(int(label)), place]
                for place, ((x, y), label) in enumerate(
                    zip(panel.view.points, panel.view.labels, strict=True)
                )
            ],
            "templates": panel.view.templates,
            "centres": panel.view.centres,
            "limits": panel.limits,
            "notes": [
                f"spread {panel.view.measures.spread:.2f}",
                f"triangle {panel.view.measures.centres_equilateral:.2f}",
            ],
        }
        for panel in fair_panels(views, "activations")
    ]
    classes = [{"name": name, "colour": colour} for name, colour in zip(views[0].names, COLOURS, strict=True)]
    return {"classes": classes, "unit": "activations as they are", "panels": panels}


def _rounded(points: Tensor) -> list[list[float]]:
    return [[float(f"{value:.{_DIGITS}g}") for value in row] for row in points.tolist()]


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None
