from __future__ import annotations

import math

import pytest
import torch

from softtargets.losses.functional import smoothed_cross_entropy, soft_cross_entropy

from .making import batch, cross_entropy, log_softmax, smoothed_target, softmax

TOLERANCES = [
    (torch.float64, 1e-13),
    (torch.float32, 1e-5),
    (torch.bfloat16, 5e-2),
    (torch.float16, 5e-3),
]


@pytest.mark.parametrize(("dtype", "tolerance"), TOLERANCES)
@pytest.mark.parametrize("spread", ["all", "others"])
@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.9, 1.0])
@pytest.mark.parametrize("classes", [2, 3, 10])
def test_smoothed_cross_entropy_against_loops(dtype, tolerance, spread, alpha, classes):
    logits, labels = batch(5, classes, dtype)
    expected = [
        cross_entropy(smoothed_target(label, classes, alpha, spread), row)
        for row, label in zip(logits.double().tolist(), labels.tolist(), strict=True)
    ]
    found = smoothed_cross_entropy(logits, labels, alpha, spread)
    assert (found.shape, found.dtype) == ((5,), dtype)
    assert found.tolist() == pytest.approx(expected, rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("spread", ["all", "others"])
def test_without_smoothing_it_is_the_negative_log_probability_of_the_label(spread):
    logits, labels = batch()
    expected = [-log_softmax(row)[label] for row, label in zip(logits.tolist(), labels.tolist(), strict=True)]
    assert smoothed_cross_entropy(logits, labels, 0.0, spread).tolist() == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("classes", [2, 3, 10, 100])
@pytest.mark.parametrize("others", [0.0, 0.05, 0.5])
def test_both_spreads_agree_once_alpha_is_converted(classes, others):
    logits, labels = batch(8, classes)
    everywhere = others * classes / (classes - 1)
    torch.testing.assert_close(
        smoothed_cross_entropy(logits, labels, everywhere, "all"),
        smoothed_cross_entropy(logits, labels, others, "others"),
        rtol=1e-12,
        atol=1e-12,
    )


def test_the_spreads_differ_for_the_same_alpha():
    logits, labels = batch()
    every = smoothed_cross_entropy(logits, labels, 0.3, "all")
    others = smoothed_cross_entropy(logits, labels, 0.3, "others")
    assert not torch.allclose(every, others)


@pytest.mark.parametrize("spread", ["all", "others"])
def test_huge_logits_stay_finite(spread):
    logits = torch.tensor([[1e4, -1e4, 0.0], [-1e4, 1e4, 0.0]])
    found = smoothed_cross_entropy(logits, torch.tensor([0, 0]), 0.1, spread)
    target = smoothed_target(0, 3, 0.1, spread)
    expected = [cross_entropy(target, row) for row in logits.double().tolist()]
    assert found.tolist() == pytest.approx(expected, rel=1e-5)


def test_equal_logits_cost_the_logarithm_of_the_number_of_classes():
    for spread in ("all", "others"):
        found = smoothed_cross_entropy(torch.zeros(3, 7).double(), torch.tensor([0, 3, 6]), 0.4, spread)
        assert found.tolist() == pytest.approx([math.log(7)] * 3, rel=1e-14)


@pytest.mark.parametrize("spread", ["all", "others"])
@pytest.mark.parametrize("alpha", [0.0, 0.3])
def test_the_gradient_is_probability_minus_target(spread, alpha):
    logits, labels = batch(3, 5)
    logits.requires_grad_()
    smoothed_cross_entropy(logits, labels, alpha, spread).sum().backward()
    for row, label, gradient in zip(logits.tolist(), labels.tolist(), logits.grad.tolist(), strict=True):
        target = smoothed_target(label, 5, alpha, spread)
        expected = [p - q for p, q in zip(softmax(row), target, strict=True)]
        assert gradient == pytest.approx(expected, abs=1e-12)
    assert torch.autograd.gradcheck(
        lambda z: smoothed_cross_entropy(z, labels, alpha, spread), logits.detach().requires_grad_()
    )


@pytest.mark.parametrize(("dtype", "tolerance"), TOLERANCES)
def test_soft_cross_entropy_against_loops(dtype, tolerance):
    logits, _ = batch(5, 4, dtype)
    targets = torch.softmax(batch(5, 4, seed=1)[0], -1).to(dtype)
    rows = zip(logits.double().tolist(), targets.double().tolist(), strict=True)
    expected = [cross_entropy(target, row) for row, target in rows]
    found = soft_cross_entropy(logits, targets)
    assert (found.shape, found.dtype) == ((5,), dtype)
    assert found.tolist() == pytest.approx(expected, rel=tolerance)


def test_soft_cross_entropy_of_hard_targets_picks_the_label():
    logits, labels = batch()
    hard = torch.zeros_like(logits)
    for position, label in enumerate(labels.tolist()):
        hard[position, label] = 1
    expected = [-log_softmax(row)[label] for row, label in zip(logits.tolist(), labels.tolist(), strict=True)]
    assert soft_cross_entropy(logits, hard).tolist() == pytest.approx(expected, rel=1e-13)


def test_the_gradient_of_soft_cross_entropy():
    logits, _ = batch(3, 4)
    targets = torch.softmax(batch(3, 4, seed=1)[0], -1)
    assert torch.autograd.gradcheck(lambda z: soft_cross_entropy(z, targets), logits.requires_grad_())
