"""Do more numbers than a temperature help? Biases, or a scale and a bias for each class, on examples held out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

import softtargets.calibration as calibration
from softtargets.inspection.shared.numbers import Estimate
from softtargets.inspection.shared.two_passes import nll_of

MOST_CLASSES = 256  # beyond, fits read the sample too often for what they could find out
PER_CLASS = 20  # examples for each class: a scale and a bias are not known from fewer
SAMPLE = 1 << 21  # numbers that are kept in memory for these fits
FOLDS = 3

FITS: dict[str, Callable[[calibration.Chunks], calibration.Scaling]] = {
    "temperature and a bias for each class": calibration.bias_corrected_temperature,
    "a scale and a bias for each class (vector scaling)": calibration.vector_scaling,
}


@dataclass(frozen=True)
class ScalingGains:
    """What each way of scaling gains over a temperature alone, in nats per example; or why it was not tried."""

    examples: int
    gains: dict[str, Estimate]
    why_not: str = ""


def sample_size(examples: int, classes: int) -> int:
    """How many rows to keep for `richer_scalings`; 0 if it has no use for any."""
    return 0 if why_not(examples, classes) else min(examples, SAMPLE // classes)


def why_not(examples: int, classes: int) -> str:
    """Why richer ways of scaling are not tried; empty if they are."""
    if classes > MOST_CLASSES:
        return f"it was not tried, since there are {classes:,} classes, more than {MOST_CLASSES}"
    rows = min(examples, SAMPLE // classes)
    if rows < PER_CLASS * classes:
        return (
            f"it was not tried, since {rows:,} examples are too few for {classes:,} classes: "
            f"numbers for each class need at least {PER_CLASS} examples per class"
        )
    return ""


def richer_scalings(logits: Tensor, labels: Tensor) -> ScalingGains:
    """Fit to two thirds of the examples and measure on the others, for each third, against a temperature alone.

    The gain of an example is its negative log-likelihood with a temperature less that with more numbers; its mean has
    the standard error of paired differences.
    """
    chunks = calibration.Chunks(lambda: [(logits, labels)], checked=True)  # by the first pass
    fold = calibration.fold_of(0, len(labels), FOLDS)
    gains = {name: torch.zeros(len(labels), dtype=torch.float64) for name in FITS}
    for held_out in range(FOLDS):
        others = calibration.in_fold(chunks, held_out, FOLDS, held_out=False)
        rows = (fold == held_out).nonzero().flatten()
        z, y = logits[rows], labels[rows]
        alone = nll_of(calibration.temperature_scaling(others)(z), y)
        for name, fit in FITS.items():
            gains[name][rows] = alone - nll_of(fit(others)(z), y)
    found = {
        name: Estimate.of_mean(float(gain.sum()), float(gain.square().sum()), len(gain))
        for name, gain in gains.items()
    }
    return ScalingGains(len(labels), found)
