from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from softtargets.calibration.bias import bias_corrected_temperature
from softtargets.calibration.temperature import temperature_scaling


def nll(logits, labels):
    return -float(
        np.mean(log_softmax(np.asarray(logits, np.float64), axis=1)[np.arange(len(labels)), labels])
    )


def sampled(count=400, classes=4, seed=0, temperature=2.0):
    random = np.random.default_rng(seed)
    z = 2 * random.standard_normal((count, classes))
    labels = (z + random.gumbel(size=z.shape)).argmax(1)
    bias = random.uniform(-1, 1, classes)
    return temperature * (z - bias), labels, bias - bias.mean()


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("ridge", [0.01, 3.0])
def test_the_numbers_scipy_finds_with_differences_for_derivatives(seed, ridge):
    logits, labels, _ = sampled(seed=seed)

    def loss(at):
        return 400 * nll(at[0] * logits + at[1:], labels) + ridge / 2 * (at[1:] ** 2).sum()

    found = minimize(loss, np.array([1.0, 0, 0, 0, 0]), method="BFGS", options={"gtol": 1e-4}).x
    fit = bias_corrected_temperature(logits, labels, ridge=ridge)
    assert fit.temperature == pytest.approx(1 / found[0], rel=1e-5)
    assert fit.bias.tolist() == pytest.approx(found[1:] - found[1:].mean(), abs=1e-5)
    assert fit.converged


def test_the_truth_is_found_with_many_examples():
    logits, labels, bias = sampled(count=40_000)
    fit = bias_corrected_temperature(logits, labels)
    assert fit.temperature == pytest.approx(2, rel=0.03)
    assert fit.bias.tolist() == pytest.approx(bias, abs=0.06)


def test_biases_known_in_closed_form():
    # Equal logits: the probabilities are the shares of the labels, whatever the temperature.
    labels = torch.tensor([0] * 50 + [1] * 30 + [2] * 20)
    fit = bias_corrected_temperature(torch.ones(100, 3, dtype=torch.float64), labels, ridge=0)
    shares = np.log([0.5, 0.3, 0.2])
    assert fit.temperature == 1
    assert fit.bias.tolist() == pytest.approx(shares - shares.mean(), abs=1e-7)
    assert fit.nll_after == pytest.approx(-sum(p * math.log(p) for p in (0.5, 0.3, 0.2)), rel=1e-12)


def test_the_mean_probability_of_a_class_is_its_share():
    logits, labels, _ = sampled()
    fit = bias_corrected_temperature(logits, labels, ridge=0)
    found = softmax(fit(logits).numpy(), axis=1).mean(0)
    assert found == pytest.approx(np.bincount(labels) / len(labels), abs=1e-6)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1000), count=st.integers(1, 30), log_size=st.floats(-3, 4.7), single=st.booleans())
def test_the_likelihood_is_never_worse_than_with_a_temperature_alone(seed, count, log_size, single):
    random = np.random.default_rng(seed)
    logits = (10**log_size * random.standard_normal((count, 3))).astype(np.float32 if single else np.float64)
    labels = random.integers(0, 3, count)
    fit = bias_corrected_temperature(logits, labels)
    alone = temperature_scaling(logits, labels)
    assert 0.01 <= fit.temperature <= 100
    assert bool(torch.isfinite(fit.bias).all())
    assert fit.nll_after <= alone.nll_after * (1 + 1e-6) + 1e-6
    assert fit.nll_after <= fit.nll_before
    assert nll(fit(logits).numpy(), labels) == pytest.approx(fit.nll_after, rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("c", [0.25, 7.0])
def test_scaling_the_logits_scales_the_temperature_and_nothing_else(c):
    logits, labels, _ = sampled()
    fit, other = bias_corrected_temperature(logits, labels), bias_corrected_temperature(c * logits, labels)
    assert other.temperature == pytest.approx(c * fit.temperature, rel=1e-6)
    assert other.bias.tolist() == pytest.approx(fit.bias.tolist(), abs=1e-6)


def test_a_constant_added_to_a_row_changes_nothing():
    logits, labels, _ = sampled()
    fit = bias_corrected_temperature(logits, labels)
    other = bias_corrected_temperature(logits + np.linspace(-1e4, 1e4, len(logits))[:, None], labels)
    assert other.temperature == pytest.approx(fit.temperature, rel=1e-6)
    assert other.bias.tolist() == pytest.approx(fit.bias.tolist(), abs=1e-6)


def test_streams_and_ignored_tokens_agree_with_arrays():
    logits, labels, _ = sampled()
    fit = bias_corrected_temperature(logits, labels)
    z = torch.as_tensor(np.concatenate([np.full((9, 4), np.nan), logits]))
    y = torch.as_tensor(np.concatenate([np.full(9, -1), labels]))
    other = bias_corrected_temperature(lambda: [(z[:50], y[:50]), (z[50:], y[50:])], ignore_index=-1)
    assert other.temperature == pytest.approx(fit.temperature, rel=1e-7)
    assert other.examples == 400


def test_a_class_without_examples_is_held_by_the_ridge_and_named():
    logits, labels, _ = sampled(classes=5)
    kept = labels != 3
    fit = bias_corrected_temperature(logits[kept], labels[kept])
    assert fit.absent == (3,)
    assert -30 < float(fit.bias[3]) == float(fit.bias.min())
    assert "such as class 3" in fit.note
    with pytest.raises(ValueError, match="class 3 has no examples"):
        bias_corrected_temperature(logits[kept], labels[kept], ridge=0)


def test_the_ends_of_the_range_are_said():
    logits = torch.tensor([[3.0, 0.0], [0.0, 2.0], [0.5, 0.0]])
    low = bias_corrected_temperature(logits, torch.tensor([0, 1, 0]))
    assert (low.temperature, "no confidence is too high" in low.note) == (0.01, True)
    # Of each class half are right and half are wrong: neither temperature nor biases can help.
    high = bias_corrected_temperature(logits[:2].repeat(2, 1), torch.tensor([0, 1, 1, 0]))
    assert (high.temperature, "no better than chance" in high.note) == (100, True)


def test_calling_it_divides_and_adds():
    logits, labels, _ = sampled()
    fit = bias_corrected_temperature(logits, labels)
    expected = logits / fit.temperature + fit.bias.numpy()
    assert np.allclose(fit(logits).numpy(), expected, rtol=1e-12)
    with pytest.raises(ValueError, match=r"logits must be \(..., 4\)"):
        fit(torch.zeros(()))
