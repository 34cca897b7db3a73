"""Metrics of calibration as rows of a table: what each is called, what it means, how it is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from softtargets.calibration import Calibration
from softtargets.inspection.shared.numbers import Estimate, between, number, percent


class ShownMetric(NamedTuple):
    """A metric of `Calibration`; shares are written in hundredths."""

    key: str
    name: str
    meaning: str
    share: bool = True
    digits: int = 2

    def show(self, value: float, interval: tuple[float, float] | None = None) -> str:
        """The value and, where there is one, its interval."""
        told = percent(value, self.digits) if self.share else number(value, self.digits)
        return f"{told} ({between(*interval, self.digits, share=self.share)})" if interval else told


METRICS = (
    ShownMetric("accuracy", "accuracy", "the likeliest class is the label"),
    ShownMetric("top_5_accuracy", "top-5 accuracy", "label among the five likeliest"),
    ShownMetric("mean_confidence", "mean confidence", "of the likeliest class"),
    ShownMetric("negative_log_likelihood", "NLL", "−log probability of the label, in nats", False, 4),
    ShownMetric("brier_score", "Brier score", "squared distance to the label (0 to 2)", False, 4),
    ShownMetric("expected_calibration_error", "ECE", "mean |confidence − accuracy|, {bins} bins"),
    ShownMetric("adaptive_calibration_error", "adaptive ECE", "in {bins} bins of equally many examples"),
    ShownMetric("smooth_calibration_error", "smooth ECE", "without bins; the verdict goes by it"),
    ShownMetric("debiased_calibration_error", "debiased error", "root mean square gap, less scatter"),
    ShownMetric(
        "classwise_calibration_error", "class-wise ECE", "mean over classes of their errors", digits=3
    ),
    ShownMetric("maximum_calibration_error", "maximum error", "largest gap of a bin, however small"),
)
BY_KEY = {metric.key: metric for metric in METRICS}


def estimate_of(found: Calibration, key: str) -> Estimate:
    """A metric and its interval."""
    return Estimate(float(getattr(found, key)), *found.intervals[key])


def metric_rows(columns: Mapping[str, Calibration], bins: int, classes: int) -> list[dict[str, Any]]:
    """A row for each metric, with the cells of each column: numbers for files, and how they are shown."""
    rows = []
    for metric in METRICS:
        if metric.key == "top_5_accuracy" and classes <= 5:
            continue
        row: dict[str, Any] = {"metric": metric.name}
        for name, found in columns.items():
            value, interval = float(getattr(found, metric.key)), found.intervals.get(metric.key)
            low, high = interval or (None, None)
            row |= {name: value, f"{name}_low": low, f"{name}_high": high}
            row[f"{name}_shown"] = metric.show(value, interval)
        rows.append({**row, "meaning": metric.meaning.format(bins=bins)})
    return rows
