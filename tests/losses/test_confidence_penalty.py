from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from softtargets.losses import ConfidencePenalty
from softtargets.losses.batch import Batch

from .making import (
    batch,
    by_rows,
    entropy,
    log_softmax,
    one_hot,
    rows,
    shaped,
    softmax,
    value_and_gradient,
    weight_of,
    weighted_cross_entropy,
)


@pytest.mark.parametrize("beta", [0.0, 0.1, 2.5])
@pytest.mark.parametrize("shape", [(), (6,), (3, 2)])
@pytest.mark.parametrize("kind", ["indices", "probabilities"])
@pytest.mark.parametrize("weight", [None, [0.5, 2.0, 1.0, 0.25]])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_the_loss_against_loops(beta, shape, kind, weight, reduction):
    logits, labels, probabilities = shaped(shape, 4)
    if shape:
        labels.view(-1)[1] = -100
    target = labels if kind == "indices" else probabilities

    def one(row, t, taught, label):
        return weighted_cross_entropy(t, row, weight) - beta * weight_of(t, weight) * entropy(softmax(row))

    tensor = torch.tensor(weight, dtype=torch.float64) if weight else None
    found = ConfidencePenalty(beta, weight=tensor, reduction=reduction)(logits, target)
    assert found.shape == (shape if reduction == "none" else ())
    expected = by_rows(one, logits, target, reduction, weight)
    assert found.reshape(-1).tolist() == pytest.approx(
        expected if reduction == "none" else [expected], rel=1e-12
    )


@pytest.mark.parametrize("beta", [0.0, 0.1, 2.5])
def test_the_gradient_by_hand(beta):
    logits, labels = batch(5, 4)
    _, found = value_and_gradient(ConfidencePenalty(beta, reduction="sum"), logits, labels)
    for place, (row, y) in enumerate(zip(rows(logits), labels.tolist(), strict=True)):
        p, log_p = softmax(row), log_softmax(row)
        h = entropy(p)
        expected = [p[j] - (j == y) + beta * p[j] * (log_p[j] + h) for j in range(4)]
        assert found[place].tolist() == pytest.approx(expected, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("classes", [2, 4])
def test_gradients_agree_with_differences(classes):
    logits, labels = batch(3, classes)
    loss = ConfidencePenalty(0.7)
    assert torch.autograd.gradcheck(lambda z: loss(z, labels), logits.requires_grad_())


def test_without_penalty_it_is_cross_entropy():
    logits, labels = batch()
    torch.testing.assert_close(ConfidencePenalty(0.0)(logits, labels), F.cross_entropy(logits, labels))


def test_being_undecided_is_rewarded():
    undecided = torch.zeros(1, 4, dtype=torch.float64)
    for y in range(4):
        found = ConfidencePenalty(0.3)(undecided, torch.tensor([y])).item()
        assert found == pytest.approx(0.7 * math.log(4), rel=1e-13)


def test_the_loss_can_be_negative():
    logits = torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64)
    assert ConfidencePenalty(5.0)(logits, torch.tensor([0])).item() < 0


def test_a_large_penalty_pulls_towards_the_uniform_distribution():
    logits = torch.tensor([[3.0, 0.0, 0.0]], dtype=torch.float64)
    _, slope = value_and_gradient(ConfidencePenalty(10.0), logits, torch.tensor([0]))
    assert slope[0, 0] > 0
    assert (slope[0, 1:] < 0).all()


def test_certainty_has_no_entropy_and_finite_gradients():
    for gap in (1e4, math.inf):
        logits = torch.tensor([[0.0, -gap, -gap]])
        value, slope = value_and_gradient(ConfidencePenalty(0.5), logits, torch.tensor([0]))
        assert value.item() == 0
        assert slope.tolist() == [[0.0, 0.0, 0.0]]


@pytest.mark.parametrize("beta", [-0.1, math.nan, math.inf])
def test_an_impossible_beta_is_refused(beta):
    with pytest.raises(ValueError, match=f"beta must be at least 0, not {beta}"):
        ConfidencePenalty(beta)


def test_what_it_says_of_itself():
    assert ConfidencePenalty().beta == 0.1
    assert repr(ConfidencePenalty(0.2)) == "ConfidencePenalty(beta=0.2)"
    logits, labels = batch()
    rule = ConfidencePenalty(0.2).rule(Batch(logits, labels, None, -100), None)
    assert (rule.kind, rule.values) == ("penalty", (0.2,))


def test_one_hot_probabilities_are_labels():
    logits, labels = batch(4, 3)
    certain = torch.tensor([one_hot(y, 3) for y in labels.tolist()], dtype=torch.float64)
    loss = ConfidencePenalty(0.4, weight=torch.tensor([1.0, 2.0, 3.0]), reduction="none")
    torch.testing.assert_close(loss(logits, certain), loss(logits, labels))
