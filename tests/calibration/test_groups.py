from __future__ import annotations

import math

import pytest
import torch

from calibration import exact
from softtargets.calibration.groups import Groups, equal_mass, frequencies, smoothed
from softtargets.calibration.metrics import top_label


def some_groups():
    logits, y = exact.sampled()
    return Groups.of_examples(*top_label(logits.softmax(-1), y))


def test_groups_are_the_distinct_confidences():
    p = torch.tensor([[0.75, 0.25], [0.5, 0.5], [0.25, 0.75], [1.0, 0.0]])
    found = Groups.of_examples(*top_label(p, torch.tensor([0, 1, 0, 0])))
    assert found.counts.tolist() == [1, 2, 1]
    assert found.confidence.tolist() == [0.5, 1.5, 1]
    assert found.correct.tolist() == [0, 1, 1]
    assert found.residuals.tolist() == [0.125, 0.125, 0]


@pytest.mark.parametrize("bins", [1, 3, 15, 500])
def test_bins_of_equal_mass_are_equally_full_and_use_everything(bins):
    groups = some_groups()
    shares = equal_mass(groups, bins)
    assert (groups.counts @ shares).tolist() == pytest.approx([groups.examples / bins] * bins)
    assert shares.sum(1).tolist() == pytest.approx([1] * len(groups.counts))


@pytest.mark.parametrize("width", [0.01, 0.1, 0.5])
def test_smoothing_is_the_reflected_gaussian(width):
    places, steps = torch.tensor([0.0, 0.3, 0.95], dtype=torch.float64), 4096
    masses = torch.tensor([0.2, -0.5, 0.4], dtype=torch.float64)
    found = smoothed(frequencies(places, masses, steps), torch.tensor(width, dtype=torch.float64))
    assert float(found.sum()) == pytest.approx(0.1)
    for node in (80, 1200, 2400, 4000):
        t = node / steps
        density = sum(
            m * math.exp(-0.5 * ((t - sign * x - 2 * shift) / width) ** 2) / (width * math.sqrt(2 * math.pi))
            for x, m in zip(places.tolist(), masses.tolist(), strict=True)
            for sign in (1, -1)
            for shift in range(-4, 5)
        )
        assert float(found[node]) * steps == pytest.approx(density, abs=0.02)


def test_wide_smoothing_leaves_the_mean_residual():
    groups = some_groups()
    masses = smoothed(frequencies(groups.places, groups.residuals), torch.tensor(5.0, dtype=torch.float64))
    assert float(masses.abs().sum()) == pytest.approx(abs(float(groups.residuals.sum())))
