"""Probabilities that mean what they say about the given labels, each by a temperature that its label had no say in."""

from __future__ import annotations

import torch
from torch import Tensor

from softtargets.calibration import temperature_scaling
from softtargets.noise.estimation.folds import assign_folds
from softtargets.noise.estimation.sample import NoisySample

SMALLEST = 1e-6  # a zero of a model that counts is no smaller than this
NUMBERS = 1 << 23  # probabilities that are enough to fit one temperature


def calibrated(data: NoisySample) -> tuple[NoisySample, float]:
    """The sample with calibrated probabilities, and the temperature that is best for all examples together.

    Cross-fitted: each half of the examples is scaled by the temperature of the other. Probabilities of exactly 0, such
    as those of a random forest, count as half the smallest that is not, but as no less than 1e-6. Where all labels are
    predicted right there is no best temperature, and probabilities become 0 and 1.
    """
    given = data.probabilities
    floor = max(float(given[given > 0].min()) / 2, SMALLEST)
    logits = given.clamp(min=floor).log()
    whole = _temperature(logits, data.labels)
    if len(data.labels) < 4:
        return data._replace(probabilities=(logits / whole).softmax(1)), whole
    half = torch.from_numpy(assign_folds(data.labels, 2)) == 0
    scaled = torch.empty_like(logits)
    for own in (half, ~half):
        scaled[own] = (logits[own] / _temperature(logits[~own], data.labels[~own])).softmax(1)
    return data._replace(probabilities=scaled), whole


def _temperature(logits: Tensor, labels: Tensor) -> float:
    step = -(-logits.numel() // NUMBERS)
    return temperature_scaling(logits[::step], labels[::step]).temperature
