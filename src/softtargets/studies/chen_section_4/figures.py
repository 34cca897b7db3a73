"""The figures of the studies of section 4.2: the numbers they show, and what is said about them."""

from __future__ import annotations

from softtargets.report import Figure, Table, lines, maps
from softtargets.report.drawing import BLUE, GREEN, GREY, ORANGE, RED
from softtargets.studies.chen_forward_correction.drawing import matrix_maps, matrix_rows
from softtargets.studies.chen_section_4.grid import (
    BAYES,
    HARD,
    SCALAR,
    STAR,
    STRONG,
    WAYS,
    Kind,
    Matrix,
    noise_matrix,
    target_matrix,
)
from softtargets.studies.chen_section_4.measures import predicted
from softtargets.studies.results import Results, Row, matching
from softtargets.studies.ways import Level, Shown, Way, panels_of_ways

_LOOKS = {
    HARD: Way("hard", GREY),
    SCALAR: Way("p", ORANGE),
    STRONG: Way("p, β", RED),
    BAYES: Way("Bayes", BLUE),
    STAR: Way("S*", GREEN),
}


def _theory(key: str) -> tuple[Level, ...]:
    return (
        (f"heart_{key}", "solid", "predicted, memorised"),
        (f"averaging_{key}", "dotted", "predicted, averaged"),
    )


_MEASURES = {
    "loss_beta": Shown("loss on corrupted labels, nats", theory=_theory("beta")),
    "loss": Shown("loss on clean labels, nats", theory=_theory("alpha")),
    "accuracy": Shown("test accuracy, %", 100, anywhere=True),
}


def noises(results: Results) -> list[Kind]:
    """Kinds and rates in the order of the grid."""
    return list(results.cells("noise", "rate"))


def matrices(results: Results) -> Figure:
    """T and S* for the highest rate of each kind."""
    highest: dict[str, float] = {}
    for kind, rate in noises(results):
        highest[kind] = max(rate, highest.get(kind, rate))
    shown: dict[tuple[str, float, str], Matrix] = {}
    for kind, rate in highest.items():
        T = noise_matrix(kind, rate)
        shown |= {(kind, rate, "T"): T, (kind, rate, "S* = T Tᵗ"): target_matrix(STAR, T)}
    return maps(
        "matrices",
        "What becomes of labels, and the target that is best where test labels are wrong too.",
        matrix_maps(shown),
        matrix_rows(shown),
        "T: by rows, what becomes of a clean label. S*: by rows, the target for a given label, the probability of "
        "another label drawn for the same example. Dark is 1. Entries that are 0 are not in the table.",
        "Maps of the noise matrix and of S* for each kind of noise.",
    )


def ways(results: Results) -> Figure:
    """Both losses and the accuracy of every way, a row of panels for each noise."""
    rows = [_row(results, kind, rate, way) for kind, rate in noises(results) for way in WAYS[kind]]
    panels = [
        panel
        for kind, rate in noises(results)
        for panel in panels_of_ways(
            f"{kind} {rate:g}",
            matching(rows, noise=kind, rate=rate),
            {way: _LOOKS[way] for way in WAYS[kind]},
            _MEASURES,
        )
    ]
    return lines(
        "ways",
        "Test loss against corrupted and against clean labels, and accuracy, by how labels are smoothed.",
        panels,
        Table.of(
            "ways",
            "Every way in numbers.",
            "noise | rate .2f | method | loss_beta: loss, corrupted labels | heart_beta: predicted, memorised | "
            "averaging_beta: predicted, averaged | loss: loss, clean labels | heart_alpha: predicted, memorised | "
            "accuracy .1% | early_accuracy .1%: accuracy, best epoch | ece .1%: ECE | "
            "by_heart .1%: training labels memorised",
            rows,
        ),
        "Mean, standard deviation and every seed. Lines are predicted: for a network that has memorised its labels "
        "(no line, and ∞ in the table: the loss is infinite) and, dotted, for one that has learned averages.",
        "Two losses with predictions and the accuracy by way of smoothing, a row of panels for each noise.",
    )


def _row(results: Results, kind: str, rate: float, way: str) -> Row:
    cell: Row = {"noise": kind, "rate": rate, "method": way}
    T = noise_matrix(kind, rate)
    theory = {}
    for type_ in ("alpha", "beta"):
        theory[f"heart_{type_}"], theory[f"averaging_{type_}"] = predicted(way, T, type_)
    (measured,) = results.rows([cell], *_MEASURES, "early_accuracy", "ece", "by_heart")
    return cell | theory | measured
