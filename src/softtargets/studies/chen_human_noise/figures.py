"""The figure of the study of human noise, with the numbers it shows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softtargets.report import Curve, Figure, Marker, Panel, lines
from softtargets.report.drawing import BLUE, GREY, RED
from softtargets.studies.chen_human_noise.grid import SOURCES, WRONG
from softtargets.studies.results import Results, Row, matching, over
from softtargets.theory import averaging_loss, generalization_loss

CLASSES = 10
_LOOKS: dict[str, tuple[str, Marker]] = dict(zip(SOURCES, ((RED, "circle"), (BLUE, "square")), strict=True))
_MEASURES = ("loss", "accuracy", "early_accuracy", "by_heart", "clean_rate", "effective", "predicted",
             "averaging")  # fmt: skip
_FINE = np.linspace(0.15, 0.985, 150)


def human_noise(results: Results) -> Figure:
    """Loss and accuracy over p, two panels for each set of human labels."""
    cells = over(labels=results.values("labels"), source=SOURCES, p=sorted(results.values("p")))
    rows = results.rows(cells, *_MEASURES)
    rates = {kind: _share(results, kind) for kind in results.values("labels")}
    return lines(
        "human_noise",
        "Test loss and accuracy with human labels and with symmetric noise.",
        [panel for kind, rate in rates.items() for panel in _pair(kind, matching(rows, labels=kind), rate)],
        rows,
        "Mean and standard deviation over seeds; the loss without smoothing, p = 1, is not shown. Grey: predicted from "
        "the share of right labels alone. The share is counted on the images that were trained on.",
        "Test loss and accuracy over p for two kinds of noise, a pair of panels for each set of human labels.",
    )


def _share(results: Results, kind: str) -> float:
    """Of right labels, as counted; where no run with these labels is there, of all that people gave."""
    counted = results.sample("clean_rate", labels=kind, source="human")
    return counted.mean if counted.n else 1 - WRONG[kind]


def _pair(kind: str, rows: Sequence[Row], rate: float) -> tuple[Panel, Panel]:
    """Loss and accuracy with one set of labels."""
    fine = _FINE.tolist()
    losses = [
        Curve(
            "predicted, memorised", GREY, fine, generalization_loss(_FINE, rate, CLASSES, "alpha").tolist()
        ),
        Curve(
            "predicted, averaged",
            GREY,
            fine,
            averaging_loss(_FINE, rate, CLASSES, "alpha").tolist(),
            line="dotted",
        ),
    ]
    accuracies = []
    for source, (colour, marker) in _LOOKS.items():
        mine = matching(rows, source=source)
        soft = [row for row in mine if row["p"] < 1]
        places, below = [row["p"] for row in mine], [row["p"] for row in soft]
        losses.append(Curve.of(source, colour, below, [row["loss"] for row in soft], marker=marker))
        accuracies.append(
            Curve.of(source, colour, places, [row["accuracy"] for row in mine], scale=100, marker=marker)
        )
    title = f"{kind}, a = {rate:.2f}"
    top = 1.1 * max([3.2, *(row["loss"].mean for row in rows if row["p"] < 1 and row["loss"].n)])
    return (
        Panel(f"{title}: loss", "p", "test loss, nats", losses, limits=(0, top)),
        Panel(f"{title}: accuracy", "p", "test accuracy, %", accuracies, digits=1),
    )
