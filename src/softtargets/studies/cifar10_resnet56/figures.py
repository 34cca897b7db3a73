"""The figure of the study of ResNet-56, with the numbers it shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from softtargets.claims import Sample
from softtargets.report import Figure
from softtargets.report.drawing import BLUE, RED, Axes, Drawing
from softtargets.studies.cifar10_resnet56.grid import ALPHAS
from softtargets.studies.drawing import legend, panels
from softtargets.studies.results import Results, Row, matching

_LOOKS = {0.0: ("hard targets", RED), 0.1: ("label smoothing 0.1", BLUE)}
# The right panel shows the last part of the training, where curves are no longer far apart.
LAST = 0.25

# Test accuracy by epoch, of one run.
Course = dict[int, float]


def accuracy_over_epochs(results: Results) -> Figure:
    """Test accuracy at the end of every epoch, for each seed and on average."""
    courses = {alpha: _courses(results, alpha) for alpha in ALPHAS}
    rows = [
        {
            "alpha": alpha,
            "epoch": epoch,
            "accuracy": Sample.of(course[epoch] for course in found if epoch in course),
        }
        for alpha, found in courses.items()
        for epoch in sorted({epoch for course in found for epoch in course})
    ]
    return Figure.of(
        "accuracy_over_epochs",
        "Test accuracy over the epochs.",
        lambda: _draw(courses, rows),
        rows,
        "Thick: mean over seeds; thin: each seed. Nothing was chosen by these curves: what is reported is the "
        "last epoch.",
        "Test accuracy over epochs with hard targets and with label smoothing, and its last quarter enlarged.",
    )


def _courses(results: Results, alpha: float) -> list[Course]:
    """Test accuracy at the end of each epoch, for each seed."""
    outcomes = sorted(results.where(alpha=alpha).outcomes, key=lambda outcome: outcome.seed)
    # Where a net is measured several times in an epoch, the last time counts.
    return [
        {int(row["epoch"]): float(row["test_accuracy"]) for row in outcome.run.history()}
        for outcome in outcomes
    ]


def _draw(courses: Mapping[float, Sequence[Course]], rows: Sequence[Row]) -> Drawing:
    drawing, axes = panels(2, width=9.6, height=3.8)
    for panel in axes:
        for alpha in _LOOKS:
            _draw_courses(panel, alpha, courses[alpha], matching(rows, alpha=alpha))
        panel.set(xlabel="epoch", ylabel="test accuracy, %")
    last = max(row["epoch"] for row in rows)
    first = min(last * (1 - LAST), last - 1)
    shown = [100 * value for row in rows if row["epoch"] >= first for value in row["accuracy"].values]
    room = max(0.08 * (max(shown) - min(shown)), 0.05)
    axes[0].set_title("The whole training")
    axes[1].set_title("Its last quarter")
    axes[1].set(xlim=(first, last), ylim=(min(shown) - room, max(shown) + room))
    legend(drawing, axes[0], ncols=2)
    return drawing


def _draw_courses(panel: Axes, alpha: float, courses: Sequence[Course], rows: Sequence[Row]) -> None:
    name, colour = _LOOKS[alpha]
    for course in courses:
        values = [100 * value for value in course.values()]
        panel.plot(list(course), values, color=colour, linewidth=0.6, alpha=0.4)
    if courses:
        means = [100 * row["accuracy"].mean for row in rows]
        panel.plot([row["epoch"] for row in rows], means, color=colour, linewidth=1.8, label=name, zorder=3)
