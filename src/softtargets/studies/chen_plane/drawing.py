"""The pictures of figures 5 to 11, drawn from the rows of `figures`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from softtargets.claims import Sample
from softtargets.report.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, Axes, Drawing
from softtargets.studies.chen_plane.grid import AWAY
from softtargets.studies.drawing import curve, errorbars, legend, panels
from softtargets.studies.results import Row, matching
from softtargets.theory import averaging_loss, generalization_loss, optimal_p

_COLOURS = (BLUE, ORANGE, GREEN, RED)
_FINE = np.linspace(0.02, 0.985, 200)
# By measure: what its best p is called, colour, marker and line, and how far it is moved aside.
_BEST: dict[str, tuple[str, str, dict[str, Any], float]] = {
    "loss_alpha": ("lowest test loss", BLUE, {"marker": "o"}, -0.004),
    "accuracy": ("highest test accuracy", RED, {"marker": "s"}, 0.0),
    "early_accuracy": ("highest accuracy of any epoch", PURPLE, {"marker": "^", "line": ":"}, 0.004),
}


def draw_maps(rows: Sequence[Row], rates: Sequence[float], masses: Sequence[float]) -> Drawing:
    """Predicted and measured loss, and how far they are apart in percent."""

    def values(key: str) -> Any:
        found = {(row["a"], row["p"]): getattr(row[key], "mean", row[key]) for row in rows}
        return np.array([[found[a, p] for a in rates] for p in masses], dtype=float)

    predicted, measured, apart = values("predicted"), values("loss_alpha"), 100 * values("deviation_alpha")
    top = float(max(np.nanmax(predicted), np.nanmax(measured)))
    # Beside p = 1 deviations have no bounds: coloured by them, all others would look alike.
    away = apart[: sum(p <= AWAY for p in masses)]
    reach = float(np.nanmax(np.abs(away if away.size else apart)))
    drawing, axes = panels(3, width=10.4, height=3.6)
    for panel, shown, title, low, high in (
        (axes[0], predicted, "predicted loss", 0.0, top),
        (axes[1], measured, "measured loss", 0.0, top),
        (axes[2], apart, "measured against predicted, %", -reach, reach),
    ):
        look = "RdBu_r" if low else "viridis"
        image = panel.imshow(shown, origin="lower", aspect="auto", cmap=look, vmin=low, vmax=high)
        if shown.size <= 60:  # else there is no room
            _numbers(panel, shown, high, signed=low < 0)
        slanted = 60 if len(rates) > 6 else 0  # side by side there is no room
        panel.set_xticks(range(len(rates)), [f"{a:g}" for a in rates], rotation=slanted)
        panel.set_yticks(range(len(masses)), [f"{p:g}" for p in masses])
        panel.set(title=title, xlabel="clean rate a", ylabel="p")
        panel.grid(visible=False)
        drawing.colorbar(image, ax=panel, shrink=0.85, extend="both" if low else "neither")
    return drawing


def draw_slices(rows: Sequence[Row], rates: Sequence[float], classes: int) -> Drawing:
    """Measured losses as dots between both theories, against clean labels and against corrupted ones."""
    drawing, axes = panels(2, width=10.0, height=4.3)
    smoothed = [row for row in rows if row["p"] < 1]
    titles = {"alpha": "clean test labels (figure 6)", "beta": "corrupted test labels (figure 7)"}
    for panel, (kind, title) in zip(axes, titles.items(), strict=True):
        for a, colour in zip(rates, _COLOURS, strict=False):
            known = generalization_loss(_FINE, a, classes, kind, limits=True)
            averaged = averaging_loss(_FINE, a, classes, kind, limits=True)
            panel.plot(_FINE, known, color=colour, linewidth=1.4)
            panel.plot(_FINE, averaged, color=colour, linewidth=0.9, linestyle=":")
            curve(panel, matching(smoothed, type=kind, a=a), "p", "loss", colour, f"a = {a:g}", line="none")
        measured = [row["loss"].mean for row in matching(smoothed, type=kind)]
        panel.set_ylim(0, 1.15 * max(3.0, *(value for value in measured if value == value)))
        panel.set(title=f"{kind}: {title}", xlabel="p", ylabel="test loss, nats")
    legend(drawing, axes[0], ncols=4)
    return drawing


def draw_best(rows: Sequence[Row], classes: int) -> Drawing:
    """The best p over the clean rate, by several measures, and the theory's."""
    drawing, (axes,) = panels(1, width=9.4, height=4.0)
    rates = [row["a"] for row in rows]
    fine = np.linspace(max(min(rates) - 0.05, 0.02), 0.995, 150)
    for kind, line in (("alpha", "-"), ("gamma", "--")):
        best = optimal_p(fine, classes, kind)
        axes.plot(fine, best, color=GREY, linewidth=1.2, linestyle=line, label=f"predicted, {kind}")
    for key, (label, colour, look, aside) in _BEST.items():
        errorbars(axes, [a + aside for a in rates], [row[key] for row in rows], colour, label, **look)
    axes.set(xlabel="clean rate a", ylabel="best p of the grid", ylim=(0, 1.05))
    legend(drawing, axes, loc="outside right center")
    return drawing


def draw_errors(rows: Sequence[Row], rates: Sequence[float]) -> Drawing:
    """Test error over p, at the end and at the best epoch."""
    drawing, axes = panels(2, width=10.0, height=4.2)
    titles = {"accuracy": "After the last epoch", "early_accuracy": "At the best epoch"}
    for panel, (key, title) in zip(axes, titles.items(), strict=True):
        for a, colour in zip(rates, _COLOURS, strict=False):
            mine = matching(rows, a=a)
            errors = [Sample.of(1 - value for value in row[key].values) for row in mine]
            errorbars(panel, [row["p"] for row in mine], errors, colour, f"a = {a:g}", scale=100)
        panel.set(title=title, xlabel="p", ylabel="test error, %")
    legend(drawing, axes[0], ncols=4)
    return drawing


def _numbers(panel: Axes, values: Any, reach: float, signed: bool) -> None:
    for (i, j), value in np.ndenumerate(values):
        dark = abs(value) > 0.6 * reach if signed else value < 0.55 * reach
        # Less than half a percent below is 0, not -0.
        text = f"{np.round(value) + 0.0:.0f}" if signed else f"{value:.2f}"
        panel.text(j, i, text, ha="center", va="center", fontsize=7.5, color="white" if dark else "black")
