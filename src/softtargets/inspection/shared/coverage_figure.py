"""Risk over coverage as a figure: how often the most confident predictions are wrong, for one file or two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from softtargets.inspection.shared.numbers import LEVEL, Estimate
from softtargets.report import Figure, Widget
from softtargets.report.drawing import Drawing, canvas, plain
from softtargets.selection import (
    RiskCoverage,
    RiskPoints,
    Selection,
    least_risk,
    risk_points,
    shown_coverages,
)
from softtargets.selection.drawing import draw_risk_coverage

HANDED_OVER = 0.2  # of the cases, in sentences


def accuracy_on_the_rest(found: Selection) -> Estimate:
    """Of the most confident predictions, if `HANDED_OVER` are not used."""
    at = next(one for one in found.at_coverage if one.coverage == 1 - HANDED_OVER)
    return Estimate(at.accuracy, at.low, at.high)


def coverage_figure(
    curves: Mapping[str, RiskCoverage], colours: Sequence[str], caption: str, *, best: bool = True
) -> Figure:
    """Error rates over the share of predictions that are used; with `best`, what no order could be better than."""
    data = coverage_data(curves, colours, best)
    rows = [
        {"curve": one["name"], "coverage": c, **{key: one[key][i] for key in ("risk", "low", "high")}}
        for one in data["curves"]
        for i, c in enumerate(data["coverages"])
    ]
    return Figure.of(
        "risk_coverage",
        "Error rate over coverage.",
        lambda: _draw(data),
        rows,
        caption,
        "Error rate of the most confident predictions over the share of predictions that are used.",
        widget=Widget("coverage", data),
    )


def coverage_data(curves: Mapping[str, RiskCoverage], colours: Sequence[str], best: bool) -> dict[str, Any]:
    """The numbers of the widget: error rates with their intervals at some coverages."""
    coverages = shown_coverages(list(curves.values()))
    shown = []
    for (name, curve), colour in zip(curves.items(), colours, strict=False):
        at = risk_points(curve, coverages, LEVEL)
        shown.append({"name": name, "colour": colour, "risk": at.risk, "low": at.low, "high": at.high})
    least = least_risk(next(iter(curves.values())), coverages) if best else None
    return {"coverages": coverages, "curves": shown, "best": least}


def _draw(data: Mapping[str, Any]) -> Drawing:
    figure = canvas(6.4, 3.6)
    axes = figure.subplots()
    curves = {
        plain(one["name"]): RiskPoints(data["coverages"], one["risk"], one["low"], one["high"])
        for one in data["curves"]
    }
    colours = {plain(one["name"]): one["colour"] for one in data["curves"]}
    draw_risk_coverage(axes, curves, colours, data["best"])
    axes.legend(loc="upper left")
    return figure
