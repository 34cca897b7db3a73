"""The page of `softtargets view`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from softtargets.geometry import COLOURS, FairPanel, draw_panels, fair_panels
from softtargets.inspection.viewing import Look, PanelView
from softtargets.inspection.viewing_differences import between_nets, between_splits, headline
from softtargets.report import Column, Figure, Page, Section, Table, Verdict, Widget

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

FEW = 10  # examples of a class below which its cluster says little
COLUMNS = 4
WRAP = 18  # letters on a line above a panel, beside the name of the split
UNIT = {
    "centres": "1 is the mean distance between the three class means in the net's first panel",
    "templates": "1 is the mean distance between the three templates",
    "activations": "activations as they are",
}
CAUTION = (
    "These numbers describe the examples and the nets that were given, and nothing else. Another seed gives other "
    "numbers; for a claim about a method, train several and look at how much they vary."
)
_PANEL = (Column("net", "net"), Column("split", "split"))


def view_page(
    found: Look, *, name: str, command: str, provenance: Mapping[str, Any], units: str = "centres"
) -> Page:
    """Everything `look` found as a page: the picture, why these classes, measures, what differs."""
    nets = list(dict.fromkeys(panel.view.net for panel in found.panels))
    return Page(
        kind="view",
        name=name,
        title=f"{_listed(found.names)} in the penultimate layer",
        lead=(
            f"Where {_listed(nets)} put{'s' if len(nets) == 1 else ''} examples of three classes: their activations "
            "before the last layer, seen on the plane through the three templates, which are the rows of the last "
            "layer's weights (Müller et al. 2019, section 2)."
        ),
        verdict=Verdict("care", headline(found), (*between_nets(found), CAUTION)) if len(nets) > 1 else None,
        sections=(
            _picture(found, units),
            _three_classes(found),
            _all_classes(found),
            *([] if len(nets) > 1 else [Section("What these numbers do not say", (CAUTION,))]),
        ),
        command=command,
        provenance=provenance,
        runs=_sources(found),
        warnings=warnings(found),
    )


def measures_table(found: Look) -> Table:
    """The three classes: one row per panel."""
    return Table(
        name="measures",
        title="The three classes.",
        columns=(
            *_PANEL,
            Column("examples", "examples"),
            Column("spread", "spread"),
            Column("spread_in_space", "in space"),
            Column("spread_over_templates", "over templates"),
            Column("centres_equilateral", "triangle of means"),
            Column("templates_equilateral", "triangle of templates"),
        ),
        rows=tuple(
            {"net": panel.view.net, "split": panel.view.split, **vars(panel.view.measures)}
            for panel in found.panels
        ),
        caption="Each row is a panel; all examples of the three classes count, drawn or not.",
    )


def collapse_table(found: Look) -> Table:
    """All classes: NC1 to NC4, one row per panel."""
    return Table(
        name="neural_collapse",
        title="All classes.",
        columns=(
            *_PANEL,
            Column("classes", "classes"),
            Column("examples", "examples"),
            Column("nc1", "NC1"),
            Column("nc2_means_norms", "NC2 norms of means"),
            Column("nc2_means_angles", "angles of means"),
            Column("nc2_weights_norms", "norms of templates"),
            Column("nc2_weights_angles", "angles of templates"),
            Column("nc3", "NC3"),
            Column("nc4", "NC4", percent=True),
        ),
        rows=tuple(_collapse_row(panel) for panel in found.panels),
        caption="0 is complete collapse in every column.",
    )


def plane_data(found: Look, panels: tuple[FairPanel, ...], units: str = "centres") -> dict[str, Any]:
    """The picture as numbers, for the page's own drawing."""
    return {
        "classes": [
            {"name": name, "colour": colour} for name, colour in zip(found.names, COLOURS, strict=True)
        ],
        "unit": UNIT[units],
        "panels": [_panel_data(found, *pair, units) for pair in zip(panels, found.panels, strict=True)],
    }


def why(found: Look) -> str:
    """Which classes, and how they came to be these."""
    named = [
        f"{number} is {name}"
        for number, name in zip(found.classes, found.names, strict=True)
        if str(number) != name
    ]
    meaning = f" Class {_listed(named)}." if named else ""
    if found.kind == "given":
        return f"Why these classes: {found.reason}.{meaning}"
    nets = {panel.view.net for panel in found.panels}
    of = f" of {found.panels[0].view.net}" if len(nets) > 1 else ""
    return f"Why these classes: by the distances between templates{of}, {found.reason}.{meaning}"


def warnings(found: Look) -> tuple[str, ...]:
    """What a reader must know before trusting the numbers."""
    notes = []
    for panel in found.panels:
        few = [name for name, count in zip(found.names, panel.counts, strict=True) if count < FEW]
        if few:
            notes.append(
                f"{panel.view.title} has fewer than {FEW} examples of {_listed(few)}: its picture says little."
            )
        if panel.nc4_examples < panel.collapse.examples:
            notes.append(
                f"NC4 of {panel.view.title} is from {panel.nc4_examples:,} of {panel.collapse.examples:,} examples, "
                "evenly spaced, since each is compared with every class."
            )
    return tuple(notes)


def _picture(found: Look, units: str) -> Section:
    panels = fair_panels([panel.view for panel in found.panels], units)
    titles = [panel.view.title for panel in found.panels]
    shown = sum(len(panel.view.points) for panel in found.panels)
    data = plane_data(found, panels, units)
    return Section(
        "The picture",
        (
            why(found),
            "In a broad cluster, examples of one class differ in how similar they are to the others. In tight clusters "
            "at the corners of a regular triangle they hardly do: what label smoothing leads to on training examples, "
            "and why a teacher trained with it has less to tell a student (Müller et al. 2019, sections 2 and 4).",
        ),
        (
            Figure(
                name="plane",
                title="Examples on the plane of their templates.",
                draw=lambda: _draw(found, units),
                data=Table(
                    name="points",
                    title="Points",
                    columns=(),
                    rows=tuple(
                        {
                            "net": panel.view.net,
                            "split": panel.view.split,
                            "class": int(fair.view.labels[place]),
                            "name": found.names[found.classes.index(int(fair.view.labels[place]))],
                            "example": int(panel.places[place]),
                            "x": x,
                            "y": y,
                        }
                        for fair, panel in zip(panels, found.panels, strict=True)
                        for place, (x, y) in enumerate(fair.view.points.tolist())
                    ),
                ),
                caption=(
                    f"{shown:,} points, at most {found.most} of each class in a panel. "
                    + (
                        "Templates are drawn in shape and direction, not in length. "
                        if units == "centres"
                        else ""
                    )
                    + (
                        "All panels have the same axes."
                        if units != "activations"
                        else "Nets have axes of their own."
                    )
                ),
                alt=f"Scatter plots of {_listed(found.names)}, one panel each for {_listed(titles)}.",
                widget=Widget("plane", data),
            ),
        ),
    )


def _three_classes(found: Look) -> Section:
    return Section(
        "How tight, how regular",
        (
            "Spread is how far examples are from the mean of their class (root mean square), as a share of the mean "
            "distance between the three class means: on the plane, and in the whole space before projecting. It does "
            "not change when a net scales its activations, so nets can be compared by it. Over templates, the share is "
            "of the mean distance between templates instead; that depends on the scale of activations and weights, so "
            "compare it within one net only.",
            "A triangle is 1 when its three sides are equal and 0 when its corners are on one line.",
            *between_splits(found),
        ),
        (measures_table(found),),
    )


def _all_classes(found: Look) -> Section:
    return Section(
        "Neural collapse, over all classes",
        (
            "Four measures of Papyan, Han and Donoho 2020. NC1: variability within classes as a share of that between "
            "them. NC2: how unequal the norms of class means and templates are, and how much the angles between them "
            "vary. NC3: how far templates are from class means, from 0 to 4. NC4: how often the net says another class "
            "than the one with the nearest mean.",
            "Class means are those of the panel's own examples, but for NC4 those of the net's first panel "
            f"({_listed(list(dict.fromkeys(panel.nc4_means for panel in found.panels)))}). Classes without "
            "examples are left out.",
        ),
        (collapse_table(found),),
    )


def _sources(found: Look) -> Table:
    return Table(
        name="sources",
        title="Where the panels are from",
        columns=(*_PANEL, Column("examples", "examples"), Column("source", "read from")),
        rows=tuple(
            {
                "net": panel.view.net,
                "split": panel.view.split,
                "examples": panel.collapse.examples,
                "source": panel.source,
            }
            for panel in found.panels
        ),
    )


def _collapse_row(panel: PanelView) -> dict[str, Any]:
    found = panel.collapse
    return {
        "net": panel.view.net,
        "split": panel.view.split,
        "classes": found.classes,
        "examples": found.examples,
        "nc1": found.nc1,
        "nc2_means_norms": found.nc2_means.equal_norms,
        "nc2_means_angles": found.nc2_means.equal_angles,
        "nc2_means_maximal_angles": found.nc2_means.maximal_angles,
        "nc2_weights_norms": found.nc2_weights.equal_norms,
        "nc2_weights_angles": found.nc2_weights.equal_angles,
        "nc2_weights_maximal_angles": found.nc2_weights.maximal_angles,
        "nc3": found.nc3,
        "nc4": found.nc4,
        "nc4_examples": panel.nc4_examples,
        "nc4_means": panel.nc4_means,
    }


def _panel_data(found: Look, fair: FairPanel, panel: PanelView, units: str) -> dict[str, Any]:
    view = fair.view
    number = {c: k for k, c in enumerate(found.classes)}
    points = [
        [x, y, number[label], place]
        for (x, y), label, place in zip(
            view.points.tolist(), view.labels.tolist(), panel.places.tolist(), strict=True
        )
    ]
    measures = view.measures
    notes = [f"spread {measures.spread:.2f}, triangle {measures.centres_equilateral:.2f}"]
    if units != "activations":
        notes.append(f"one unit is {fair.unit:.3g}")
    return {
        "title": view.title,
        "points": points,
        "templates": view.templates.tolist(),
        "centres": view.centres.tolist(),
        "limits": [list(ends) for ends in fair.limits],
        "notes": notes,
    }


def _draw(found: Look, units: str) -> Drawing:
    from matplotlib.figure import Figure as Drawing

    columns = min(COLUMNS, len(found.panels))
    rows = -(-len(found.panels) // columns)
    figure = Drawing(figsize=(max(2.6 * columns, 4.0), 3.3 * rows), layout="constrained")
    # Of a net, its name broken into lines: panels are narrow, and those of one net must still have one name.
    views = [replace(panel.view, net="\n".join(wrap(panel.view.net, WRAP))) for panel in found.panels]
    draw_panels(figure, views, units, columns)
    return figure


def _listed(words: list[str] | tuple[str, ...]) -> str:
    """``a, b and c``."""
    *most, last = words
    return f"{', '.join(most)} and {last}" if most else last
