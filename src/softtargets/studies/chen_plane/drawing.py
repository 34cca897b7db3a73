"""Figures 5 to 11 as charts, made of the rows of `figures`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from softtargets.claims import Sample
from softtargets.report import Curve, Line, Map, Marker, Panel
from softtargets.report.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, RED
from softtargets.studies.chen_plane.grid import AWAY
from softtargets.studies.results import Row, matching
from softtargets.theory import averaging_loss, generalization_loss, optimal_p

# By clean rate, in their order.
_LOOKS: tuple[tuple[str, Marker], ...] = (
    (BLUE, "circle"),
    (ORANGE, "square"),
    (GREEN, "triangle"),
    (RED, "circle"),
)
_FINE = np.linspace(0.02, 0.985, 200)
# By measure: what its best p is called, colour, marker and line.
_BEST: Mapping[str, tuple[str, str, Marker, Line]] = {
    "loss_alpha": ("p of the lowest test loss", BLUE, "circle", "solid"),
    "accuracy": ("p of the highest test accuracy", RED, "square", "solid"),
    "early_accuracy": ("p of the highest accuracy of any epoch", PURPLE, "triangle", "dotted"),
}
# Colours end at the deviation that this share of the cells away from p = 1 stays below: a few have no bounds.
SHOWN = 0.9


def reach(rows: Sequence[Row]) -> int:
    """Where the colours of deviations end, in percent: a round number that nine tenths of the cells stay below.

    >>> reach([{"p": 0.5, "deviation_alpha": Sample.of([off])} for off in (*[-0.12] * 9, 2.2)])
    20
    """
    away = [abs(row["deviation_alpha"].mean) for row in rows if row["p"] <= AWAY]
    there = sorted(value for value in away if not math.isnan(value))
    if not there:
        return 100
    return max(10, 10 * math.ceil(10 * float(there[math.ceil(SHOWN * len(there)) - 1]) - 1e-9))


def map_panels(rows: Sequence[Row], rates: Sequence[float], masses: Sequence[float]) -> list[Map]:
    """Predicted and measured loss, and how far they are apart in percent."""
    cells = {(row["a"], row["p"]): row for row in rows}

    def values(key: str, scale: float = 1) -> list[list[float | None]]:
        return [[_finite(scale * _mean(cells[a, p][key])) for a in rates] for p in masses]

    predicted, measured = values("predicted"), values("loss_alpha")
    top = max((value for line in (*predicted, *measured) for value in line if value is not None), default=1.0)
    apart, end = values("deviation_alpha", 100), reach(rows)
    axes = ("clean rate a", "p", rates, masses)
    return [
        Map("Predicted loss", *axes, predicted, 0.0, top, unit="nats"),
        Map("Measured loss", *axes, measured, 0.0, top, unit="nats"),
        Map("Measured against predicted", *axes, apart, -end, end, "diverging", digits=0, unit="%"),
    ]


def slice_panels(rows: Sequence[Row], rates: Sequence[float], classes: int) -> list[Panel]:
    """Measured losses as dots between both theories, against clean labels, corrupted ones and smoothed ones."""
    smoothed = [row for row in rows if row["p"] < 1]
    titles = {
        "alpha": "Clean test labels (figure 6)",
        "beta": "Corrupted test labels (figure 7)",
        "gamma": "Clean test labels, smoothed",
    }
    found = []
    for kind, title in titles.items():
        curves = []
        for a, (colour, marker) in zip(rates, _LOOKS, strict=False):
            mine = matching(smoothed, type=kind, a=a)
            measured = [row["loss"] for row in mine]
            known = generalization_loss(_FINE, a, classes, kind, limits=True).tolist()
            averaged = averaging_loss(_FINE, a, classes, kind, limits=True).tolist()
            places, name = [row["p"] for row in mine], f"a = {a:g}"
            curves += [
                Curve.of(
                    f"{name}, measured", colour, places, measured, line="none", marker=marker, group=name
                ),
                Curve(f"{name}, memorised", colour, _FINE.tolist(), known, group=name),
                Curve(f"{name}, averaged", colour, _FINE.tolist(), averaged, line="dotted", group=name),
            ]
        means = [row["loss"].mean for row in matching(smoothed, type=kind)]
        top = 1.15 * max([3.0, *(value for value in means if not math.isnan(value))])
        found.append(Panel(title, "p", "test loss, nats", curves, limits=(0, top)))
    return found


def best_panels(rows: Sequence[Row], classes: int) -> list[Panel]:
    """The best p over the clean rate, by several measures, and the theory's."""
    rates = [row["a"] for row in rows]
    fine = np.linspace(max(min(rates) - 0.05, 0.02), 0.995, 150)
    looks: tuple[tuple[str, Line], ...] = (("alpha", "solid"), ("gamma", "dashed"))
    theory = [
        Curve(
            f"predicted, {kind} type", GREY, fine.tolist(), optimal_p(fine, classes, kind).tolist(), line=line
        )
        for kind, line in looks
    ]
    measured = [
        Curve.of(label, colour, rates, [row[key] for row in rows], line=line, marker=marker)
        for key, (label, colour, marker, line) in _BEST.items()
    ]
    return [
        Panel(
            "The best p by clean rate",
            "clean rate a",
            "best p of the grid",
            (*measured, *theory),
            limits=(0, 1.05),
        )
    ]


def error_panels(rows: Sequence[Row], rates: Sequence[float]) -> list[Panel]:
    """Test error over p, at the end and at the best epoch."""
    titles = {"accuracy": "After the last epoch", "early_accuracy": "At the best epoch"}
    found = []
    for key, title in titles.items():
        curves = []
        for a, (colour, marker) in zip(rates, _LOOKS, strict=False):
            mine = matching(rows, a=a)
            errors = [Sample.of(1 - value for value in row[key].values) for row in mine]
            places = [row["p"] for row in mine]
            curves.append(Curve.of(f"a = {a:g}", colour, places, errors, scale=100, marker=marker))
        found.append(Panel(title, "p", "test error, %", curves, digits=2))
    return found


def accuracy_maps(rows: Sequence[Row], rates: Sequence[float], masses: Sequence[float]) -> list[Map]:
    """Accuracy at the end and at the best epoch, each with its maximisers, and what smoothing changes.

    A map without a single value is left out.
    """
    cells = {(row["a"], row["p"]): row for row in rows}
    axes = ("clean rate a", "p", rates, masses)

    def values(key: str) -> list[list[float | None]]:
        return [[_finite(100 * cells[a, p][key].mean) for a in rates] for p in masses]

    def best(key: str) -> list[tuple[float, float]]:
        found = ((a, cells[a, masses[0]][f"best_{key}"].mean) for a in rates)
        return [(a, p) for a, p in found if math.isfinite(p)]

    def there(plane: Sequence[Sequence[float | None]]) -> list[float]:
        return [value for line in plane for value in line if value is not None]

    late, early, gained = (values(key) for key in ("accuracy", "early_accuracy", "gained"))
    found = [
        Map(title, *axes, plane, *_ends(there(plane)), digits=1, unit="%", line=best(key))
        for key, title, plane in (
            ("accuracy", "Accuracy at the end (figure 9b)", late),
            ("early_accuracy", "Accuracy at the best epoch (figure 9c)", early),
        )
        if there(plane)
    ]
    if there(gained):
        sizes = sorted(map(abs, there(gained)))
        end = max(1.0, math.ceil(sizes[math.ceil(SHOWN * len(sizes)) - 1]))
        title = "Accuracy changed by smoothing (figure 10a)"
        found.append(Map(title, *axes, gained, -end, end, "diverging", digits=2, unit="points"))
    return found


def weak_panels(rows: Sequence[Row], masses: Sequence[float]) -> list[Panel]:
    """What weak smoothing changes, over the clean rate."""
    curves = []
    for p, (colour, marker) in zip(masses, _LOOKS, strict=False):
        mine = matching(rows, p=p)
        places = [row["a"] for row in mine]
        curves.append(Curve.of(f"p = {p:g}", colour, places, [row["gained"] for row in mine], marker=marker))
    return [Panel("Weak smoothing against none", "clean rate a", "accuracy, points", curves, digits=2)]


def _ends(values: Sequence[float]) -> tuple[float, float]:
    """Where colours begin and end: apart also where all values are one, as of a single run.

    >>> _ends([90.0, 80.0]), _ends([90.0])
    ((80.0, 90.0), (90.0, 90.1))
    """
    return min(values), max(*values, min(values) + 0.1)


def _mean(value: float | Sample) -> float:
    return value.mean if isinstance(value, Sample) else float(value)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
