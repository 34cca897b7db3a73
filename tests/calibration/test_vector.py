from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import log_softmax

from softtargets.calibration import affine, as_chunks
from softtargets.calibration.temperature import temperature_scaling
from softtargets.calibration.vector import vector_scaling
from softtargets.exceptions import SofttargetsError


def nll(logits, labels):
    return -float(
        np.mean(log_softmax(np.asarray(logits, np.float64), axis=1)[np.arange(len(labels)), labels])
    )


def sampled(count=400, classes=4, seed=0):
    """Labels drawn from softmax(z); what is given are logits from which scales and biases lead back to z."""
    random = np.random.default_rng(seed)
    z = 2 * random.standard_normal((count, classes))
    labels = (z + random.gumbel(size=z.shape)).argmax(1)
    scale, bias = random.uniform(0.5, 2, classes), random.uniform(-1, 1, classes)
    return (z - bias) / scale, labels, scale, bias - bias.mean()


def best_by_scipy(logits, labels, ridge):
    classes = logits.shape[1]

    def loss(parameters):
        scale, bias = parameters[:classes], parameters[classes:]
        penalty = ridge / 2 * (((scale - 1) ** 2).sum() + (bias**2).sum())
        return len(labels) * nll(scale * logits + bias, labels) + penalty

    start = np.concatenate([np.ones(classes), np.zeros(classes)])
    found = minimize(loss, start, method="BFGS", options={"gtol": 1e-4}).x
    return found[:classes], found[classes:] - found[classes:].mean()


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("ridge", [0.01, 3.0])
def test_the_numbers_scipy_finds_with_differences_for_derivatives(seed, ridge):
    logits, labels, _, _ = sampled(seed=seed)
    fit = vector_scaling(logits, labels, ridge=ridge)
    scale, bias = best_by_scipy(logits, labels, ridge)
    assert fit.scale.tolist() == pytest.approx(scale, abs=1e-5)
    assert fit.bias.tolist() == pytest.approx(bias, abs=1e-5)
    assert fit.converged


def test_the_truth_is_found_with_many_examples():
    logits, labels, scale, bias = sampled(count=40_000)
    fit = vector_scaling(logits, labels)
    assert fit.scale.tolist() == pytest.approx(scale, rel=0.05)
    assert fit.bias.tolist() == pytest.approx(bias, abs=0.1)
    assert float(fit.bias.sum()) == pytest.approx(0, abs=1e-12)


def test_what_was_gained_is_what_the_scaled_logits_have():
    logits, labels, _, _ = sampled()
    fit = vector_scaling(logits, labels)
    assert fit.nll_before == pytest.approx(nll(logits, labels), rel=1e-12)
    assert fit.nll_after == pytest.approx(nll(fit(logits).numpy(), labels), rel=1e-10)
    assert fit.nll_after < temperature_scaling(logits, labels).nll_after < fit.nll_before
    assert (fit.examples, fit.absent, fit.note) == (400, (), "")


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1000), count=st.integers(1, 30), log_size=st.floats(-3, 4.7), single=st.booleans())
def test_the_likelihood_never_gets_worse(seed, count, log_size, single):
    random = np.random.default_rng(seed)
    logits = (10**log_size * random.standard_normal((count, 3))).astype(np.float32 if single else np.float64)
    labels = random.integers(0, 3, count)
    fit = vector_scaling(logits, labels)
    assert bool(torch.isfinite(fit.scale).all() & torch.isfinite(fit.bias).all())
    assert fit.nll_after <= fit.nll_before
    # In the precision of the fit a large logit has an error of its own.
    after = nll(fit(logits).numpy(), labels)
    assert after <= nll(logits, labels) + 1e-5 * (1 + after)


def test_the_order_of_examples_and_of_classes_does_not_matter():
    logits, labels, _, _ = sampled()
    fit = vector_scaling(logits, labels)
    other = vector_scaling(logits[::-1].copy(), labels[::-1].copy())
    assert other.scale.tolist() == pytest.approx(fit.scale.tolist(), abs=1e-6)
    order = np.array([2, 0, 3, 1])
    moved = vector_scaling(logits[:, order], np.argsort(order)[labels])
    assert moved.scale.tolist() == pytest.approx(fit.scale[order].tolist(), abs=1e-6)
    assert moved.bias.tolist() == pytest.approx(fit.bias[order].tolist(), abs=1e-6)


def test_single_precision_and_streams_agree():
    logits, labels, _, _ = sampled(count=2000)
    fit = vector_scaling(logits, labels)
    single = vector_scaling(logits.astype(np.float32), labels)
    assert single.scale.tolist() == pytest.approx(fit.scale.tolist(), abs=2e-3)
    assert single.nll_after == pytest.approx(fit.nll_after, abs=1e-6)
    z, y = map(torch.as_tensor, (logits, labels))
    cut = vector_scaling(lambda: [(z[:7], y[:7]), (z[7:1500], y[7:1500]), (z[1500:], y[1500:])])
    assert cut.scale.tolist() == pytest.approx(fit.scale.tolist(), abs=1e-6)


def test_diagonal_units_find_the_same(monkeypatch):
    logits, labels, _, _ = sampled()
    fit = vector_scaling(logits, labels)
    monkeypatch.setattr(affine, "DENSE", 1)
    other = vector_scaling(logits, labels)
    assert other.scale.tolist() == pytest.approx(fit.scale.tolist(), abs=1e-5)
    assert other.bias.tolist() == pytest.approx(fit.bias.tolist(), abs=1e-5)


def test_curvatures_are_the_differences_of_gradients():
    logits, labels, _, _ = sampled(count=50)
    for tied in (False, True):
        problem = affine.Affine(as_chunks(logits, labels), ridge=0.0, tied=tied)
        problem.examples = 50
        problem._count()
        size = 4 + (1 if tied else 4)
        place = np.linspace(0.3, 0.9, size)
        found = problem._curvature(place, np.zeros(size))
        found[:4, :4] -= 0.25 / 4  # what is added for the direction without curvature
        for i in range(size):
            step = np.zeros(size)
            step[i] = 1e-6
            change = (problem._loss(place + step)[1] - problem._loss(place - step)[1]) / 2e-6
            # Gradients have the mean of the biases taken out.
            expected = found[i].copy()
            expected[:4] -= expected[:4].mean()
            assert change.tolist() == pytest.approx(expected.tolist(), abs=1e-7)


def test_a_class_without_examples_is_held_by_the_ridge_and_named():
    logits, labels, _, _ = sampled(classes=5)
    kept = labels != 3
    fit = vector_scaling(logits[kept], labels[kept])
    assert fit.absent == (3,)
    assert float(fit.bias[3]) == float(fit.bias.min()) > -30
    assert "1 of the 5 classes, such as class 3, have no example" in fit.note
    with pytest.raises(
        ValueError, match="class 3 has no examples, so its bias has no optimum without a ridge"
    ):
        vector_scaling(logits[kept], labels[kept], ridge=0)


def test_separable_examples_have_finite_numbers():
    fit = vector_scaling(
        torch.tensor([[3.0, 0.0], [0.0, 2.0]]).repeat(50, 1), torch.tensor([0, 1]).repeat(50)
    )
    assert float(fit.scale.abs().max()) < 20
    assert fit.nll_after < 0.01


def test_tokens_that_are_ignored_may_hold_anything():
    logits, labels, _, _ = sampled()
    padded = np.concatenate([logits, np.full((10, 4), np.nan)])
    fit = vector_scaling(padded, np.concatenate([labels, np.full(10, -100)]), ignore_index=-100)
    assert fit.scale.tolist() == pytest.approx(vector_scaling(logits, labels).scale.tolist(), abs=1e-7)


def test_calling_it_scales_each_class_in_any_shape():
    logits, labels, _, _ = sampled()
    fit = vector_scaling(logits, labels)
    tokens = torch.as_tensor(logits).reshape(10, 40, 4)
    assert torch.equal(fit(tokens), tokens * fit.scale + fit.bias)
    assert fit(tokens.half()).dtype == torch.float32
    with pytest.raises(ValueError, match=r"logits must be \(..., 4\) for 4 classes, not \(2, 3\)"):
        fit(torch.zeros(2, 3))


@pytest.mark.parametrize("ridge", [-1.0, float("nan"), float("inf")])
def test_a_ridge_that_makes_no_sense_is_refused(ridge):
    with pytest.raises(ValueError, match="ridge must be 0 or a positive number, not"):
        vector_scaling(torch.zeros(2, 2), torch.tensor([0, 1]), ridge=ridge)


def test_logits_whose_squares_are_no_numbers_are_refused():
    """By a sentence that is meant for people, as a command line shows it."""
    for error in (ValueError, SofttargetsError):
        with pytest.raises(
            error, match=r"too large for their precision \(up to 1e\+30\); divide all of them"
        ):
            vector_scaling(torch.tensor([[1e30, 0.0], [0.0, 1.0]]), torch.tensor([0, 0]))
    with pytest.raises(SofttargetsError, match="too far apart for their precision"):
        vector_scaling(torch.tensor([[-3e38, 3e38], [0.0, 1.0]]), torch.tensor([0, 0]))
