from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate

from information.exact import by_quadrature
from softtargets.information import mixture_information


@pytest.mark.parametrize("std", [0.05, 0.3, 1.0, 4.0])
@pytest.mark.parametrize("examples", [1, 2, 7, 30])
def test_against_adaptive_quadrature(examples, std):
    means = np.random.default_rng(examples).normal(size=examples)
    assert mixture_information(means, std) == pytest.approx(by_quadrature(means, std), abs=1e-8)


@pytest.mark.parametrize("distance", [0.0, 0.1, 1.0, 3.0, 7.0, 12.0, 17.9, 18.1, 40.0])
def test_two_examples_are_a_binary_channel(distance):
    """I = log 2 - E log(1 + exp(-(distance^2 / 2 + distance t))), t standard normal."""

    def lost(t):
        return (
            np.logaddexp(0, -(distance**2 / 2 + distance * t)) * math.exp(-t * t / 2) / math.sqrt(2 * math.pi)
        )

    points = [-distance / 2] if distance < 30 else None
    expected = math.log(2) - integrate.quad(lost, -15, 15, points=points, epsabs=1e-12, limit=500)[0]
    assert mixture_information(np.array([5.0, 5.0 + distance]), 1.0) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("spread", [0.5, 2.0, 10.0])
def test_many_normal_means_are_a_gaussian_channel(spread):
    """Shannon 1948: 0.5 log(1 + signal / noise); the means are quantiles of a normal distribution."""
    normal = torch.distributions.Normal(0.0, spread)
    means = normal.icdf((torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000)
    assert mixture_information(means, 1.0) == pytest.approx(0.5 * math.log1p(spread**2), abs=1e-3)


def test_limits():
    means = torch.tensor([0.0, 1.0, 2.0, 3.0, 4.0])
    assert mixture_information(means, 1e-3) == pytest.approx(math.log(5), abs=1e-12)
    assert mixture_information(means, 0.0) == pytest.approx(math.log(5), abs=1e-12)
    assert mixture_information(means, 1e6) == pytest.approx(0, abs=1e-9)
    assert mixture_information(torch.tensor([3.0] * 4), 0.0) == 0
    assert mixture_information(torch.tensor([3.0] * 4), 1.0) == 0
    assert mixture_information(torch.tensor([0, 0, 9, 9]), 0.1) == pytest.approx(math.log(2), abs=1e-12)
    shares = (0.5, 0.25, 0.25)
    expected = -math.fsum(share * math.log(share) for share in shares)
    assert mixture_information(torch.tensor([0, 0, 5, 9]), 0.0) == pytest.approx(expected, abs=1e-12)
    assert mixture_information(torch.tensor([7.0]), 1.0) == 0


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), shift=st.floats(-50, 50), scale=st.floats(0.01, 100))
def test_moving_scaling_and_order_change_nothing(seed, shift, scale):
    generator = np.random.default_rng(seed)
    means, std = generator.normal(size=12), generator.uniform(0.05, 2)
    there = mixture_information(means, std)
    assert 0 <= there <= math.log(12)
    other = generator.permutation(scale * means + shift)
    assert mixture_information(other, scale * std) == pytest.approx(there, abs=1e-9)
    assert mixture_information(-means, std) == pytest.approx(there, abs=1e-9)


def test_what_is_refused():
    with pytest.raises(ValueError, match=r"means must be \(examples,\), at least one, not \(2, 2\)"):
        mixture_information(torch.zeros(2, 2), 1.0)
    with pytest.raises(ValueError, match=r"not \(0,\)"):
        mixture_information(torch.zeros(0), 1.0)
    with pytest.raises(ValueError, match="means contain NaN or infinite values"):
        mixture_information(torch.tensor([0.0, torch.inf]), 1.0)
    with pytest.raises(ValueError, match=r"means must be real numbers, not torch\.bool"):
        mixture_information(torch.tensor([True]), 1.0)
    for std in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match=f"std must be a finite number, 0 or more, not {std}"):
            mixture_information(torch.zeros(2), std)
