from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from softtargets.losses import AntiFocalLoss, FocalLoss
from softtargets.losses.batch import Batch

from .making import batch, by_rows, log_softmax, rows, shaped, softmax, value_and_gradient
from .test_focal import factor_gradient


@pytest.mark.parametrize("gamma", [0.0, 1.0, 2.5])
@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("kind", ["indices", "probabilities"])
@pytest.mark.parametrize("weight", [None, [0.5, 2.0, 1.0, 0.25]])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_the_loss_against_loops(gamma, alpha, kind, weight, reduction):
    logits, labels, probabilities = shaped((3, 2), 4)
    labels[1, 1] = -100
    target = labels if kind == "indices" else probabilities

    def one(row, t, taught, label):
        weights = weight or [1.0] * 4
        terms = zip(weights, t, softmax(row), log_softmax(row), strict=True)
        return -sum(w * q * (1 + alpha * p) ** gamma * log_p for w, q, p, log_p in terms)

    tensor = torch.tensor(weight, dtype=torch.float64) if weight else None
    found = AntiFocalLoss(gamma, alpha, weight=tensor, reduction=reduction)(logits, target)
    expected = by_rows(one, logits, target, reduction, weight)
    assert found.reshape(-1).tolist() == pytest.approx(
        expected if reduction == "none" else [expected], rel=1e-12
    )


@pytest.mark.parametrize("gamma", [0.0, 1.0, 2.5])
@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("detach", [False, True])
@pytest.mark.parametrize("kind", ["indices", "probabilities"])
def test_the_gradient_by_hand(gamma, alpha, detach, kind):
    logits, labels, probabilities = shaped((5,), 4)
    target = labels if kind == "indices" else probabilities
    loss = AntiFocalLoss(gamma, alpha, detach, reduction="sum")
    _, found = value_and_gradient(loss, logits, target)
    targets = F.one_hot(labels, 4).tolist() if kind == "indices" else probabilities.tolist()
    for place, (row, t) in enumerate(zip(rows(logits), targets, strict=True)):
        expected = factor_gradient(
            row,
            t,
            lambda p: (1 + alpha * p) ** gamma,
            lambda p: gamma * alpha * (1 + alpha * p) ** (gamma - 1),
            detach,
        )
        assert found[place].tolist() == pytest.approx(expected, rel=1e-11, abs=1e-14)


def test_gradients_agree_with_differences():
    logits, labels = batch(3, 4)
    loss = AntiFocalLoss(2.0, 0.7, detach=False)
    assert torch.autograd.gradcheck(lambda z: loss(z, labels), logits.requires_grad_())


@pytest.mark.parametrize("numbers", [(0.0, 0.5), (2.0, 0.0)])
@pytest.mark.parametrize("detach", [False, True])
def test_without_gamma_or_alpha_it_is_cross_entropy(numbers, detach):
    logits, labels = batch()
    value, slope = value_and_gradient(AntiFocalLoss(*numbers, detach), logits, labels)
    expected, theirs = value_and_gradient(F.cross_entropy, logits, labels)
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(slope, theirs)


@pytest.mark.parametrize("detach", [False, True])
@pytest.mark.parametrize("as_tensor", [False, True])
def test_with_alpha_minus_one_it_would_be_the_focal_loss(detach, as_tensor):
    logits, labels, probabilities = shaped((6,), 4)
    loss = AntiFocalLoss(2.0, torch.tensor(0.5) if as_tensor else 0.5, detach)
    loss.alpha = torch.tensor(-1.0) if as_tensor else -1.0
    for target in (labels, probabilities):
        value, slope = value_and_gradient(loss, logits, target)
        expected, theirs = value_and_gradient(FocalLoss(2.0, detach), logits, target)
        torch.testing.assert_close(value, expected)
        torch.testing.assert_close(slope, theirs)


def test_likely_tokens_count_more_than_in_cross_entropy():
    logits, labels = batch(8, 4)
    plain = F.cross_entropy(logits, labels, reduction="none")
    found = AntiFocalLoss(1.0, 0.5, reduction="none")(logits, labels)
    p = torch.softmax(logits, -1)[range(8), labels]
    assert (found / plain).tolist() == pytest.approx((1 + 0.5 * p).tolist())


@pytest.mark.parametrize("detach", [False, True])
@pytest.mark.parametrize("gap", [100.0, 1e4])
def test_the_limits(detach, gap):
    loss = AntiFocalLoss(2.0, 1.0, detach)
    logits = torch.tensor([[0.0, -gap]])
    value, slope = value_and_gradient(loss, logits, torch.tensor([0]))
    assert value.item() == 0
    assert slope[0].tolist() == pytest.approx([0.0, 0.0], abs=1e-40)
    value, slope = value_and_gradient(loss, logits, torch.tensor([1]))
    assert value.item() == pytest.approx(gap)
    assert slope[0].tolist() == pytest.approx([1.0, -1.0])


@pytest.mark.parametrize("name", ["gamma", "alpha"])
@pytest.mark.parametrize("value", [-0.1, math.nan, math.inf])
def test_impossible_numbers_are_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} must be at least 0, not {value}"):
        AntiFocalLoss(**{name: value})


def test_the_defaults_are_those_of_the_released_criterion():
    loss = AntiFocalLoss()
    assert (loss.gamma, loss.alpha, loss.detach) == (1.0, 0.5, True)
    assert repr(loss) == "AntiFocalLoss(gamma=1.0, alpha=0.5, detach=True)"
    logits, labels = batch()
    rule = loss.rule(Batch(logits, labels, None, -100), None)
    assert (rule.kind, rule.values) == ("focal", (1.0, 0.5, 1.0))
