"""Figures of the calibrate and compare pages: their data, the widget that answers, and the ink."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from softtargets.calibration import Reliability
from softtargets.calibration.drawing import draw_counts, draw_diagram, draw_reliability
from softtargets.calibration.sweep import TemperatureSweep
from softtargets.calibration.sweep_drawing import draw_sweep
from softtargets.inspection.estimates import LEVEL
from softtargets.inspection.grid import TemperatureCurves
from softtargets.report import Column, Figure, Table, Widget
from softtargets.report.drawing import plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

BEFORE, AFTER = "as they are", "scaled"


def before_and_after(
    before: Reliability, after: Reliability | None, curves: TemperatureCurves, best: float | None, colour: str
) -> Figure:
    """Reliability diagrams of one file, and the widget with a temperature to turn."""
    shown = {BEFORE: before} | ({AFTER: after} if after is not None else {})
    return Figure(
        name="reliability",
        title="Reliability.",
        draw=lambda: _draw_diagrams(shown, colour),
        data=reliability_table("reliability_bins", shown),
        caption=(
            "How often predictions of a given confidence are right. On the dashed line confidence means what "
            "it says; thin lines "
            "are 95 % intervals of the accuracy. Turn the temperature to see what scaling does: it scales all "
            "examples alike, and "
            "the fitted one has seen them, so quote the numbers of the table."
        ),
        alt="Accuracy over confidence before and after scaling, with a histogram of confidences beneath.",
        widget=Widget(
            "reliability",
            reliability_data({"predictions": curves}, {"predictions": best}, {"predictions": colour}),
        ),
    )


def overlaid(
    shown: Mapping[str, Reliability],
    curves: Mapping[str, TemperatureCurves],
    best: Mapping[str, float | None],
    colours: Mapping[str, str],
) -> Figure:
    """Reliability of two files in one diagram."""
    return Figure(
        name="reliability",
        title="Reliability.",
        draw=lambda: _draw_overlay(shown, colours),
        data=reliability_table("reliability_bins", shown),
        caption=(
            "How often predictions of a given confidence are right; the area of a point is its share of the "
            "examples, thin lines "
            "are 95 % intervals. Turn the temperature to see what scaling does to both."
        ),
        alt="Accuracy over confidence of both files.",
        widget=Widget("reliability", reliability_data(curves, best, colours)),
    )


def sweep_figure(
    curves: Mapping[str, TemperatureCurves], best: Mapping[str, float | None], colours: Mapping[str, str]
) -> Figure:
    """ECE and NLL over temperature."""
    sweeps = {name: _sweep(one) for name, one in curves.items()}
    rows = [
        {"curve": name, "temperature": t, "ece": ece, "nll": nll}
        for name, one in curves.items()
        for t, ece, nll in zip(one.temperatures, one.ece, one.nll, strict=True)
    ]
    columns = (
        Column("curve", "curve"),
        Column("temperature", "T"),
        Column("ece", "ECE"),
        Column("nll", "NLL"),
    )
    return Figure(
        name="sweep",
        title="Calibration over temperature.",
        draw=lambda: _draw_sweeps(sweeps, colours),
        data=Table("sweep", "Calibration over temperature", columns, tuple(rows)),
        caption=(
            "Expected calibration error and negative log-likelihood when all logits are divided by T. T = 1 "
            "changes nothing; "
            "T above 1 makes predictions less sure."
        ),
        alt="Expected calibration error and negative log-likelihood over temperature.",
        widget=Widget("sweep", sweep_data(curves, best, colours)),
    )


def reliability_data(
    curves: Mapping[str, TemperatureCurves], best: Mapping[str, float | None], colours: Mapping[str, str]
) -> dict[str, Any]:
    """The numbers of the reliability widget; temperatures that only some curves have are left out, but for `best`."""
    temperatures = _shared(curves, best)
    several = len(curves) > 1

    def place(t: float | None) -> int | None:
        return None if t is None or t not in temperatures else temperatures.index(t)

    told = []
    for name, one in curves.items():
        at = [one.at(t) for t in temperatures]
        intervals = [curve.accuracy_interval(LEVEL) for _, curve in at]
        told.append(
            {
                "name": name,
                "colour": colours[name],
                "counts": [curve.counts for _, curve in at],
                "confidence": [curve.confidence for _, curve in at],
                "accuracy": [curve.accuracy for _, curve in at],
                "low": [low for low, _ in intervals],
                "high": [high for _, high in intervals],
                "ece": [curve.expected_calibration_error for _, curve in at],
                "nll": [nll for nll, _ in at],
                **({"best": place(best[name])} if several else {}),
            }
        )
    first = next(iter(curves.values()))
    return {
        "edges": first.reliability[0].edges,
        "temperatures": temperatures,
        "start": temperatures.index(1.0),
        "best": None if several else place(next(iter(best.values()))),
        "curves": told,
        "unit": "examples",
    }


def sweep_data(
    curves: Mapping[str, TemperatureCurves], best: Mapping[str, float | None], colours: Mapping[str, str]
) -> dict[str, Any]:
    """The numbers of the sweep widget."""
    temperatures = _shared(curves, best)
    told = []
    for name, one in curves.items():
        at = [one.at(t) for t in temperatures]
        told.append(
            {
                "name": name,
                "colour": colours[name],
                "ece": [curve.expected_calibration_error for _, curve in at],
                "nll": [nll for nll, _ in at],
            }
        )
    return {"temperatures": temperatures, "curves": told, "best": list(best.values())}


def reliability_table(name: str, shown: Mapping[str, Reliability]) -> Table:
    """The bins behind a diagram."""
    rows = tuple(
        {"predictions": title, **vars(one)} for title, curve in shown.items() for one in curve.table(LEVEL)
    )
    keys = (
        "predictions",
        "low",
        "high",
        "count",
        "share",
        "confidence",
        "accuracy",
        "accuracy_low",
        "accuracy_high",
    )
    return Table(name, "Bins", tuple(Column(key, key.replace("_", " ")) for key in keys), rows)


def _shared(curves: Mapping[str, TemperatureCurves], best: Mapping[str, float | None]) -> list[float]:
    sets = [set(one.temperatures) for one in curves.values()]
    return sorted(set.intersection(*sets))


def _sweep(one: TemperatureCurves) -> TemperatureSweep:
    return TemperatureSweep(one.temperatures, one.nll, one.ece, int(one.reliability[0].counts.sum()))


def _draw_diagrams(shown: Mapping[str, Reliability], colour: str) -> Drawing:
    from matplotlib.figure import Figure as Canvas

    figure = Canvas(figsize=(4.4 * len(shown), 5.4), layout="constrained")
    axes = figure.subplots(2, len(shown), sharex=True, squeeze=False, gridspec_kw={"height_ratios": [3, 1]})
    for column, (name, curve) in enumerate(shown.items()):
        draw_diagram(axes[0, column], curve, colour, level=LEVEL)
        draw_counts(axes[1, column], curve, colour)
        axes[0, column].set(title=name, xlabel="")
        if column:
            axes[0, column].set_ylabel("")
            axes[1, column].set_ylabel("")
            axes[1, column].get_legend().remove()
    return figure


def _draw_overlay(shown: Mapping[str, Reliability], colours: Mapping[str, str]) -> Drawing:
    from matplotlib.figure import Figure as Canvas

    figure = Canvas(figsize=(4.8, 4.6), layout="constrained")
    axes = figure.subplots()
    draw_reliability(axes, _plain(shown), _plain(colours), level=LEVEL)
    axes.legend(loc="upper left")
    return figure


def _draw_sweeps(sweeps: Mapping[str, TemperatureSweep], colours: Mapping[str, str]) -> Drawing:
    from matplotlib.figure import Figure as Canvas

    figure = Canvas(figsize=(8.8, 3.4), layout="constrained")
    for axes, measure in zip(figure.subplots(1, 2), ("ece", "nll"), strict=True):
        draw_sweep(axes, _plain(sweeps), _plain(colours), measure)
        # A small temperature makes any likelihood huge: what matters is near the lowest and near T = 1.
        values = [one.values(measure) for one in sweeps.values()]
        here = [one.values(measure)[one.temperatures.index(1.0)] for one in sweeps.values()]
        usual = max(max(here), 1.6 * max(map(min, values)))
        axes.set_ylim(0, min(max(map(max, values)), 2.2 * usual) * 1.04 or 1)
        if len(sweeps) > 1:
            axes.legend()
    return figure


def _plain(named: Mapping[str, Any]) -> dict[str, Any]:
    """Names of files are no formulas."""
    return {plain(name): value for name, value in named.items()}
