"""The figure of the study of ResNet-56, with the numbers it shows."""

from __future__ import annotations

from collections.abc import Sequence

from softtargets.report import Figure, Line, Panel, lines
from softtargets.report.drawing import BLUE, RED
from softtargets.studies.cifar10_resnet56.grid import ALPHAS
from softtargets.studies.courses import band, by_epoch
from softtargets.studies.results import Results, Row, matching

_LOOKS: dict[float, tuple[str, str, Line]] = {
    0.0: ("hard targets", RED, "dashed"),
    0.1: ("label smoothing 0.1", BLUE, "solid"),
}
# The second panel shows the last part of the training, where curves are no longer far apart.
LAST = 0.25


def accuracy_over_epochs(results: Results) -> Figure:
    """Test accuracy whenever it was measured, on average over seeds and from the lowest to the highest."""
    rows: list[Row] = [
        {"alpha": alpha, "epoch": epoch, "accuracy": sample}
        for alpha in ALPHAS
        for epoch, sample in by_epoch(results.where(alpha=alpha)).items()
    ]
    last = max(row["epoch"] for row in rows)
    first = min(last * (1 - LAST), last - 1)
    # One curve has no legend, so that the title names it.
    trained = sorted({row["alpha"] for row in rows})
    of = f", {_LOOKS[trained[0]][0]}" if len(trained) == 1 else ""
    return lines(
        "accuracy_over_epochs",
        f"Test accuracy over the epochs{of}.",
        (
            _panel("The whole training", rows),
            _panel("Its last quarter", [r for r in rows if r["epoch"] >= first]),
        ),
        rows,
        "Lines are means over seeds, bands reach from the lowest seed to the highest. Nothing was chosen by these "
        "curves: what is reported is the last epoch.",
        "Test accuracy over epochs with hard targets and with label smoothing, and its last quarter enlarged.",
    )


def _panel(title: str, rows: Sequence[Row]) -> Panel:
    curves = []
    for alpha, (name, colour, line) in _LOOKS.items():
        mine = {row["epoch"]: row["accuracy"] for row in matching(rows, alpha=alpha)}
        if mine:
            curves.append(band(name, colour, mine, line=line))
    return Panel(title, "epoch", "test accuracy, %", curves, digits=2)
