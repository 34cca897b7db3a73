"""The figures of the study: the numbers they show, and what is said about them."""

from __future__ import annotations

from softtargets.report import Figure, Table, lines, maps
from softtargets.studies.chen_forward_correction import drawing
from softtargets.studies.chen_forward_correction.grid import (
    BAYES,
    METHODS,
    SIZES,
    Matrix,
    targets,
    transitions,
)
from softtargets.studies.chen_forward_correction.measures import expected
from softtargets.studies.results import Results, Row


def noises(results: Results) -> list[tuple[str, float]]:
    """Kinds and rates in the order of the grid."""
    return list(results.cells("noise", "rate"))


def noises_to_judge(results: Results) -> list[tuple[str, float]]:
    """All of the size that was trained: what claims are about, whether or not all of them have been."""
    size = next((outcome.trial.labels.get("size") for outcome in results.outcomes), None)
    return list(SIZES[size][0]) if size in SIZES else noises(results)


def matrices(results: Results) -> Figure:
    """T, and the targets by Bayes' rule, for the highest rate of each kind."""
    highest = {
        kind: max(rate for other, rate in noises(results) if other == kind) for kind, _ in noises(results)
    }
    shown: dict[tuple[str, float, str], Matrix] = {}
    for kind, rate in highest.items():
        T = transitions(kind, rate)
        shown |= {(kind, rate, "T"): T, (kind, rate, "S by Bayes' rule"): targets(BAYES, T)}
    return maps(
        "matrices",
        "What becomes of labels, and what to believe about a given one.",
        drawing.matrix_maps(shown),
        drawing.matrix_rows(shown),
        "T: by rows, what becomes of a clean label. S: by rows, the target for a given label, the probability of "
        "each clean class behind it. Dark is 1. Entries that are 0 are not in the table.",
        "Maps of the noise matrix and the target matrix for each kind of noise; one is the other turned over.",
    )


def five_ways(results: Results) -> Figure:
    """Loss, accuracy and calibration of every method, a row of panels for each noise."""
    rows = [
        _row(results, {"noise": kind, "rate": rate, "method": method})
        for kind, rate in noises(results)
        for method in METHODS
        if results.where(noise=kind, rate=rate, method=method).outcomes
    ]
    return lines(
        "five_ways",
        "Test loss, accuracy and calibration, five ways to meet noise that is not symmetric.",
        drawing.five_panels(rows),
        Table.of(
            "five_ways",
            "Five ways to meet it, in numbers.",
            "noise | rate .2f | method | loss: test loss | heart: predicted, memorised | "
            "averaging: predicted, averaged | through: test loss through T | accuracy .1% | "
            "early_accuracy .1%: accuracy, best epoch | ece .1%: ECE | by_heart .1%: training labels memorised",
            rows,
        ),
        "All against clean test labels; mean, standard deviation and every seed. Lines in the panels of the loss are "
        "predicted: for a network that has memorised its labels (no line, and ∞ in the table: the loss is infinite) "
        "and for one that has learned averages. Chen et al. predict the former.",
        "Test loss with predictions, accuracy and calibration error for five methods, a row for each noise.",
    )


def _row(results: Results, cell: Row) -> Row:
    theory = expected(cell["method"], transitions(cell["noise"], cell["rate"]))
    (measured,) = results.rows([cell], *drawing.MEASURES, "early_accuracy", "by_heart", "through")
    if not measured["through"].n:  # of forward correction alone
        del measured["through"]
    return cell | {"heart": theory.by_heart, "averaging": theory.averaging} | measured
