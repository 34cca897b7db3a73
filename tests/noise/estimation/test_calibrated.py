from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from softtargets.noise import assign_folds
from softtargets.noise.estimation.calibrated import calibrated
from softtargets.noise.estimation.sample import as_sample


def overconfident(times=2.0, examples=4000):
    random = np.random.default_rng(0)
    logits = torch.from_numpy(2 * random.standard_normal((examples, 5)))
    labels = torch.multinomial(logits.softmax(1), 1, generator=torch.Generator().manual_seed(0))[:, 0]
    return labels, (times * logits).softmax(1)


def best_temperature(probabilities, labels):
    def loss(inverse):
        return torch.nn.functional.cross_entropy(probabilities.clamp(min=1e-6).log() * inverse, labels).item()

    return 1 / minimize_scalar(loss, bounds=(0.01, 10), method="bounded", options={"xatol": 1e-9}).x


def test_the_temperature_undoes_overconfidence():
    _, temperature = calibrated(as_sample(*overconfident(2.0)))
    assert temperature == pytest.approx(2.0, abs=0.1)


def test_no_label_has_a_say_in_its_own_probabilities():
    labels, probabilities = overconfident()
    found, _ = calibrated(as_sample(labels, probabilities))
    first = torch.from_numpy(assign_folds(labels, 2)) == 0
    for own in (first, ~first):
        temperature = best_temperature(probabilities[~own], labels[~own])
        expected = (probabilities[own].clamp(min=1e-6).log() / temperature).softmax(1)
        torch.testing.assert_close(found.probabilities[own], expected, rtol=1e-3, atol=1e-6)


def test_zeros_and_ones_are_no_infinities():
    labels, _ = overconfident(examples=300)
    hard = torch.eye(5)[labels.roll(1)]
    found, temperature = calibrated(as_sample(labels, hard))
    assert bool(torch.isfinite(found.probabilities).all())
    assert temperature > 1


@pytest.mark.parametrize("examples", [1, 2, 3, 4, 7])
def test_a_handful_of_examples_is_enough(examples):
    labels, probabilities = overconfident(examples=examples)
    found, _ = calibrated(as_sample(labels, probabilities, every_class=False))
    assert found.probabilities.sum(1).tolist() == pytest.approx([1.0] * examples)
