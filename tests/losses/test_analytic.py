"""The closed form against an operation at a time, which `use_kernels("never")` asks for."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from softtargets.losses import (
    LABO,
    ConfidencePenalty,
    CrossEntropy,
    FocalLoss,
    LabelSmoothing,
    analytic,
    use_kernels,
)

from .making import NAMES, every_loss, shaped, value_and_gradient

WEIGHT = torch.tensor([0.5, 2.0, 0.0, 1.25], dtype=torch.float64)


@pytest.fixture(params=["few", "many", "blocks"])
def size(request, monkeypatch):
    """Each way to cut the work up, with a handful of logits."""
    if request.param != "few":
        monkeypatch.setattr(analytic, "FEW", 0)
    if request.param == "blocks":
        monkeypatch.setattr(analytic, "BLOCK", 8)
    return request.param


def close(found, expected, **tolerance):
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, **(tolerance or {"rtol": 1e-11, "atol": 1e-12}))


def without_graph(loss, monkeypatch):
    """A loss that has nothing but the closed form."""

    def refuse(*_):
        raise AssertionError("computed an operation at a time")

    monkeypatch.setattr(loss, "per_example", refuse)
    return loss


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_loss_and_gradient_are_those_of_an_operation_at_a_time(name, weighted, reduction, size, monkeypatch):
    logits, labels, _ = shaped((7, 3), 4)
    teacher, _, _ = shaped((7, 3), 4, seed=1)
    labels[2, 1] = labels[5, 0] = -100
    options = {"reduction": reduction, "weight": WEIGHT if weighted else None}
    with use_kernels("never"):
        expected = value_and_gradient(every_loss(4, **options)[name], logits, labels, teacher)
    loss = every_loss(4, **options)[name]
    if not (weighted and name.startswith("distillation")):  # which has no rule for weights
        loss = without_graph(loss, monkeypatch)
    close(value_and_gradient(loss, logits, labels, teacher), expected)
    # And where every row counts, in single precision.
    labels = labels.clamp_min(0)
    single = [value.float() for value in (logits, teacher)]
    with use_kernels("never"):
        expected = value_and_gradient(every_loss(4, **options)[name], single[0], labels, single[1])
    found = value_and_gradient(every_loss(4, **options)[name], single[0], labels, single[1])
    close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "loss", [LABO(), ConfidencePenalty(0.3), FocalLoss(), LabelSmoothing(0.2, "others")], ids=repr
)
def test_a_kept_graph_gives_the_same_bits_again_and_its_own_gradients(loss):
    logits, labels, _ = shaped((5,), 4)
    logits.requires_grad_()
    value = loss(logits, labels)
    first, second = (torch.autograd.grad(3 * value, logits, retain_graph=True)[0] for _ in range(2))
    assert torch.equal(first, second)
    (third,) = torch.autograd.grad(value, logits, create_graph=True)
    torch.testing.assert_close(3 * third.detach(), first)
    assert torch.autograd.grad(third.square().sum(), logits)[0].abs().sum() > 0


def test_many_gradients_at_once():
    logits, labels, _ = shaped((5,), 4)
    logits.requires_grad_()
    factors = torch.tensor([1.0, -2.0], dtype=torch.float64)
    (found,) = torch.autograd.grad(LABO()(logits, labels), logits, factors, is_grads_batched=True)
    _, expected = value_and_gradient(LABO(), logits, labels)
    torch.testing.assert_close(found, factors[:, None, None] * expected)


def test_what_is_infinite_is_left_to_an_operation_at_a_time():
    logits = torch.tensor([[0.5, -torch.inf, 1.0], [2.0, 1.0, 0.0]])
    labels = torch.tensor([0, 2])
    for loss in (LABO(), ConfidencePenalty(0.3), LabelSmoothing(0.3, prior=torch.tensor([0.5, 0.0, 0.5]))):
        found = value_and_gradient(loss, logits, labels)
        with use_kernels("never"):
            expected = value_and_gradient(loss, logits, labels)
        assert found[0].isfinite()
        close(found, expected, rtol=0, atol=0)


def test_an_ignored_row_has_no_gradient_whatever_stands_in_it():
    logits, labels, _ = shaped((4,), 4)
    labels[1] = -100
    logits[1, 0] = torch.nan
    for loss in (LABO(), ConfidencePenalty(0.3), FocalLoss()):
        value, gradient = value_and_gradient(loss, logits, labels)
        assert value.isfinite()
        assert gradient[1].tolist() == [0.0] * 4
        assert gradient[0].abs().sum() > 0


@pytest.mark.parametrize("alpha", [0.0, 0.3])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_uniform_smoothing_is_torchs_own_to_the_last_bit(alpha, reduction):
    logits, labels, _ = shaped((6, 2), 4, torch.float32)
    labels[3, 1] = -100

    def theirs(z, y):
        return F.cross_entropy(z, y, label_smoothing=alpha, reduction=reduction)

    losses = [LabelSmoothing(alpha, reduction=reduction)]
    if alpha == 0:
        losses.append(CrossEntropy(reduction=reduction))
    for loss in losses:
        close(
            value_and_gradient(loss, logits, labels),
            value_and_gradient(theirs, logits, labels),
            rtol=0,
            atol=0,
        )


def test_forward_mode_derivatives():
    logits, labels, _ = shaped((5,), 4)
    tangent = torch.ones_like(logits)
    tangent[:, 0] = 3
    for loss in (LabelSmoothing(), LABO(), ConfidencePenalty()):
        _, gradient = value_and_gradient(loss, logits, labels)
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(logits, tangent)
            found = torch.autograd.forward_ad.unpack_dual(loss(dual, labels)).tangent
        torch.testing.assert_close(found, (gradient * tangent).sum())


def test_who_computes_something_else_is_asked_for_it():
    class Other(ConfidencePenalty):
        def per_example(self, batch, given=None):
            return batch.hard() * 2

    class ToOne(LabelSmoothing):
        def smoothing(self, batch, given):
            return 1.0, F.one_hot(torch.tensor(1), batch.classes).double()

    logits, labels, _ = shaped((5,), 4)
    torch.testing.assert_close(Other()(logits, labels), 2 * F.cross_entropy(logits, labels))
    torch.testing.assert_close(ToOne()(logits, labels), F.cross_entropy(logits, torch.ones_like(labels)))
