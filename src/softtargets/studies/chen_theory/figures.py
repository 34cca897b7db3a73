"""Figures 1 to 4 of the paper, with the numbers they show."""

from __future__ import annotations

import math

import numpy as np

from softtargets.report import Curve, Figure, Line, Map, Panel, lines, maps
from softtargets.report.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, RED
from softtargets.theory import Landscape, OptimumCurve, landscape, optimum_curve

KINDS = ("alpha", "beta", "gamma")

# Figures 1 and 2 are for two classes. The paper does not print the numbers of classes of figures 3 and 4.
PLANE = np.arange(1, 50) / 50
RATES = np.arange(1, 200) / 200
MANY = (2, 3, 10, 100)
LIMIT = (*MANY, math.inf)
JUMPING = (3, 10, 100, 1000)
# Losses rise without bounds at the edges: colours end at this share of the values, so that the valley is seen.
SHOWN = 0.9

_TESTED = {"alpha": "clean test set", "beta": "corrupted test set", "gamma": "smoothed test set"}
_COLOURS = {"alpha": BLUE, "beta": RED, "gamma": GREEN}
_BY_CLASSES = (BLUE, ORANGE, GREEN, RED, PURPLE)


def landscapes() -> Figure:
    """Figure 1: the loss over a and p for two classes."""
    found = {kind: landscape(2, kind, PLANE, PLANE) for kind in KINDS}
    rows = (
        {"a": float(a), "p": float(p)} | {kind: float(found[kind].loss[i, j]) for kind in KINDS}
        for j, a in enumerate(PLANE)
        for i, p in enumerate(PLANE)
    )

    return maps(
        "landscapes",
        "The loss over the clean rate a and the smoothing p, two classes (figure 1).",
        [_map(f"{kind}: {_TESTED[kind]}", plane) for kind, plane in found.items()],
        rows,
        "Dark is low; the white line is the best p for each a. Colours end at the loss that nine tenths of the plane "
        "stay below, since at the edges it has no bounds. With the gamma type 1 − p is as good as p.",
        "Three maps of the loss over clean rate and smoothing, with the best smoothing as a line.",
    )


def two_classes() -> Figure:
    """Figure 2: the best p for two classes."""
    return _optimum_figure(
        "two_classes",
        "The best p for two classes (figure 2).",
        {kind: optimum_curve(2, kind, RATES) for kind in KINDS},
        _COLOURS,
        "The three types, as a line over the clean rate each. The line of the alpha type is p = a.",
        "The best p over the clean rate for the alpha, beta and gamma types with two classes.",
    )


def many_classes() -> Figure:
    """Figure 3: the best p of the alpha and beta types for M classes."""
    curves = {"alpha, any M": optimum_curve(2, "alpha", RATES)}
    curves |= {
        f"beta, M = {'∞' if math.isinf(m) else f'{m:g}'}": optimum_curve(m, "beta", RATES) for m in LIMIT
    }
    colours = dict(zip(curves, (GREY, *_BY_CLASSES), strict=True))
    return _optimum_figure(
        "many_classes",
        "The best p of the alpha and beta types for M classes (figure 3).",
        curves,
        colours,
        "The alpha type does not depend on M; the beta type tends to the square of a.",
        "The best p over the clean rate for several numbers of classes, alpha and beta types.",
    )


def gamma_classes() -> Figure:
    """Figure 4: the best p of the gamma type for M classes."""
    curves = {f"M = {m}": optimum_curve(m, "gamma") for m in (2, *JUMPING)}
    return _optimum_figure(
        "gamma_classes",
        "The best p of the gamma type for M classes (figure 4).",
        curves,
        dict(zip(curves, _BY_CLASSES, strict=True)),
        "Lines break off where the best p jumps: below, the best is p = 1/M, to learn nothing. With two classes the "
        "line only bends.",
        "The best p of the gamma type over the clean rate; from three classes on it jumps.",
    )


def _optimum_figure(
    name: str, title: str, curves: dict[str, OptimumCurve], colours: dict[str, str], caption: str, alt: str
) -> Figure:
    rows = (
        {"curve": label, "a": float(a), "p": float(p)}
        for label, curve in curves.items()
        for a, p in zip(curve.a, curve.p, strict=True)
    )
    looks: tuple[Line, ...] = ("solid", "dashed", "dotted")
    shown = [
        Curve(name, colours[name], [float(a) for a in curve.a], _with_gap(curve), line=looks[place % 3])
        for place, (name, curve) in enumerate(curves.items())
    ]
    panel = Panel(title.split(" (")[0], "clean rate a", "best p", shown, limits=(0, 1.02), xlimits=(0, 1))
    return lines(name, title, [panel], rows, caption, alt)


def _map(title: str, found: Landscape) -> Map:
    finite = found.loss[np.isfinite(found.loss)]
    line = list(zip(found.a.tolist(), found.best_p.tolist(), strict=True))
    ends = float(finite.min()), float(np.quantile(finite, SHOWN))
    axes = found.a.tolist(), found.p.tolist()
    return Map(
        title, "clean rate a", "p", *axes, found.loss.tolist(), *ends, unit="nats", line=line, numbers=False
    )


def _with_gap(curve: OptimumCurve) -> list[float | None]:
    """The best p, with nothing at the last place before a jump, so that no line leads across."""
    found: list[float | None] = [float(p) for p in curve.p]
    if curve.jump is not None and curve.a[0] <= curve.jump < curve.a[-1]:
        found[int(np.searchsorted(curve.a, curve.jump, side="right")) - 1] = None
    return found
