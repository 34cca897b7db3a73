"""The page of `softtargets view`."""

from __future__ import annotations

from typing import Any

from softtargets.inspection.shared.numbers import listed
from softtargets.inspection.view import words
from softtargets.inspection.view.figures import plane_figure
from softtargets.inspection.view.finding import PanelView, PenultimateView
from softtargets.report import Page, Section, Table


def view_page(found: PenultimateView, name: str, units: str = "centres") -> Page:
    """Everything `look` found as a page: the picture, why these classes, measures, what differs."""
    nets = list(dict.fromkeys(panel.view.net for panel in found.panels))
    alone = len(nets) == 1
    return Page(
        kind="view",
        name=name,
        title=f"{listed(found.names)} in the penultimate layer",
        lead=(
            f"How {listed(nets)} arrange{'s' if alone else ''} the examples of three classes before the last layer. "
            "Activations are projected onto the plane through the three classes' templates, the rows of the last "
            "layer's weight matrix (Müller et al. 2019, section 2)."
        ),
        verdict=words.verdict_on(found),
        sections=(
            Section.of("The picture", words.why(found), words.CLUSTERS, plane_figure(found, units)),
            Section.of(
                "How tight, how regular", *words.MEASURES, *words.between_splits(found), measures_table(found)
            ),
            Section.of(
                "Neural collapse, over all classes", *words.collapse_words(found), collapse_table(found)
            ),
            *([Section.of("What these numbers do not say", words.CAUTION)] if alone else []),
        ),
        runs=_sources(found),
        warnings=words.warnings(found),
    )


def measures_table(found: PenultimateView) -> Table:
    """The three classes: one row per panel."""
    return Table.of(
        "measures",
        "The three classes.",
        "net: model | split | examples | spread | spread_in_space: in space | spread_over_templates: over templates | "
        "centres_equilateral: triangle of means | templates_equilateral: triangle of templates",
        [{**_named(panel), **vars(panel.view.measures)} for panel in found.panels],
        "Each row is a panel; all examples of the three classes count, whether drawn or not.",
    )


def collapse_table(found: PenultimateView) -> Table:
    """All classes: NC1 to NC4, one row per panel."""
    return Table.of(
        "neural_collapse",
        "All classes.",
        "net: model | split | classes | examples | nc1: NC1 | nc2_means_norms: NC2 norms of means | "
        "nc2_means_angles: angles of means | nc2_weights_norms: norms of templates | "
        "nc2_weights_angles: angles of templates | nc3: NC3 | nc4 .1%: NC4",
        [{**_named(panel), **_collapse_numbers(panel)} for panel in found.panels],
        "0 is complete collapse in every column.",
    )


def _collapse_numbers(panel: PanelView) -> dict[str, Any]:
    found = panel.collapse
    nc2 = {
        f"nc2_{what}_{name.removeprefix('equal_')}": getattr(simplex, name)
        for what, simplex in (("means", found.nc2_means), ("weights", found.nc2_weights))
        for name in ("equal_norms", "equal_angles", "maximal_angles")
    }
    nc4 = {"nc4": found.nc4, "nc4_examples": panel.nc4_examples, "nc4_means": panel.nc4_means}
    sizes = {"classes": found.classes, "examples": found.examples}
    return {**sizes, "nc1": found.nc1, **nc2, "nc3": found.nc3, **nc4}


def _sources(found: PenultimateView) -> Table:
    rows = [{**_named(one), "examples": one.collapse.examples, "source": one.source} for one in found.panels]
    columns = "net: model | split | examples | source: read from"
    return Table.of("sources", "Where the panels are from", columns, rows)


def _named(panel: PanelView) -> dict[str, str]:
    return {"net": panel.view.net, "split": panel.view.split}


def numbers(found: PenultimateView) -> dict[str, Any]:
    """All of it as plain data, for scripts."""
    return {
        "classes": list(found.classes),
        "names": list(found.names),
        "picked": found.kind,
        "reason": found.reason,
        "panels": [
            {**_named(one), "three_classes": vars(one.view.measures), "all_classes": _collapse_numbers(one)}
            for one in found.panels
        ],
    }


HEADINGS = ("model", "split", "examples", "spread", "over templates", "triangle", "NC1", "NC2", "NC3", "NC4")


def summary_rows(found: PenultimateView) -> list[tuple[str, ...]]:
    """The table for a terminal, under `HEADINGS`."""
    rows = []
    for panel in found.panels:
        three, every = panel.view.measures, panel.collapse
        of_three = (three.spread, three.spread_over_templates, three.centres_equilateral)
        shown = (*of_three, every.nc1, every.nc2_means.equal_angles, every.nc3)
        numbers = (f"{three.examples:,}", *(f"{value:.3f}" for value in shown), f"{100 * every.nc4:.1f} %")
        rows.append((panel.view.net, panel.view.split, *numbers))
    return rows
