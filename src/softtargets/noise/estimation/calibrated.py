"""Probabilities that mean what they say about the given labels, each by a temperature that its label had no say in."""

from __future__ import annotations

import torch
from torch import Tensor

from softtargets.calibration import temperature_scaling
from softtargets.noise.estimation.folds import assign_folds
from softtargets.noise.estimation.sample import NoisySample

FOLDS = 5
SMALLEST = 1e-6  # a zero of a model that counts is no smaller than this


def calibrated(data: NoisySample) -> tuple[NoisySample, float]:
    """The sample with calibrated probabilities, and the temperature that all examples together ask for.

    Cross-fitted: the examples of a fold are scaled by the temperature of the others. Probabilities of exactly 0, such as
    those of a random forest, count as half the smallest that is not, but as no less than 1e-6.
    """
    given = data.probabilities
    floor = max(float(given[given > 0].min()) / 2, SMALLEST)
    logits = given.clamp(min=floor).log()
    if len(data.labels) < FOLDS:
        return data, 1.0
    folds = torch.from_numpy(assign_folds(data.labels, FOLDS))
    scaled = torch.empty_like(logits)
    for fold in range(FOLDS):
        own = folds == fold
        scaled[own] = _scaled(logits[own], temperature_scaling(logits[~own], data.labels[~own]).temperature)
    return data._replace(probabilities=scaled), temperature_scaling(logits, data.labels).temperature


def _scaled(logits: Tensor, temperature: float) -> Tensor:
    return (logits / temperature).softmax(1)
