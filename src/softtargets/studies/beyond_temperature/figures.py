"""The figures of the study of temperatures, with the numbers they show."""

from __future__ import annotations

from softtargets.claims import Sample
from softtargets.report import Curve, Figure, Marker, Panel, Table, lines
from softtargets.report.drawing import BLUE, ORANGE, RED
from softtargets.studies.beyond import ALPHA, HARD, STRONG, networks_of, rows_of
from softtargets.studies.results import Results, Row, matching

_MEASURES = ("accuracy", "nll", "nll_scaled", "ece", "ece_scaled", "temperature")
_SHOWN = (("ece", "ECE, %", 100.0), ("nll", "NLL, nats", 1.0))
_LOOKS: tuple[tuple[float, str, Marker], ...] = (
    (HARD, BLUE, "circle"),
    (ALPHA, ORANGE, "square"),
    (STRONG, RED, "triangle"),
)


def before_and_after(results: Results) -> Figure:
    """ECE and NLL over the smoothing, before and after scaling; two panels for each network."""
    rows, names = rows_of(results, *_MEASURES), networks_of(results)
    panels = [
        _panel(names[key], title, matching(rows, network=key), measure, scale)
        for key in names
        if results.where(network=key).outcomes
        for measure, title, scale in _SHOWN
    ]
    return lines(
        "before_and_after",
        "Calibration error and likelihood before and after temperature scaling, by smoothing.",
        panels,
        Table.of(
            "scaling",
            "Temperature scaling in numbers.",
            "name: network | alpha .2f: smoothing | accuracy .1% | nll: NLL | nll_scaled: NLL, scaled | ece: ECE | "
            "ece_scaled: ECE, scaled | temperature .2f",
            rows,
        ),
        "Mean and standard deviation over seeds; faint dots are seeds. Each fifth of the test set is scaled by a "
        "temperature fitted to the other four.",
        "Calibration error and negative log-likelihood over the smoothing, as trained and scaled, for each network.",
    )


def _panel(name: str, title: str, rows: list[Row], measure: str, scale: float) -> Panel:
    places = [row["alpha"] for row in rows]
    curves = [
        Curve.of("as trained", BLUE, places, [row[measure] for row in rows], scale=scale),
        Curve.of(
            "scaled by a temperature",
            ORANGE,
            places,
            [row[f"{measure}_scaled"] for row in rows],
            scale=scale,
            marker="square",
        ),
    ]
    return Panel(
        f"{name}: {title.split(',')[0]}",
        "smoothing",
        title,
        curves,
        limits=(0, None) if measure == "ece" else None,
    )


def over_temperatures(results: Results) -> Figure | str:
    """ECE over the temperature for three smoothings, a panel for each network; from what is kept with each run."""
    names, panels, rows = networks_of(results), [], []
    for key in names:
        curves = []
        for alpha, colour, marker in _LOOKS:
            kept = [o.details for o in results.where(network=key, alpha=alpha).outcomes if "ece" in o.details]
            if not kept:
                continue
            places = kept[0]["temperatures"]
            found = [Sample.of(values) for values in zip(*(one["ece"] for one in kept), strict=True)]
            curves.append(Curve.of(f"smoothing {alpha:g}", colour, places, found, scale=100, marker=marker))
            rows += [
                {"network": key, "alpha": alpha, "temperature": t, "ece": one}
                for t, one in zip(places, found, strict=True)
            ]
        if curves:
            panels.append(Panel(names[key], "temperature", "ECE, %", curves, limits=(0, None), digits=2))
    if not panels:
        return "Calibration error over the temperature: not stored with these runs."
    return lines(
        "over_temperatures",
        "Calibration error over the temperature.",
        panels,
        rows,
        "At temperature 1 models are as trained. The lowest point is what scaling can reach at best. Mean and standard "
        "deviation over seeds, all test images.",
        "Calibration error over the temperature without and with smoothing, a panel for each network.",
    )
