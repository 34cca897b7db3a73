"""The figure of the study of human noise, with the numbers it shows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softtargets.report import Figure
from softtargets.report.drawing import BLUE, GREY, RED, Axes, Drawing
from softtargets.studies.chen_human_noise.grid import SOURCES
from softtargets.studies.drawing import curve, legend, panels
from softtargets.studies.results import Results, Row, matching, over
from softtargets.theory import averaging_loss, generalization_loss

CLASSES = 10
_LOOKS = dict(zip(SOURCES, ((RED, "o"), (BLUE, "s")), strict=True))
_MEASURES = ("loss", "accuracy", "early_accuracy", "by_heart", "clean_rate", "effective", "predicted",
             "averaging")  # fmt: skip
_FINE = np.linspace(0.15, 0.985, 150)


def human_noise(results: Results) -> Figure:
    """Loss and accuracy over p, two panels for each set of human labels."""
    cells = over(labels=results.values("labels"), source=SOURCES, p=sorted(results.values("p")))
    rows = results.rows(cells, *_MEASURES)
    rates = {
        kind: results.sample("clean_rate", labels=kind, source="human").mean
        for kind in results.values("labels")
    }
    return Figure.of(
        "human_noise",
        "Test loss and accuracy with human labels and with symmetric noise.",
        lambda: _draw(rows, rates),
        rows,
        "Mean and standard deviation over seeds. The loss without smoothing, p = 1, is not shown. Grey: predicted from "
        "the share of right labels alone. The share is counted on the images that were trained on.",
        "Test loss and accuracy over p for two kinds of noise, a pair of panels for each set of human labels.",
    )


def _draw(rows: Sequence[Row], rates: dict[str, float]) -> Drawing:
    drawing, axes = panels(2 * len(rates), width=5.2 * len(rates), height=3.6)
    for place, (kind, rate) in enumerate(rates.items()):
        _draw_pair(axes[2 * place], axes[2 * place + 1], matching(rows, labels=kind), rate)
        axes[2 * place].set_title(f"{kind}, a = {rate:.2f}")
    legend(drawing, axes[0], ncols=4)
    return drawing


def _draw_pair(loss: Axes, right: Axes, rows: Sequence[Row], rate: float) -> None:
    known = generalization_loss(_FINE, rate, CLASSES, "alpha")
    loss.plot(_FINE, known, color=GREY, label="predicted, memorised")
    averaged = averaging_loss(_FINE, rate, CLASSES, "alpha")
    loss.plot(_FINE, averaged, color=GREY, linestyle=":", label="predicted, averaging")
    for source, (colour, marker) in _LOOKS.items():
        mine = matching(rows, source=source)
        curve(loss, [row for row in mine if row["p"] < 1], "p", "loss", colour, source, marker=marker)
        curve(right, mine, "p", "accuracy", colour, source, scale=100, marker=marker)
    loss.set(xlabel="p", ylabel="test loss, nats")
    loss.set_ylim(0, max(3.5, loss.get_ylim()[1]))
    right.set(xlabel="p", ylabel="test accuracy, %")
