"""The figure of the study of ResNet-56, with the numbers it shows."""

from __future__ import annotations

from collections.abc import Sequence

from softtargets.claims import Sample
from softtargets.report import Curve, Figure, Line, Panel, lines
from softtargets.report.drawing import BLUE, RED
from softtargets.studies.cifar10_resnet56.grid import ALPHAS
from softtargets.studies.results import Results, Row, matching

_LOOKS: dict[float, tuple[str, str, Line]] = {
    0.0: ("hard targets", RED, "dashed"),
    0.1: ("label smoothing 0.1", BLUE, "solid"),
}
# The second panel shows the last part of the training, where curves are no longer far apart.
LAST = 0.25


def accuracy_over_epochs(results: Results) -> Figure:
    """Test accuracy at the end of every epoch, on average over seeds and from the lowest to the highest."""
    rows: list[Row] = [
        {"alpha": alpha, "epoch": epoch, "accuracy": sample}
        for alpha in ALPHAS
        for epoch, sample in _by_epoch(results, alpha).items()
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


def _by_epoch(results: Results, alpha: float) -> dict[int, Sample]:
    """Test accuracy at the end of each epoch over seeds; where a model is measured several times, the last counts."""
    outcomes = sorted(results.where(alpha=alpha).outcomes, key=lambda outcome: outcome.seed)
    courses = [
        {int(row["epoch"]): float(row["test_accuracy"]) for row in outcome.run.history()}
        for outcome in outcomes
    ]
    epochs = sorted({epoch for course in courses for epoch in course})
    return {epoch: Sample.of(course[epoch] for course in courses if epoch in course) for epoch in epochs}


def _panel(title: str, rows: Sequence[Row]) -> Panel:
    curves = []
    for alpha, (name, colour, line) in _LOOKS.items():
        mine = matching(rows, alpha=alpha)
        if not mine:
            continue
        found = [row["accuracy"] for row in mine]
        low, high = ([100 * end(sample.values) for sample in found] for end in (min, max))
        means = [100 * sample.mean for sample in found]
        curves.append(Curve(name, colour, [row["epoch"] for row in mine], means, low, high, line=line))
    return Panel(title, "epoch", "test accuracy, %", curves, digits=2)
