"""Figures 5 to 11 of the paper, measured, with the theory beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softtargets.claims import Sample
from softtargets.report import Column, Figure, Table
from softtargets.report.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, RED
from softtargets.studies.chen_plane.optima import AWAY, Grid
from softtargets.studies.plotting import errorbars, panels
from softtargets.theory import averaging_loss, generalization_loss, optimal_p

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

# Clean rates that slices are shown for, as far as the grid has others near them; 0.5 and 0.95 are figure 7's.
SLICES = (0.5, 0.7, 0.85, 0.95)
_COLOURS = (BLUE, ORANGE, GREEN, RED)
_FINE = np.linspace(0.02, 0.985, 200)


def landscape(grid: Grid, classes: int) -> Figure:
    """Figure 5: predicted and measured test loss over the plane, and how far apart they are."""
    masses = [p for p in grid.masses if p < 1]
    rows: list[dict[str, Any]] = []
    for a in grid.rates:
        for p in masses:
            cell = {"a": a, "p": p}
            rows.append(
                {
                    **cell,
                    "predicted": generalization_loss(p, a, classes, "alpha", limits=True),
                    "averaging": averaging_loss(p, a, classes, "alpha", limits=True),
                    **{
                        key: _sample(grid, key, **cell)
                        for key in (
                            "loss_alpha",
                            "deviation_alpha",
                            "deviation_trained",
                            "explained",
                            "position_alpha",
                            "accuracy",
                            "by_heart",
                            "left",
                        )
                    },
                }
            )

    def draw() -> Drawing:
        drawing, axes = panels(3, width=10.4, height=3.6)
        maps = [_map(rows, key, grid.rates, masses) for key in ("predicted", "loss_alpha", "deviation_alpha")]
        top = float(max(np.nanmax(maps[0]), np.nanmax(maps[1])))
        for panel, values, title in zip(
            axes, maps, ("predicted loss", "measured loss", "measured against predicted, %"), strict=True
        ):
            apart = title.endswith("%")
            shown = 100 * values if apart else values
            reach = _reach(shown, masses) if apart else top
            image = panel.imshow(
                shown,
                origin="lower",
                aspect="auto",
                cmap="RdBu_r" if apart else "viridis",
                vmin=-reach if apart else 0,
                vmax=reach,
            )
            _numbers(panel, shown, ".0f" if apart else ".2f", reach, apart)
            slanted = 60 if len(grid.rates) > 6 else 0  # side by side there is no room
            panel.set_xticks(range(len(grid.rates)), [f"{a:g}" for a in grid.rates], rotation=slanted)
            panel.set_yticks(range(len(masses)), [f"{p:g}" for p in masses])
            panel.set(title=title, xlabel="clean rate a", ylabel="p")
            panel.grid(visible=False)
            drawing.colorbar(image, ax=panel, shrink=0.85, extend="both" if apart else "neither")
        return drawing

    columns = (
        Column("a", "a", 2),
        Column("p", "p", 2),
        Column("predicted", "predicted"),
        Column("averaging", "averaging"),
        Column("loss_alpha", "measured"),
        Column("deviation_alpha", "deviation", percent=True),
        Column("deviation_trained", "deviation on training images", percent=True),
        Column("explained", "deviation with the accuracy for a", percent=True),
        Column("position_alpha", "position", 2),
        Column("accuracy", "test accuracy", percent=True),
        Column("by_heart", "labels learned by heart", percent=True),
        Column("left", "left to learn"),
    )
    return Figure(
        "landscape",
        "Test loss against clean labels over the plane, predicted and measured (figure 5).",
        draw,
        Table("landscape", "Test loss over the plane", columns, tuple(rows)),
        "Means over seeds. Right: red is a loss above the prediction of the alpha type, blue below; colours reach as "
        f"far as deviations up to p = {AWAY:g}. p = 1 is left out: there the predicted loss is infinite.",
        "Three maps over clean rate and smoothing: predicted loss, measured loss, and their relative difference.",
    )


def slices(grid: Grid, classes: int) -> Figure:
    """Figures 6 and 7: test loss over p at some clean rates, against clean and against corrupted labels."""
    chosen = _near(grid.rates)
    rows: tuple[dict[str, Any], ...] = tuple(
        {"type": kind, "a": a, "p": p, "loss": _sample(grid, f"loss_{kind}", a=a, p=p),
         "deviation": _sample(grid, f"deviation_{kind}", a=a, p=p)}
        for kind in ("alpha", "beta") for a in chosen for p in grid.masses
    )  # fmt: skip

    def draw() -> Drawing:
        drawing, axes = panels(2, width=10.0, height=4.3)
        for panel, kind in zip(axes, ("alpha", "beta"), strict=True):
            for a, colour in zip(chosen, _COLOURS, strict=False):
                panel.plot(_FINE, _theory(a, classes, kind), color=colour, linewidth=1.4)
                panel.plot(_FINE, _averaging(a, classes, kind), color=colour, linewidth=0.9, linestyle=":")
                mine = [row for row in rows if (row["type"], row["a"]) == (kind, a) and row["p"] < 1]
                errorbars(panel, [row["p"] for row in mine], [row["loss"] for row in mine], colour,
                          f"a = {a:g}", line="none")  # fmt: skip
            measured = [row["loss"].mean for row in rows if row["type"] == kind and row["p"] < 1]
            panel.set_ylim(0, 1.15 * max(3.0, *(value for value in measured if value == value)))
            panel.set(xlabel="p", ylabel="test loss, nats")
        axes[0].set_title("alpha: clean test labels (figure 6)")
        axes[1].set_title("beta: corrupted test labels (figure 7)")
        drawing.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        return drawing

    columns = (
        Column("type", "type"),
        Column("a", "a", 2),
        Column("p", "p", 2),
        Column("loss", "measured"),
        Column("deviation", "deviation", percent=True),
    )
    return Figure(
        "slices",
        "Test loss over p at some clean rates (figures 6 and 7).",
        draw,
        Table("slices", "Test loss over p", columns, rows),
        "Dots: measured, mean and deviation over seeds. Lines: predicted for a net that has learned every label by "
        "heart. Dotted: for one that has learned only what the labels of a class are on the average.",
        "Measured test losses as dots over p, between two theoretical curves for each clean rate.",
    )


def best_smoothing(grid: Grid, classes: int) -> Figure:
    """Figures 8 and 9: the p of the grid with the lowest loss and with the highest accuracy."""
    looks = {
        "loss_alpha": ("lowest test loss", BLUE, "o", "-"),
        "accuracy": ("highest test accuracy", RED, "s", "-"),
        "early_accuracy": ("highest accuracy of any epoch", PURPLE, "^", ":"),
    }
    rows: tuple[dict[str, Any], ...] = tuple(
        {"a": a, **{key: grid.best_sample(key, a) for key in (*looks, "loss_beta")}}
        | {f"theory_{kind}": optimal_p(a, classes, kind, limits=True) for kind in ("alpha", "beta", "gamma")}
        for a in grid.rates
    )

    def draw() -> Drawing:
        drawing, (axes,) = panels(1, width=9.4, height=4.0)
        fine = np.linspace(max(min(grid.rates) - 0.05, 0.02), 0.995, 150)
        for kind, line in (("alpha", "-"), ("gamma", "--")):
            axes.plot(fine, optimal_p(fine, classes, kind), color=GREY, linewidth=1.2, linestyle=line,
                      label=f"predicted, {kind}")  # fmt: skip
        for shift, (key, (label, colour, marker, line)) in zip(
            (-0.004, 0.0, 0.004), looks.items(), strict=True
        ):
            places = [a + shift for a in grid.rates]
            errorbars(axes, places, [row[key] for row in rows], colour, label, line=line, marker=marker)
        axes.set(xlabel="clean rate a", ylabel="best p of the grid", ylim=(0, 1.05))
        drawing.legend(*axes.get_legend_handles_labels(), loc="outside right center")
        return drawing

    columns = (
        Column("a", "a", 2),
        Column("loss_alpha", "lowest loss, clean test", 2),
        Column("theory_alpha", "predicted, alpha", 2),
        Column("theory_gamma", "predicted, gamma", 2),
        Column("loss_beta", "lowest loss, corrupted test", 2),
        Column("theory_beta", "predicted, beta", 2),
        Column("accuracy", "highest accuracy", 2),
        Column("early_accuracy", "highest accuracy of any epoch", 2),
    )
    return Figure(
        "best_smoothing",
        "The best p of the grid, by loss and by accuracy (figures 8 and 9).",
        draw,
        Table("best_smoothing", "The best p of the grid", columns, rows),
        "Mean and deviation over seeds of the p that was best; faint dots are seeds. The grid is coarse, so a step of "
        "it is the least that can be told apart.",
        "The best p over the clean rate by test loss, by test accuracy, and by accuracy with early stopping.",
    )


def accuracy_over_p(grid: Grid) -> Figure:
    """Figures 10 and 11: test error over p, at the end and at the best epoch."""
    chosen = _near(grid.rates)
    rows: tuple[dict[str, Any], ...] = tuple(
        {"a": a, "p": p, "accuracy": _sample(grid, "accuracy", a=a, p=p),
         "early_accuracy": _sample(grid, "early_accuracy", a=a, p=p)}
        for a in chosen for p in grid.masses
    )  # fmt: skip

    def draw() -> Drawing:
        drawing, axes = panels(2, width=10.0, height=4.2)
        for panel, key in zip(axes, ("accuracy", "early_accuracy"), strict=True):
            for a, colour in zip(chosen, _COLOURS, strict=False):
                mine = [row for row in rows if row["a"] == a]
                errors = [Sample.of(1 - value for value in row[key].values) for row in mine]
                errorbars(panel, [row["p"] for row in mine], errors, colour, f"a = {a:g}", scale=100)
            panel.set(xlabel="p", ylabel="test error, %")
        axes[0].set_title("After the last epoch")
        axes[1].set_title("At the best epoch")
        drawing.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        return drawing

    columns = (
        Column("a", "a", 2),
        Column("p", "p", 2),
        Column("accuracy", "accuracy, last epoch", percent=True),
        Column("early_accuracy", "accuracy, best epoch", percent=True),
    )
    return Figure(
        "accuracy_over_p",
        "Test error over p (figures 10 and 11).",
        draw,
        Table("accuracy_over_p", "Test accuracy over p", columns, rows),
        "p = 1 is training without smoothing. The best epoch is chosen by the test set itself, as in the paper, which "
        "flatters it.",
        "Test error over p for some clean rates, after the last epoch and at the best one.",
    )


def _near(rates: tuple[float, ...]) -> tuple[float, ...]:
    return tuple(sorted({min(rates, key=lambda rate: (abs(rate - wanted), rate)) for wanted in SLICES}))


def _sample(grid: Grid, measure: str, **cell: float) -> Sample:
    outcomes = grid.results.where(**cell).outcomes
    ordered = sorted(outcomes, key=lambda outcome: outcome.trial.recipe.seed)
    return Sample.of(o.measures[measure] for o in ordered if measure in o.measures)


def _map(rows: list[dict[str, Any]], key: str, rates: tuple[float, ...], masses: list[float]) -> Any:
    def number(value: Any) -> float:
        return value.mean if isinstance(value, Sample) else float(value)

    found = {(row["a"], row["p"]): number(row[key]) for row in rows}
    return np.array([[found[a, p] for a in rates] for p in masses])


def _reach(values: Any, masses: list[float]) -> float:
    # Beside p = 1 deviations have no bounds: coloured by them, all others would look alike.
    away = values[: sum(p <= AWAY for p in masses)]
    return float(np.nanmax(np.abs(away if away.size else values)))


def _numbers(panel: Axes, values: Any, form: str, reach: float, apart: bool) -> None:
    if values.size > 60:  # no room
        return
    for (i, j), value in np.ndenumerate(values):
        dark = abs(value) > 0.6 * reach if apart else value < 0.55 * reach
        if apart:
            value = np.round(value) + 0.0  # less than half a percent below is 0, not -0
        panel.text(j, i, f"{value:{form}}", ha="center", va="center", fontsize=7.5,
                   color="white" if dark else "black")  # fmt: skip


def _theory(a: float, classes: int, kind: str) -> Any:
    return generalization_loss(_FINE, a, classes, kind, limits=True)


def _averaging(a: float, classes: int, kind: str) -> Any:
    return averaging_loss(_FINE, a, classes, kind, limits=True)
