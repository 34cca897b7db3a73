"""Reliability and temperature sweeps as figures: their data and the widgets that answer, for one file or two."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from softtargets.calibration import Reliability
from softtargets.calibration.drawing import draw_sweep
from softtargets.inspection.shared.measured import Measured
from softtargets.inspection.shared.numbers import LEVEL
from softtargets.report import Figure, Widget
from softtargets.report.drawing import BLUE, ORANGE, Drawing, canvas, plain

COLOURS = (BLUE, ORANGE)
Files = Mapping[str, Measured]  # one or two, by their names


def reliability_figure(
    files: Files, shown: Mapping[str, Reliability], draw: Callable[[], Drawing], caption: str, alt: str
) -> Figure:
    """Reliability `shown` in a picture, and the widget with a temperature to turn."""
    bins = [{"predictions": name, **vars(one)} for name, curve in shown.items() for one in curve.table(LEVEL)]
    widget = Widget("reliability", reliability_data(files))
    return Figure.of(
        "reliability", "Reliability.", draw, bins, caption, alt, table="reliability_bins", widget=widget
    )


def sweep_figure(files: Files) -> Figure:
    """ECE and NLL over temperature."""
    rows = [
        {"curve": name, "temperature": t, "ece": curve.expected_calibration_error, "nll": nll}
        for name, one in files.items()
        for t, (nll, curve) in one.curves.items()
    ]
    return Figure.of(
        "sweep",
        "Calibration over temperature.",
        lambda: _draw_sweeps(files),
        rows,
        "Expected calibration error and negative log-likelihood when all logits are divided by T. T = 1 changes "
        "nothing; T above 1 makes predictions less confident.",
        "Expected calibration error and negative log-likelihood over temperature.",
        widget=Widget("sweep", sweep_data(files)),
    )


def reliability_data(files: Files) -> dict[str, Any]:
    """The numbers of the reliability widget."""
    temperatures, several = shared_temperatures(files), len(files) > 1
    curves = []
    for shown, one in zip(_sweeps(files, temperatures), files.values(), strict=True):
        best = temperatures.index(one.best) if one.best in temperatures else None
        named = {key: shown[key] for key in ("name", "colour")}
        own = {"best": best} if several else {}
        curves.append({**named, **_diagrams(one, temperatures), **shown, **own})
    return {
        "edges": one.before.reliability.edges,
        "temperatures": temperatures,
        "start": temperatures.index(1.0),
        "best": None if several else best,
        "curves": curves,
        "unit": "examples",
    }


def _diagrams(one: Measured, temperatures: list[float]) -> dict[str, Any]:
    at = [one.curves[t][1] for t in temperatures]
    bins = {key: [getattr(curve, key) for curve in at] for key in ("counts", "confidence", "accuracy")}
    low, high = zip(*(curve.accuracy_interval(LEVEL) for curve in at), strict=True)
    return {**bins, "low": low, "high": high}


def sweep_data(files: Files) -> dict[str, Any]:
    """The numbers of the sweep widget."""
    temperatures, best = shared_temperatures(files), [one.best for one in files.values()]
    return {"temperatures": temperatures, "curves": _sweeps(files, temperatures), "best": best}


def shared_temperatures(files: Files) -> list[float]:
    """Those at which all have been measured."""
    return sorted(set.intersection(*(set(one.curves) for one in files.values())))


def _sweeps(files: Files, temperatures: list[float]) -> list[dict[str, Any]]:
    curves = []
    for (name, one), colour in zip(files.items(), COLOURS, strict=False):
        at = [one.curves[t] for t in temperatures]
        errors = [curve.expected_calibration_error for _, curve in at]
        curves.append({"name": name, "colour": colour, "ece": errors, "nll": [nll for nll, _ in at]})
    return curves


def _draw_sweeps(files: Files) -> Drawing:
    sweeps = {plain(name): one.sweep for name, one in files.items()}
    colours = dict(zip(sweeps, COLOURS, strict=False))
    figure = canvas(8.8, 3.4)
    for axes, measure in zip(figure.subplots(1, 2), ("ece", "nll"), strict=True):
        draw_sweep(axes, sweeps, colours, measure)
        # A small temperature makes any likelihood huge: what matters is near the lowest and near T = 1.
        values = [one.values(measure) for one in sweeps.values()]
        here = [one.values(measure)[one.temperatures.index(1.0)] for one in sweeps.values()]
        usual = max(max(here), 1.6 * max(map(min, values)))
        axes.set_ylim(0, min(max(map(max, values)), 2.2 * usual) * 1.04 or 1)
        if len(sweeps) > 1:
            axes.legend()
    return figure
