"""Figures 1 to 4 of the paper, with the numbers they show."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from softtargets.report import Figure
from softtargets.report.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, Drawing
from softtargets.studies.drawing import legend, panels
from softtargets.theory import Landscape, OptimumCurve, landscape, optimum_curve
from softtargets.theory.drawing import draw_landscape, draw_optimum

KINDS = ("alpha", "beta", "gamma")

# Figures 1 and 2 are for two classes. The paper does not print the numbers of classes of figures 3 and 4.
PLANE = np.arange(1, 50) / 50
RATES = np.arange(1, 200) / 200
MANY = (2, 3, 10, 100)
LIMIT = (*MANY, math.inf)
JUMPING = (3, 10, 100, 1000)

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

    return Figure.of(
        "landscapes",
        "The loss over the clean rate a and the smoothing p, two classes (figure 1).",
        lambda: _draw_landscapes(found),
        rows,
        "Dark is a low loss; the white line is the best p for each a. Colours end at the loss that nine tenths of the "
        "plane stay below, since it grows without bound at the edges. With the gamma type 1 − p is as good as p.",
        "Three maps of the loss over clean rate and smoothing, with the best smoothing as a line.",
    )


def two_classes() -> Figure:
    """Figure 2: the best p for two classes."""
    return _optimum_figure(
        "two_classes",
        "The best p for two classes (figure 2).",
        {kind: optimum_curve(2, kind, RATES) for kind in KINDS},
        _COLOURS,
        "One line for each type; the dashed line is p = a.",
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
        "Dotted where the best p jumps. Below the jump the best is p = 1/M, which learns nothing. With two classes it "
        "only bends.",
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
    return Figure.of(name, title, lambda: _draw_optima(curves, colours), rows, caption, alt)


def _draw_landscapes(found: Mapping[str, Landscape]) -> Drawing:
    drawing, axes = panels(3, width=10.4, height=3.5)
    for panel, (kind, plane) in zip(axes, found.items(), strict=True):
        drawing.colorbar(draw_landscape(panel, plane), ax=panel, label="loss, nats", shrink=0.85)
        panel.set_title(f"{kind}: {_TESTED[kind]}")
    return drawing


def _draw_optima(curves: dict[str, OptimumCurve], colours: dict[str, str]) -> Drawing:
    drawing, (axes,) = panels(1, width=9.4, height=3.8)
    draw_optimum(axes, curves, colours)
    legend(drawing, axes, loc="outside right center")
    return drawing
