"""Metrics of calibration as rows of a table: what each is called, what it means, how it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from softtargets.calibration import Calibration
from softtargets.inspection.words import between, number, percent


@dataclass(frozen=True)
class Metric:
    """A metric of `Calibration`; shares are written in hundredths."""

    key: str
    name: str
    meaning: str
    share: bool = True
    digits: int = 2

    def show(self, value: float, interval: tuple[float, float] | None = None, sign: bool = False) -> str:
        """The value and, where there is one, its interval."""
        told = percent(value, self.digits, sign) if self.share else number(value, self.digits, sign)
        if interval is None:
            return told
        return f"{told} ({between(*interval, self.digits, share=self.share, sign=sign)})"


def metrics(bins: int, classes: int) -> tuple[Metric, ...]:
    """All of them, in the order of the table."""
    top_5 = (Metric("top_5_accuracy", "top-5 accuracy", "label among the five likeliest"),)
    return (
        Metric("accuracy", "accuracy", "the likeliest class is the label"),
        *(top_5 if classes > 5 else ()),
        Metric("mean_confidence", "mean confidence", "of the likeliest class"),
        Metric("negative_log_likelihood", "NLL", "−log probability of the label, in nats", False, 4),
        Metric("brier_score", "Brier score", "squared distance to the label (0 to 2)", False, 4),
        Metric("expected_calibration_error", "ECE", f"mean |confidence − accuracy|, {bins} bins"),
        Metric("adaptive_calibration_error", "adaptive ECE", f"in {bins} bins of equally many examples"),
        Metric("smooth_calibration_error", "smooth ECE", "without bins; the verdict goes by it"),
        Metric(
            "debiased_calibration_error",
            "debiased error",
            "root mean square gap, less scatter",
        ),
        Metric(
            "classwise_calibration_error", "class-wise ECE", "mean over classes of their errors", digits=3
        ),
        Metric("maximum_calibration_error", "maximum error", "largest gap of a bin, however small"),
    )


def cells(metric: Metric, prefix: str, found: Calibration | None) -> dict[str, Any]:
    """The cells of one column: numbers for files, and how they are shown."""
    if found is None:
        return {prefix: None, f"{prefix}_low": None, f"{prefix}_high": None, f"{prefix}_shown": None}
    value = float(getattr(found, metric.key))
    interval = found.intervals.get(metric.key)
    low, high = interval if interval else (None, None)
    return {
        prefix: value,
        f"{prefix}_low": low,
        f"{prefix}_high": high,
        f"{prefix}_shown": metric.show(value, interval),
    }


def metric_rows(
    columns: Mapping[str, Calibration | None], bins: int, classes: int
) -> tuple[dict[str, Any], ...]:
    """A row for each metric, with the cells of each column."""
    return tuple(
        {"metric": one.name}
        | {
            key: value
            for prefix, found in columns.items()
            for key, value in cells(one, prefix, found).items()
        }
        | {"meaning": one.meaning}
        for one in metrics(bins, classes)
    )
