"""Risk over coverage as a figure: how often the most confident predictions are wrong, for one file or two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from softtargets.inspection.shared.numbers import LEVEL, Estimate
from softtargets.report import Figure, Widget
from softtargets.report.drawing import GREY, Drawing, canvas, plain
from softtargets.selection import RiskCoverage, Selection, accuracy_intervals

HANDED_OVER = 0.2  # of the cases, in sentences
STEPS = 200
FIRST = (
    20  # examples that a curve begins with: the risk of fewer is more scatter than anyone would want to see
)


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
    most = max(curve.examples for curve in curves.values())
    coverages = np.arange(1, STEPS + 1) / STEPS
    coverages = coverages[coverages * most >= min(FIRST, most)]
    shown = []
    for (name, curve), colour in zip(curves.items(), colours, strict=False):
        low, high = accuracy_intervals(curve, coverages, LEVEL)
        risk = curve.errors_at(coverages) / (coverages * curve.examples)
        shown.append({"name": name, "colour": colour, "risk": risk, "low": 1 - high, "high": 1 - low})
    least = None
    if best:
        wrong = 1 - next(iter(curves.values())).accuracy
        least = np.maximum(coverages - (1 - wrong), 0) / coverages
    return {"coverages": coverages, "curves": shown, "best": least}


def _draw(data: Mapping[str, Any]) -> Drawing:
    figure = canvas(6.4, 3.6)
    axes = figure.subplots()
    coverages = data["coverages"]
    for one in data["curves"]:
        axes.fill_between(coverages, one["low"], one["high"], color=one["colour"], alpha=0.15, linewidth=0)
        axes.plot(coverages, one["risk"], color=one["colour"], label=plain(one["name"]))
    if data["best"] is not None:
        axes.plot(
            coverages, data["best"], color=GREY, linestyle="--", linewidth=1, label="best possible order"
        )
    axes.set(
        xlabel="share of predictions used, most confident first", ylabel="error rate of those", xlim=(0, 1)
    )
    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_formatter("{x:.0%}")
    axes.yaxis.set_major_formatter("{x:.3g}")
    axes.legend(loc="upper left")
    return figure
