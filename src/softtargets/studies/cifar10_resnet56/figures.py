"""The figure of the study of ResNet-56, with the numbers it shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from softtargets.claims import Sample
from softtargets.report import Column, Figure, Table
from softtargets.report.drawing import BLUE, RED
from softtargets.studies.cifar10_resnet56.grid import ALPHAS
from softtargets.studies.plotting import panels
from softtargets.studies.study import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

_LOOKS = {0.0: ("hard targets", RED), 0.1: ("label smoothing 0.1", BLUE)}
# The right panel shows the last part of the training, where curves are no longer far apart.
LAST = 0.25


def accuracy_over_epochs(results: Results) -> Figure:
    """Test accuracy at the end of every epoch, for each seed and in the mean."""
    courses = {alpha: _courses(results, alpha) for alpha in ALPHAS}
    rows: tuple[dict[str, Any], ...] = tuple(
        {
            "alpha": alpha,
            "epoch": epoch,
            "accuracy": Sample.of(course[epoch] for course in found if epoch in course),
        }
        for alpha, found in courses.items()
        for epoch in sorted({epoch for course in found for epoch in course})
    )

    def draw() -> Drawing:
        drawing, axes = panels(2, width=9.6, height=3.8)
        for panel in axes:
            for alpha, (name, colour) in _LOOKS.items():
                for course in courses[alpha]:
                    values = [100 * value for value in course.values()]
                    panel.plot(list(course), values, color=colour, linewidth=0.6, alpha=0.4)
                if not courses[alpha]:
                    continue
                mean = {row["epoch"]: 100 * row["accuracy"].mean for row in rows if row["alpha"] == alpha}
                panel.plot(list(mean), list(mean.values()), color=colour, linewidth=1.8, label=name, zorder=3)
            panel.set(xlabel="epoch", ylabel="test accuracy, %")
        first, last = _last_part([row["epoch"] for row in rows])
        shown = [100 * v for row in rows if first <= row["epoch"] <= last for v in row["accuracy"].values]
        room = max(0.08 * (max(shown) - min(shown)), 0.05)
        axes[0].set_title("The whole training")
        axes[1].set_title("Its last quarter")
        axes[1].set(xlim=(first, last), ylim=(min(shown) - room, max(shown) + room))
        drawing.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        return drawing

    columns = (
        Column("alpha", "alpha", 2),
        Column("epoch", "epoch", 0),
        Column("accuracy", "test accuracy", 4, percent=True),
    )
    return Figure(
        "accuracy_over_epochs",
        "Test accuracy over the epochs.",
        draw,
        Table("accuracy_over_epochs", "Test accuracy over the epochs", columns, rows),
        "Thick: mean over seeds; thin: each seed. Nothing was chosen by these curves: what is reported is the "
        "last epoch.",
        "Test accuracy over epochs with hard targets and with label smoothing, and its last quarter enlarged.",
    )


def _courses(results: Results, alpha: float) -> list[dict[int, float]]:
    """Test accuracy at the end of each epoch, for each seed."""
    outcomes = sorted(results.where(alpha=alpha).outcomes, key=lambda outcome: outcome.trial.recipe.seed)
    # Where a net is measured several times in an epoch, the last time counts.
    return [
        {int(row["epoch"]): float(row["test_accuracy"]) for row in outcome.run.history()}
        for outcome in outcomes
    ]


def _last_part(epochs: list[int]) -> tuple[float, float]:
    last = max(epochs)
    return min(last * (1 - LAST), last - 1), last
