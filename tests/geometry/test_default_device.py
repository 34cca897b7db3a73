"""A program may have another default device than that of its data."""

from __future__ import annotations

import pytest
import torch

from softtargets import errors, geometry
from softtargets.noise import CORRUPTIONS
from tests.default_device import default_device

GENERATOR = torch.Generator().manual_seed(0)
FEATURES, WEIGHTS = torch.randn(60, 5, generator=GENERATOR), torch.randn(4, 5, generator=GENERATOR)
LABELS = torch.arange(60) % 4
PREDICTED = LABELS.roll(1)
INSTRUMENTS = {
    "plane": lambda: geometry.project(FEATURES, geometry.template_plane(WEIGHTS, (0, 1, 2))),
    "spread": lambda: geometry.cluster_spread(FEATURES[:, :2], LABELS),
    "collapse": lambda: geometry.neural_collapse(FEATURES, LABELS, WEIGHTS),
    "simplex": lambda: geometry.simplex(WEIGHTS),
    "triples": lambda: geometry.pick_triples(WEIGHTS),
    "overlap": lambda: errors.error_overlap(PREDICTED, LABELS.roll(2), LABELS),
    "confusion": lambda: errors.confusion_matrix(PREDICTED, LABELS, 4),
    "frequency": lambda: errors.accuracy_by_frequency(PREDICTED, LABELS, [10, 20, 30, 40]),
    "coarse": lambda: errors.fine_and_coarse_errors(PREDICTED, LABELS, [0, 0, 1, 1]),
    "noise": lambda: CORRUPTIONS["symmetric"](LABELS, classes=4, seed=0, rate=0.2),
}


@pytest.mark.parametrize("name", INSTRUMENTS)
def test_the_default_device_does_not_matter_to_data_elsewhere(name):
    expected = INSTRUMENTS[name]()
    with default_device("meta"):
        found = INSTRUMENTS[name]()
    assert str(found) == str(expected)
