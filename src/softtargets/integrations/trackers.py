"""TensorBoard, Weights & Biases, MLflow: a dictionary of plain numbers and a figure, which all of them take.

::

    report = calibration_report(logits, labels, from_logits=True)

    writer.add_figure("reliability", report.figure, step)                                  # TensorBoard
    for name, value in report.numbers.items(): writer.add_scalar(name, value, step)

    wandb.log({**report.numbers, "reliability": wandb.Image(report.figure)}, step=step)    # Weights & Biases

    mlflow.log_metrics(report.numbers, step=step)                                          # MLflow
    mlflow.log_figure(report.figure, "reliability.png")
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from softtargets.arrays import ArrayLike
from softtargets.calibration import Calibration, measure_calibration
from softtargets.selection import measure_selection

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Report:
    """Numbers by name, and the reliability diagram; the figure belongs to no window, and nobody must close it."""

    numbers: dict[str, float]
    calibration: Calibration = field(repr=False)

    @property
    def figure(self) -> Figure:
        """The reliability diagram above the histogram of confidence."""
        import matplotlib.pyplot  # noqa: F401  Weights & Biases asks matplotlib for it without importing it

        from softtargets.calibration.drawing import reliability_figure

        return reliability_figure(self.calibration.reliability)


def calibration_report(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    from_logits: bool,
    bins: int = 15,
    ignore_index: int | None = None,
    prefix: str = "",
) -> Report:
    """Accuracy, calibration and risk over coverage of scores (..., K) with labels (...), for any tracker.

    >>> import torch
    >>> scores, labels = torch.tensor([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]]), torch.tensor([0, 1, 1])
    >>> report = calibration_report(scores, labels, from_logits=True, prefix="val/")
    >>> round(report.numbers["val/expected_calibration_error"], 3), round(report.numbers["val/aurc"], 3)
    (0.447, 0.611)
    """
    found = measure_calibration(
        scores, labels, from_logits=from_logits, bins=bins, ignore_index=ignore_index, level=None
    )
    selection = measure_selection(scores, labels, from_logits=from_logits, ignore_index=ignore_index)
    areas = {name: float(getattr(selection, name)) for name in ("aurc", "excess_aurc", "augrc")}
    return Report({prefix + name: value for name, value in (found.scalars() | areas).items()}, found)
