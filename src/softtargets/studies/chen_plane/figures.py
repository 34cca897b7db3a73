"""Figures 5 to 11 of the paper, measured: the numbers they show, and what is said about them."""

from __future__ import annotations

from collections.abc import Sequence

from softtargets.report import Figure, lines, maps
from softtargets.studies.chen_plane import drawing
from softtargets.studies.chen_plane.claims import WEAK
from softtargets.studies.chen_plane.grid import AWAY, axes_of, best_ps
from softtargets.studies.chen_plane.measures import KINDS
from softtargets.studies.results import Results, over
from softtargets.theory import averaging_loss, generalization_loss, optimal_p

# Clean rates that slices are shown for, as far as the grid has others near them; 0.5 and 0.95 are figure 7's.
SLICES = (0.5, 0.7, 0.85, 0.95)
_OF_A_CELL = ("loss_alpha", "deviation_alpha", "deviation_trained", "explained", "position_alpha", "accuracy",
              "by_heart", "left")  # fmt: skip


def landscape(results: Results, classes: int) -> Figure | str:
    """Figure 5: predicted and measured test loss over the plane, and how far apart they are."""
    rates, masses = axes_of(results)
    masses = [p for p in masses if p < 1]
    if not masses:
        return "Test loss over the plane: no network has been trained with smoothing yet."
    rows = [
        {
            **cell,
            "predicted": generalization_loss(cell["p"], cell["a"], classes, "alpha", limits=True),
            "averaging": averaging_loss(cell["p"], cell["a"], classes, "alpha", limits=True),
            **{key: results.sample(key, **cell) for key in _OF_A_CELL},
        }
        for cell in over(a=rates, p=masses)
    ]
    return maps(
        "landscape",
        "Test loss against clean labels over the plane, predicted and measured (figure 5).",
        drawing.map_panels(rows, rates, masses),
        rows,
        "Means over seeds. In the last map red is a loss above the prediction of the alpha type, blue below. Its "
        f"colours end at ±{drawing.reach(rows)} %, which nine tenths of the cells up to p = {AWAY:g} stay within; a "
        "cell tells its own value. p = 1 is left out: there the predicted loss is infinite.",
        "Three maps over clean rate and smoothing: predicted loss, measured loss, and their relative difference.",
    )


def slices(results: Results, classes: int) -> Figure:
    """Figures 6 and 7: test loss over p at some clean rates, against clean, corrupted and smoothed labels."""
    rates, masses = axes_of(results)
    chosen = _near(rates)
    rows = [
        {"type": kind, **cell}
        | {key: results.sample(f"{key}_{kind}", **cell) for key in ("loss", "deviation")}
        for kind in KINDS
        for cell in over(a=chosen, p=masses)
    ]
    return lines(
        "slices",
        "Test loss over p at some clean rates, by what test labels are like (figures 6 and 7).",
        drawing.slice_panels(rows, chosen, classes),
        rows,
        "Points: measured, mean and standard deviation over seeds. Lines: predicted for a network that has memorised "
        "every label. Dotted: for one that has learned only what the labels of a class are on average.",
        "Measured test losses as dots over p, between two theoretical curves for each clean rate.",
    )


def best_smoothing(results: Results, classes: int) -> Figure:
    """Figures 8 and 9: the p of the grid with the lowest loss and with the highest accuracy."""
    keys = ("loss_alpha", "accuracy", "early_accuracy", "loss_beta")
    rows = [
        {"a": a, **{key: best_ps(results, key, a) for key in keys}}
        | {f"theory_{kind}": optimal_p(a, classes, kind, limits=True) for kind in ("alpha", "beta", "gamma")}
        for a in axes_of(results)[0]
    ]
    return lines(
        "best_smoothing",
        "The best p of the grid, by loss and by accuracy (figures 8 and 9).",
        drawing.best_panels(rows, classes),
        rows,
        "Mean and standard deviation over seeds of the p that was best; faint dots are seeds. The grid is coarse: "
        "differences below one of its steps do not show.",
        "The best p over the clean rate by test loss, by test accuracy, and by accuracy with early stopping.",
    )


def accuracy_over_p(results: Results) -> Figure:
    """Figures 10 and 11: test error over p, at the end and at the best epoch."""
    rates, masses = axes_of(results)
    chosen = _near(rates)
    rows = results.rows(over(a=chosen, p=masses), "accuracy", "early_accuracy")
    return lines(
        "accuracy_over_p",
        "Test error over p (figures 10 and 11).",
        drawing.error_panels(rows, chosen),
        rows,
        "p = 1 is training without smoothing. The best epoch is chosen by the test set itself, as in the paper, which "
        "flatters it. Bars are one standard deviation over seeds.",
        "Test error over p for some clean rates, after the last epoch and at the best one.",
    )


def accuracy_planes(results: Results) -> Figure:
    """Figures 9b, 9c and 10a: accuracy over the plane, at the end and at the best epoch, and what smoothing changes."""
    rates, masses = axes_of(results)
    best = {
        a: {f"best_{key}": best_ps(results, key, a) for key in ("accuracy", "early_accuracy")} for a in rates
    }
    rows = [
        {
            **row,
            "gained": results.difference(
                "accuracy", {"a": row["a"], "p": row["p"]}, {"a": row["a"], "p": 1.0}
            ),
            **best[row["a"]],
        }
        for row in results.rows(over(a=rates, p=masses), "accuracy", "early_accuracy")
    ]
    return maps(
        "accuracy_planes",
        "Test accuracy over the plane (figures 9b, 9c and 10a).",
        drawing.accuracy_maps(rows, rates, masses),
        rows,
        "Means over seeds. White line: the most accurate p of each clean rate, mean over seeds. The last map is the "
        "accuracy minus that at p = 1, no smoothing, with the same clean rate: red is gained, blue lost. Its "
        "colours end where nine tenths of the cells stay within. Each map has colours of its own.",
        "Maps over clean rate and p: accuracy at the end, accuracy at the best epoch, and the change by smoothing.",
    )


def weak_smoothing(results: Results) -> list[Figure]:
    """Figure 11: what p = 0.9 and 0.95 change about the accuracy, over the clean rate; none without such a p."""
    rates, masses = axes_of(results)
    weak = [p for p in WEAK if p in masses]
    if not weak:
        return []
    rows = [
        {**cell, "gained": results.gain("accuracy", [(cell, {"a": cell["a"], "p": 1.0})], scale=100)}
        for cell in over(p=weak, a=rates)
    ]
    figure = lines(
        "weak_smoothing",
        "What weak smoothing changes about the test accuracy (figure 11).",
        drawing.weak_panels(rows, weak),
        rows,
        "Accuracy minus that without smoothing, in points; mean and standard deviation over seeds. At a = 1 all labels "
        "are right.",
        "Change of the test accuracy over the clean rate, a curve for each p.",
    )
    return [figure]


def _near(rates: Sequence[float]) -> list[float]:
    return sorted({min(rates, key=lambda rate: (abs(rate - wanted), rate)) for wanted in SLICES})
