"""Who takes part: each turns logits and labels into an ECE, and ours into everything else besides."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.bench import Contestant
from benchmarks.calibration.grid import BINS
from benchmarks.calibration.logits import Examples
from benchmarks.calibration.results import INTERVALS, OURS, STREAMED
from benchmarks.failures import Absent, installed
from softtargets.calibration import CalibrationMetric, measure_calibration

Run = Callable[[Examples], float]


def contestant(name: str, device: torch.device, batch: int) -> Contestant:
    """One contestant by its name; `Absent` where there is none."""
    makers: dict[str, Callable[[], Run]] = {
        OURS: lambda: _ours(None),
        INTERVALS: lambda: _ours(0.95),
        STREAMED: lambda: _streamed(
            lambda classes: CalibrationMetric(classes, from_logits=True, bins=BINS).to(device), batch
        ),
        "torchmetrics": _torchmetrics,
        "torchmetrics streamed": lambda: _torchmetrics_streamed(device, batch),
        "netcal": lambda: _netcal(device),
    }
    return Contestant(name, makers[name]())


def _ours(level: float | None) -> Run:
    def run(examples: Examples) -> float:
        found = measure_calibration(*examples, from_logits=True, bins=BINS, level=level)
        return found.expected_calibration_error

    return run


def _streamed(make: Callable[[int], Any], batch: int) -> Run:
    """A metric that is given some examples at a time."""

    def run(examples: Examples) -> float:
        metric = make(examples.logits.shape[1])
        for logits, labels in zip(*(part.split(batch) for part in examples), strict=True):
            metric.update(logits, labels)
        found = metric.compute()
        return float(getattr(found, "expected_calibration_error", found))

    return run


def _torchmetrics() -> Run:
    """The function, with its own softmax and its own checks."""
    function = installed("torchmetrics.functional.classification").multiclass_calibration_error
    return lambda examples: float(function(*examples, num_classes=examples.logits.shape[1], n_bins=BINS))


def _torchmetrics_streamed(device: torch.device, batch: int) -> Run:
    """The class, which keeps two numbers of every example."""
    kind = installed("torchmetrics.classification").MulticlassCalibrationError
    return _streamed(lambda classes: kind(num_classes=classes, n_bins=BINS).to(device), batch)


def _netcal(device: torch.device) -> Run:
    """It takes probabilities in numpy: the softmax, by torch with all its threads, is part of what it needs."""
    if device.type != "cpu":
        raise Absent("netcal works on the CPU only")
    ece = installed("netcal.metrics").ECE(BINS)
    return lambda examples: float(
        ece.measure(torch.softmax(examples.logits, 1).numpy(), examples.labels.numpy())
    )
