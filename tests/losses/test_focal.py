from __future__ import annotations

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from softtargets.losses import FocalLoss
from softtargets.losses.batch import Batch

from .making import batch, by_rows, log_softmax, rows, shaped, softmax, value_and_gradient


def factor_gradient(row, t, factor, slope_of_factor, detach):
    """d/dz of -sum t_k factor(p_k) log p_k by the chain rule through p."""
    p = softmax(row)
    log_p = log_softmax(row)
    found = [0.0] * len(row)
    for k, mass in enumerate(t):
        if mass:
            through_log = -mass * factor(p[k]) / p[k]
            through_factor = 0.0 if detach else -mass * slope_of_factor(p[k]) * log_p[k]
            for j in range(len(row)):
                found[j] += (through_log + through_factor) * p[k] * ((j == k) - p[j])
    return found


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0, 2.0, 5.0])
@pytest.mark.parametrize("detach", [False, True])
@pytest.mark.parametrize("shape", [(), (6,), (3, 2)])
@pytest.mark.parametrize("kind", ["indices", "probabilities"])
@pytest.mark.parametrize("weight", [None, [0.5, 2.0, 1.0, 0.25]])
def test_the_loss_against_loops(gamma, detach, shape, kind, weight):
    logits, labels, probabilities = shaped(shape, 4)
    if shape:
        labels.view(-1)[1] = -100
    target = labels if kind == "indices" else probabilities

    def one(row, t, taught, label):
        weights = weight or [1.0] * 4
        terms = zip(weights, t, softmax(row), log_softmax(row), strict=True)
        return -sum(w * q * (1 - p) ** gamma * log_p for w, q, p, log_p in terms)

    tensor = torch.tensor(weight, dtype=torch.float64) if weight else None
    for reduction in ("mean", "sum", "none"):
        found = FocalLoss(gamma, detach, weight=tensor, reduction=reduction)(logits, target)
        expected = by_rows(one, logits, target, reduction, weight)
        expected = expected if reduction == "none" else [expected]
        assert found.reshape(-1).tolist() == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("as_tensor", [False, True])
@pytest.mark.parametrize("detach", [False, True])
@pytest.mark.parametrize("kind", ["indices", "probabilities"])
def test_the_gradient_by_hand(gamma, as_tensor, detach, kind):
    logits, labels, probabilities = shaped((5,), 4)
    target = labels if kind == "indices" else probabilities
    number = torch.tensor(gamma, dtype=torch.float64) if as_tensor else gamma
    _, found = value_and_gradient(FocalLoss(number, detach, reduction="sum"), logits, target)
    targets = F.one_hot(labels, 4).tolist() if kind == "indices" else probabilities.tolist()
    for place, (row, t) in enumerate(zip(rows(logits), targets, strict=True)):
        expected = factor_gradient(
            row,
            t,
            lambda p: (1 - p) ** gamma,
            lambda p: -gamma * (1 - p) ** (gamma - 1) if gamma else 0.0,
            detach,
        )
        assert found[place].tolist() == pytest.approx(expected, rel=1e-10, abs=1e-14)


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("classes", [2, 4])
def test_gradients_agree_with_differences(gamma, classes):
    logits, labels = batch(3, classes)
    assert torch.autograd.gradcheck(lambda z: FocalLoss(gamma)(z, labels), logits.requires_grad_())


@pytest.mark.parametrize("gamma", [0.0, torch.tensor(0.0)])
@pytest.mark.parametrize("detach", [False, True])
def test_with_gamma_zero_it_is_cross_entropy(gamma, detach):
    logits, labels = batch()
    value, slope = value_and_gradient(FocalLoss(gamma, detach), logits, labels)
    expected, theirs = value_and_gradient(F.cross_entropy, logits, labels)
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(slope, theirs)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("as_tensor", [False, True])
@pytest.mark.parametrize("detach", [False, True])
@pytest.mark.parametrize(
    ("dtype", "gap"),
    [(torch.float32, 30.0), (torch.float64, 200.0), (torch.float16, 1e4), (torch.float32, math.inf)],
)
def test_a_learnt_example_costs_and_changes_nothing(gamma, as_tensor, detach, dtype, gap):
    logits = torch.tensor([[0.0, -gap, -gap]]).to(dtype)
    number = torch.tensor(gamma, requires_grad=True) if as_tensor else gamma
    for target in (torch.tensor([0]), torch.tensor([[1.0, 0.0, 0.0]], dtype=dtype)):
        value, slope = value_and_gradient(FocalLoss(number, detach), logits, target)
        assert value.item() == pytest.approx(0, abs=1e-7)
        assert slope[0].tolist() == pytest.approx([0.0, 0.0, 0.0], abs=1e-6)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 2.0])
@pytest.mark.parametrize("detach", [False, True])
@pytest.mark.parametrize("gap", [100.0, 1e4])
def test_a_missed_example_counts_fully(gamma, detach, gap):
    logits = torch.tensor([[0.0, -gap]])
    value, slope = value_and_gradient(FocalLoss(gamma, detach), logits, torch.tensor([1]))
    assert value.item() == pytest.approx(gap, rel=1e-6)
    assert slope[0].tolist() == pytest.approx([1.0, -1.0], rel=1e-5)


@pytest.mark.parametrize("as_tensor", [False, True])
def test_with_gamma_zero_nothing_fades_even_where_p_rounds_to_one(as_tensor):
    logits, label = torch.tensor([[0.0, -30.0]]), torch.tensor([0])
    number = torch.tensor(0.0) if as_tensor else 0.0
    _, slope = value_and_gradient(FocalLoss(number), logits, label)
    assert slope[0, 1].item() == pytest.approx(math.exp(-30), rel=1e-5, abs=0)
    _, faded = value_and_gradient(FocalLoss(torch.tensor(0.5) if as_tensor else 0.5), logits, label)
    assert faded.tolist() == [[0.0, 0.0]]


def test_gamma_can_be_learnt_even_where_nothing_is_left_to_learn():
    gamma = nn.Parameter(torch.tensor(2.0))
    FocalLoss(gamma)(torch.tensor([[0.0, -1e4]]), torch.tensor([0])).backward()
    assert gamma.grad.item() == 0


def test_more_gamma_is_less_loss_and_certain_examples_fade_most():
    logits = torch.tensor([[0.1, 0.0], [3.0, 0.0]], dtype=torch.float64)
    labels = torch.tensor([0, 0])
    weaker, stronger = (FocalLoss(gamma, reduction="none")(logits, labels) for gamma in (1.0, 2.0))
    assert (stronger < weaker).all()
    kept = stronger / weaker
    assert kept[1] < kept[0]


@pytest.mark.parametrize("gamma", [-0.1, math.nan, math.inf])
def test_an_impossible_gamma_is_refused(gamma):
    with pytest.raises(ValueError, match=f"gamma must be at least 0, not {gamma}"):
        FocalLoss(gamma)


def test_what_it_says_of_itself():
    loss = FocalLoss()
    assert (loss.gamma, loss.detach) == (2.0, False)
    assert repr(FocalLoss(1.0, True)) == "FocalLoss(gamma=1.0, detach=True)"
    logits, labels = batch()
    rule = FocalLoss(1.5, True).rule(Batch(logits, labels, None, -100), None)
    assert (rule.kind, rule.values) == ("focal", (1.5, -1.0, 1.0))
