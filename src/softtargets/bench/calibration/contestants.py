"""Who takes part: each turns logits and labels into an ECE, and ours into everything else besides."""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Callable
from types import ModuleType

import torch
from torch import Tensor

from softtargets.bench.calibration.grid import BINS
from softtargets.bench.calibration.logits import Examples
from softtargets.bench.calibration.results import INTERVALS, OURS, STREAMED
from softtargets.bench.failing import Absent
from softtargets.calibration import CalibrationMetric, measure_calibration

Contestant = Callable[[Examples], float]


def contestant(name: str, device: torch.device, batch: int) -> Contestant:
    """One contestant by its name; `Absent` where there is none."""
    makers: dict[str, Callable[[], Contestant]] = {
        OURS: lambda: _ours(None),
        INTERVALS: lambda: _ours(0.95),
        STREAMED: lambda: _ours_streamed(device, batch),
        "torchmetrics": _torchmetrics,
        "torchmetrics streamed": lambda: _torchmetrics_streamed(device, batch),
        "netcal": lambda: _netcal(device),
    }
    return makers[name]()


def _ours(level: float | None) -> Contestant:
    def run(examples: Examples) -> float:
        found = measure_calibration(*examples, from_logits=True, bins=BINS, level=level)
        return found.expected_calibration_error

    return run


def _ours_streamed(device: torch.device, batch: int) -> Contestant:
    def run(examples: Examples) -> float:
        metric = CalibrationMetric(examples.logits.shape[1], from_logits=True, bins=BINS).to(device)
        for logits, labels in _batches(examples, batch):
            metric.update(logits, labels)
        return metric.compute().expected_calibration_error

    return run


def _torchmetrics() -> Contestant:
    """The function, with its own softmax and its own checks."""
    function = _module("torchmetrics.functional.classification").multiclass_calibration_error

    def run(examples: Examples) -> float:
        return float(function(*examples, num_classes=examples.logits.shape[1], n_bins=BINS))

    return run


def _torchmetrics_streamed(device: torch.device, batch: int) -> Contestant:
    """The class, which keeps two numbers of every example."""
    kind = _module("torchmetrics.classification").MulticlassCalibrationError

    def run(examples: Examples) -> float:
        metric = kind(num_classes=examples.logits.shape[1], n_bins=BINS).to(device)
        for logits, labels in _batches(examples, batch):
            metric.update(logits, labels)
        return float(metric.compute())

    return run


def _netcal(device: torch.device) -> Contestant:
    """It takes probabilities in numpy: the softmax, by torch with all its threads, is part of what it needs."""
    if importlib.util.find_spec("netcal") is not None and device.type != "cpu":
        raise Absent("netcal works on the CPU only")
    ece = _module("netcal.metrics").ECE(BINS)

    def run(examples: Examples) -> float:
        return float(ece.measure(torch.softmax(examples.logits, 1).numpy(), examples.labels.numpy()))

    return run


def _batches(examples: Examples, batch: int) -> zip[tuple[Tensor, Tensor]]:
    return zip(examples.logits.split(batch), examples.labels.split(batch), strict=True)


def _module(name: str) -> ModuleType:
    package = name.partition(".")[0]
    if importlib.util.find_spec(package) is None:
        raise Absent(f"{package} is not installed (pip install {package})")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about parts of it that nobody here uses
        return importlib.import_module(name)
