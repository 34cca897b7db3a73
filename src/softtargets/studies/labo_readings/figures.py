"""Figures of the readings: what pulls at the label's probability, and where probabilities come to lie."""

from __future__ import annotations

import numpy as np

from softtargets.report import Curve, Figure, Line, Panel, lines
from softtargets.report.drawing import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY
from softtargets.studies.labo.measures import PARTS
from softtargets.studies.labo.protocol import READINGS
from softtargets.studies.labo.telling import name_of
from softtargets.studies.labo_readings.grid import ROWS
from softtargets.studies.results import Results, Row, mean
from softtargets.theory import labo_pull, labo_rests

# Of the vocabulary for which the paper's figure 2 is explained; it prints none.
VOCABULARY = 10_000

_LOOKS: dict[tuple[str, str], tuple[str, Line]] = {
    ("hard", ""): (GREY, "dashed"),
    ("ls", ""): (ORANGE, "dashed"),
    ("labo", "literal"): (BLUE, "solid"),
    ("labo", "adaptive warm-up"): (SKY, "dotted"),
    ("labo", "fixed"): (GREEN, "solid"),
    ("labo", "reversed"): (RED, "solid"),
    ("labo", "hypergradient"): (PURPLE, "solid"),
}


def pulls(classes: int) -> Figure:
    """By how much the label is pulled up, over its probability, for each reading: computed, not measured."""
    near = [round(labo_rests(count)[0].p, 1) for count in (classes, VOCABULARY)]
    places = np.linspace(0.005, 0.995, 199)
    rows: list[Row] = []
    panels = []
    for count in (classes, VOCABULARY):
        curves = [Curve.level("no pull", GREY, 0.0, (0.0, 1.0), line="dotted")]
        for reading, options in READINGS.items():
            if "warmup" in options:
                continue  # the same once the warm-up is over
            pull = labo_pull(places, count, **options)
            colour, line = _LOOKS["labo", reading]
            name = name_of({"method": "labo", "reading": reading})
            curves.append(Curve(name, colour, places.tolist(), pull.tolist(), line=line))
            rows += [
                {"classes": count, "reading": reading, "p": float(p), "pull": float(value)}
                for p, value in zip(places, pull, strict=True)
            ]
        panels.append(
            Panel(
                f"{count:,} classes", "probability of the label", "pull on its logit", curves, xlimits=(0, 1)
            )
        )
    return lines(
        "pulls",
        "What pulls at the label, by how likely it is.",
        panels,
        rows,
        "Computed, for tau 1.25 and rho 0.5, with all wrong classes equally likely. Where a curve goes through zero "
        f"downwards, training rests. The literal reading rests near {near[0]} with {classes} classes and near "
        f"{near[1]} with {VOCABULARY:,}.",
        "The pull on the logit of the label over its probability, for four readings of LABO.",
    )


def spreads(results: Results) -> Figure | str:
    """Where the probabilities of the label lie on the test images."""
    rows: list[Row] = []
    curves = []
    for labels in ROWS:
        shares = [
            outcome.details["label_probabilities"]
            for outcome in results.where(**labels).outcomes
            if "label_probabilities" in outcome.details
        ]
        if not shares:
            continue
        each = [mean(column) for column in zip(*shares, strict=True)]
        middles = [(place + 0.5) / PARTS for place in range(PARTS)]
        colour, line = _LOOKS[labels["method"], labels["reading"]]
        curves.append(Curve(name_of(labels), colour, middles, [100 * value for value in each], line=line))
        rows += [{**labels, "p": p, "share": value} for p, value in zip(middles, each, strict=True)]
    if not curves:
        return "Probabilities of the label on the test images: not run yet."
    return lines(
        "label_probabilities",
        "How likely the models find the label of a test image.",
        [
            Panel(
                "Test images", "probability of the label", "test images, %", curves, xlimits=(0, 1), digits=1
            )
        ],
        rows,
        "The share of test images in each of 20 equal parts of the probabilities, on average over seeds. Look for "
        "where the right-hand peak of each method lies.",
        "Distributions of the probability of the label on test images, by method and reading.",
    )
