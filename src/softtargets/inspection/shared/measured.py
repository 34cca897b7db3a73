"""The calibration of one file, as it is and scaled: what calibrate says of one and compare of two, metric by metric."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import softtargets.calibration as calibration
from softtargets.calibration import Calibration, Cells, ConfidenceCalibration, calibration_of
from softtargets.inspection.shared.numbers import (
    LEVEL,
    Estimate,
    between,
    estimated,
    number,
    percent,
)
from softtargets.inspection.shared.reading import Understood
from softtargets.inspection.shared.two_passes import Curves, FirstPass, SecondPass
from softtargets.predictions import Predictions
from softtargets.selection import Selection, selection_of


@dataclass(frozen=True)
class Scaled:
    """Temperature scaling: the temperature of all examples, and what it does to examples it was not fitted to.

    `after` measures each example scaled by the temperature of the folds it is not in; `temperatures` are those, and
    `gain` is how much lower the negative log-likelihood becomes.
    """

    fit: calibration.TemperatureFit
    after: Calibration
    temperatures: tuple[float, ...]
    gain: Estimate

    @property
    def is_known(self) -> bool:
        """Whether there is a temperature to recommend at all."""
        return self.fit.ending == "converged"

    @property
    def temperature(self) -> Estimate:
        """Of all examples, with its interval."""
        return Estimate(self.fit.temperature, *self.fit.interval(LEVEL))

    @property
    def shown(self) -> str:
        """The temperature in words, with a third decimal where two would not tell the ends of its interval apart."""
        found = self.temperature
        return estimated(found, 2 if found.high - found.low > 0.02 else 3, share=False)

    def numbers(self) -> dict[str, Any]:
        """The temperature as plain data."""
        fit = self.fit
        return {
            "value": fit.temperature,
            "interval": list(fit.interval(LEVEL)),
            "standard_error": fit.standard_error,
            "ending": fit.ending,
            "note": fit.note,
            "held_out": list(self.temperatures),
            "gain": vars(self.gain),
        }


@dataclass(frozen=True)
class Measured:
    """Calibration of one file, before and after scaling.

    `overconfidence` is mean confidence less accuracy; `scaled` is None where there are too few examples to hold some
    out. `selection` is what rejecting the least confident does, by the maximum probability as it is. `zeros` are
    probabilities of exactly 0; where one of them is a label's, `nll_with_floor` is the likelihood that is then finite.
    """

    understood: Understood
    before: Calibration
    overconfidence: Estimate
    curves: Curves
    scaled: Scaled | None
    selection: Selection
    zeros: calibration.ZeroCounts
    nll_with_floor: Estimate | None

    @property
    def sweep(self) -> calibration.TemperatureSweep:
        """Likelihood and expected calibration error over temperature."""
        nll, curves = zip(*self.curves.values(), strict=True)
        errors = tuple(curve.expected_calibration_error for curve in curves)
        return calibration.TemperatureSweep(tuple(self.curves), nll, errors, self.understood.examples)

    @property
    def best(self) -> float | None:
        """The fitted temperature, if there is one to recommend."""
        return self.scaled.fit.temperature if self.scaled and self.scaled.is_known else None

    @property
    def after(self) -> Calibration | None:
        """Calibration of examples that the temperature was not fitted to."""
        return self.scaled.after if self.scaled else None


def measured(predictions: Predictions, first: FirstPass, second: SecondPass | None) -> Measured:
    """What two passes have found; without the second nothing is said about scaling."""
    before = calibration_of(first.sums, level=LEVEL)
    curves = first.grid.curves()
    # Of probabilities the bins are those of the numbers in the file, not of logarithms and back.
    curves[1.0] = (curves[1.0][0], before.reliability)
    scaled = None
    if second is not None:
        after = calibration_of(second.sums, level=LEVEL)
        scaled = Scaled(second.fit(), after, second.temperatures, second.gain())
    found = Measured(
        understood=Understood.of(predictions),
        before=before,
        overconfidence=overconfidence(first.sums),
        curves=curves,
        scaled=scaled,
        selection=selection_of(first.ordered.curve(), level=LEVEL, origin=1.0),
        zeros=first.zeros,
        nll_with_floor=first.nll_with_floor(),
    )
    return found if second is None else also_at(found, found.best, second, 0)


def also_at(found: Measured, temperature: float | None, second: SecondPass, place: int) -> Measured:
    """Curves with one temperature more: of those that a second pass has shown, the one at `place` is next to it."""
    if temperature is None or temperature == 1:
        return found
    curves = {**found.curves, temperature: second.shown()[place]}
    return replace(found, curves=dict(sorted(curves.items())))


def overconfidence(sums: Cells) -> Estimate:
    """Mean confidence less accuracy, from the cells of a stream."""
    counts, correct = sums.cell_counts.double(), sums.cell_correct.double()
    confidence = sums.cell_confidence
    mean = confidence / counts.clamp(min=1)
    squares = (confidence * mean - 2 * mean * correct + correct).sum()
    found = Estimate.of_mean(float((confidence - correct).sum()), float(squares), int(counts.sum()))
    if 0 < int(correct.sum()) < int(counts.sum()):
        return found
    # Where all are right, or none, they do not scatter: the accuracy may still be another.
    low, high = calibration.wilson(correct.sum() / counts.sum(), counts.sum(), LEVEL)
    said = confidence.sum() / counts.sum()
    return Estimate(found.value, float(said - high), float(said - low))


def numbers_of(found: Calibration | ConfidenceCalibration | None) -> dict[str, Any] | None:
    """A calibration as plain data: each metric, its interval, the bins."""
    if found is None:
        return None
    scores = (
        {"brier_decomposition": vars(found.brier_decomposition)} if isinstance(found, Calibration) else {}
    )
    return {
        **replace(found, intervals={}).scalars(),
        **scores,
        "intervals": {name: list(ends) for name, ends in found.intervals.items()},
        "corrected": found.corrected,
        "reliability": [vars(one) for one in found.reliability.table(LEVEL)],
    }


LITTLE = 0.1  # of an interval's width: corrections below say nothing


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
    ShownMetric("expected_calibration_error", "ECE", "|confidence − accuracy|, {bins} bins"),
    ShownMetric("adaptive_calibration_error", "adaptive ECE", "in {bins} bins of equally many examples"),
    ShownMetric("smooth_calibration_error", "smooth ECE", "without bins; the verdict is based on it"),
    ShownMetric("debiased_calibration_error", "debiased error", "root mean square gap, less scatter"),
    ShownMetric(
        "classwise_calibration_error", "class-wise ECE", "mean over classes of their errors", True, 3
    ),
    ShownMetric("maximum_calibration_error", "maximum error", "largest gap of a bin, however small"),
)
BY_KEY = {metric.key: metric for metric in METRICS}


def estimate_of(found: Calibration | ConfidenceCalibration, key: str) -> Estimate:
    """A metric as it was measured, and its interval."""
    return Estimate(float(getattr(found, key)), *found.intervals[key])


def corrected_estimate(found: Calibration | ConfidenceCalibration, key: str) -> Estimate:
    """The same, corrected for scatter: it lies inside its interval."""
    return Estimate(found.corrected[key], *found.intervals[key])


def metric_rows(
    columns: Mapping[str, Calibration] | Mapping[str, ConfidenceCalibration],
    bins: int,
    classes: int,
    floored: Mapping[str, Estimate] | None = None,
) -> list[dict[str, Any]]:
    """A row for each metric, with the cells of each column: numbers for files, and how they are shown.

    Errors that scatter makes larger are shown corrected, and what they were before in a row beneath, where it matters.
    `floored` are the likelihoods that are infinite unless 0 counts as a small number, by column.
    """
    rows = []
    for metric in METRICS:
        if metric.key == "top_5_accuracy" and classes <= 5:
            continue
        if not all(hasattr(found, metric.key) for found in columns.values()):
            continue  # it takes the scores of all classes
        row: dict[str, Any] = {"metric": metric.name}
        beneath: dict[str, Any] = {}
        for name, found in columns.items():
            value, interval = float(getattr(found, metric.key)), found.intervals.get(metric.key)
            best = found.corrected.get(metric.key, value)
            low, high = interval or (None, None)
            row |= {name: value, f"{name}_low": low, f"{name}_high": high, f"{name}_corrected": best}
            row[f"{name}_shown"] = metric.show(best, None if math.isinf(value) else interval)
            beneath |= {name: value, f"{name}_shown": metric.show(value)}
        rows.append({**row, "meaning": metric.meaning.format(bins=bins)})
        if any(_matters(found, metric.key) for found in columns.values()):
            meaning = "with scatter, as papers report it"
            rows.append({"metric": f"{metric.name}, uncorrected", **beneath, "meaning": meaning})
        if metric.key == "negative_log_likelihood" and floored:
            finite = {
                name: floored.get(name) or estimate_of(found, metric.key) for name, found in columns.items()
            }
            shown = {f"{name}_shown": estimated(one, 4, share=False) for name, one in finite.items()}
            cells = {key: value for name, one in finite.items() for key, value in one.cells(name).items()}
            rows.append({"metric": "NLL, finite", **cells, **shown, "meaning": "with a small number for 0"})
    return rows


def _matters(found: Calibration | ConfidenceCalibration, key: str) -> bool:
    """Whether correction changes an error by more than nothing, compared with the width of its interval."""
    if key not in found.corrected:
        return False
    low, high = found.intervals[key]
    return abs(float(getattr(found, key)) - found.corrected[key]) > LITTLE * (high - low)
