"""A program may have a default device: what is computed here stays where its data is."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from softtargets import noise
from tests.default_device import default_device

LABELS = np.arange(600) % 3
INPUTS = np.random.default_rng(0).standard_normal((600, 4))
PROBABILITIES = torch.from_numpy(3 * np.eye(3)[LABELS] + INPUTS[:, :3]).softmax(1)


def assessed():
    found = noise.assess_noise(torch.from_numpy(LABELS), PROBABILITIES, resamples=2)
    return [found.low, found.high, found.estimate.interval.matrix_high.sum()]


def estimated(method):
    return lambda: noise.estimate_noise(torch.from_numpy(LABELS), PROBABILITIES, method, resamples=2).matrix


@pytest.mark.parametrize(
    "call",
    [
        lambda: noise.instance(LABELS, INPUTS, 0.3, 3, seed=0),
        lambda: noise.symmetric(LABELS, 0.3, 3, seed=0),
        lambda: noise.class_conditional(LABELS, noise.pair_transitions(0.3, 3), 3, seed=0),
        lambda: noise.assign_folds(LABELS),
        lambda: noise.out_of_fold(lambda rest, held_out: PROBABILITIES[held_out], LABELS),
        lambda: noise.suspicious_examples(LABELS, PROBABILITIES.numpy()).score,
        assessed,
        *(estimated(method) for method in noise.METHODS),
    ],
)
def test_the_default_device_does_not_matter(call):
    expected = call()
    with default_device("meta"):
        found = call()
    np.testing.assert_array_equal(found, expected)
