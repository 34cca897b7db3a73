"""Reliability diagrams on pages of studies: bins that are kept with a page, pooled over seeds, and drawn from there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from softtargets.calibration import Reliability, bin_edges, reliability
from softtargets.calibration.drawing import draw_reliability
from softtargets.report import Figure, Widget
from softtargets.report.drawing import Drawing, canvas

# Bins with fewer predictions than this are left out of pictures: their accuracy is mostly chance.
FEWEST = 10
BINS = 15

Bins = Mapping[str, Sequence[float]]


def kept_bins(logits: Tensor, labels: Tensor, temperature: float = 1.0) -> dict[str, list[float]]:
    """What a reliability diagram needs of one run: of each of 15 bins the predictions, and sums over them.

    >>> kept_bins(torch.tensor([[9.0, 0.0], [9.0, 0.0]]), torch.tensor([0, 1]))["right"][-1]
    1.0
    """
    return bins_of(reliability((logits / temperature).softmax(-1), labels, BINS))


def bins_of(found: Reliability) -> dict[str, list[float]]:
    """The same of what was measured already."""
    counts = found.counts.double()
    sums = {
        "confidence": (counts * found.confidence.double()).nan_to_num(0.0),
        "right": (counts * found.accuracy.double()).nan_to_num(0.0),
    }
    return {
        "counts": counts.tolist(),
        **{key: [round(v, 6) for v in row.tolist()] for key, row in sums.items()},
    }


def pooled(runs: Iterable[Bins]) -> Reliability | None:
    """The diagram of several runs together; None where there is none."""
    found = [
        torch.tensor([one["counts"], one["confidence"], one["right"]], dtype=torch.float64) for one in runs
    ]
    if not found:
        return None
    counts, confidence, right = torch.stack(found).sum(0)
    return Reliability(bin_edges(BINS), counts.long(), confidence / counts, right / counts)


@dataclass(frozen=True)
class Diagram:
    """One curve: its name, its colour and its bins; and likelihood, which the widget shows beside its ECE."""

    name: str
    colour: str
    bins: Reliability
    nll: float


def reliability_figure(name: str, title: str, curves: Sequence[Diagram], caption: str = "") -> Figure:
    """Accuracy over confidence, beside how often each confidence occurs."""
    rows = (
        {"curve": curve.name, "bin_low": one.low, "count": one.count}
        | {"confidence": one.confidence, "accuracy": one.accuracy}
        for curve in curves
        for one in curve.bins.table()
        if one.count > 0
    )
    said = (
        "Below the diagonal a model is overconfident, above it underconfident. Predictions of all seeds are pooled; "
        f"the area of a point is the share of predictions in its bin. Bins with fewer than {FEWEST} predictions are "
        "pale, and left out of the picture in files (they are in the CSV)."
    )
    return Figure.of(
        name,
        title,
        lambda: _draw(curves),
        rows,
        f"{said} {caption}".strip(),
        "Reliability diagram of several models beside a histogram of their confidences.",
        widget=Widget("reliability", _data(curves)),
    )


def _draw(curves: Sequence[Diagram]) -> Drawing:
    colours = {curve.name: curve.colour for curve in curves}
    drawing = canvas(8.6, 3.9)
    left, right = drawing.subplots(1, 2)
    draw_reliability(left, {curve.name: curve.bins for curve in curves}, colours, fewest=FEWEST)
    left.set_title("Reliability diagram, 15 bins")
    for place, curve in enumerate(curves):
        bins = curve.bins
        width = float(bins.edges[1] - bins.edges[0]) / (len(curves) + 0.6)
        x = (bins.edges[:-1] + (place + 0.5) * width).numpy()
        shares = (100 * bins.counts / bins.counts.sum()).numpy()
        right.bar(x, shares, width=width, color=curve.colour, align="edge")
    right.set(title="How often each confidence occurs", xlabel="confidence", ylabel="predictions, %")
    right.set_xlim(0, 1.02)
    drawing.legend(loc="outside lower center", ncols=2)
    return drawing


def _data(curves: Sequence[Diagram]) -> dict[str, Any]:
    found = []
    for curve in curves:
        low, high = curve.bins.accuracy_interval()
        bins = {key: [getattr(curve.bins, key)] for key in ("counts", "confidence", "accuracy")}
        errors = {"ece": [curve.bins.expected_calibration_error], "nll": [curve.nll]}
        found.append(
            {"name": curve.name, "colour": curve.colour, **bins, "low": [low], "high": [high], **errors}
        )
    shared = {"temperatures": [1.0], "start": 0, "best": None, "unit": "predictions"}
    return {"edges": bin_edges(BINS), "curves": found, **shared}
