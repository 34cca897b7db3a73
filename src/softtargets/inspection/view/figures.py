"""The picture of the view page: examples on the plane of their templates, as numbers and as ink."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from textwrap import wrap
from typing import Any

from softtargets.geometry import FairPanel, fair_panels
from softtargets.geometry.drawing import COLOURS, draw_panels
from softtargets.inspection.shared.numbers import listed
from softtargets.inspection.view.finding import PanelView, PenultimateView
from softtargets.report import Figure, Widget
from softtargets.report.drawing import Drawing, canvas

COLUMNS = 4
WRAP = 18  # letters on a line above a panel, beside the name of the split
UNIT = {
    "centres": "1 is the mean distance between the three class means in the model's first panel",
    "templates": "1 is the mean distance between the three templates",
    "activations": "activations as they are",
}


def plane_figure(found: PenultimateView, units: str) -> Figure:
    """Points of all panels, and the widget that says which example each is."""
    panels = fair_panels([panel.view for panel in found.panels], units)
    shown = sum(len(panel.view.points) for panel in found.panels)
    lengths = "Templates show the shape and direction, not the length. " if units == "centres" else ""
    axes = "Each model has its own axes." if units == "activations" else "All panels have the same axes."
    titles = listed([panel.view.title for panel in found.panels])
    return Figure.of(
        "plane",
        "Examples on the plane of their templates.",
        lambda: _draw(found, units),
        _points(found, panels),
        f"{shown:,} points, at most {found.most} of each class in a panel. {lengths}{axes}",
        f"Scatter plots of {listed(found.names)}, one panel each for {titles}.",
        table="points",
        widget=Widget("plane", plane_data(found, panels, units)),
    )


def _points(found: PenultimateView, panels: Sequence[FairPanel]) -> list[dict[str, Any]]:
    rows = []
    for fair, panel in zip(panels, found.panels, strict=True):
        numbers = (fair.view.points.tolist(), fair.view.labels.tolist(), panel.places.tolist())
        for (x, y), label, example in zip(*numbers, strict=True):
            named = {"class": label, "name": found.names[found.classes.index(label)], "example": example}
            rows.append({"net": panel.view.net, "split": panel.view.split, **named, "x": x, "y": y})
    return rows


def plane_data(found: PenultimateView, panels: Sequence[FairPanel], units: str = "centres") -> dict[str, Any]:
    """The picture as numbers, for the page's own drawing."""
    classes = zip(found.names, COLOURS, strict=True)
    return {
        "classes": [{"name": name, "colour": colour} for name, colour in classes],
        "unit": UNIT[units],
        "panels": [_panel_data(found, *pair, units) for pair in zip(panels, found.panels, strict=True)],
    }


def _panel_data(found: PenultimateView, fair: FairPanel, panel: PanelView, units: str) -> dict[str, Any]:
    view, measures = fair.view, fair.view.measures
    numbers = (view.points.tolist(), view.labels.tolist(), panel.places.tolist())
    notes = [f"spread {measures.spread:.2f}, triangle {measures.centres_equilateral:.2f}"]
    if units != "activations":
        notes.append(f"one unit is {fair.unit:.3g}")
    return {
        "title": view.title,
        "points": [
            [x, y, found.classes.index(label), place] for (x, y), label, place in zip(*numbers, strict=True)
        ],
        "templates": view.templates.tolist(),
        "centres": view.centres.tolist(),
        "limits": [list(ends) for ends in fair.limits],
        "notes": notes,
    }


def _draw(found: PenultimateView, units: str) -> Drawing:
    columns = min(COLUMNS, len(found.panels))
    figure = canvas(max(2.6 * columns, 4.0), 3.3 * -(-len(found.panels) // columns))
    # Of a net, its name broken into lines: panels are narrow, and those of one net must still have one name.
    views = [replace(panel.view, net="\n".join(wrap(panel.view.net, WRAP))) for panel in found.panels]
    draw_panels(figure, views, units, columns)
    return figure
