from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from softtargets.losses import DisturbLabel, LabelSmoothing

from .checking import WEIGHT, check_edges, check_every_form, check_nothing_moved, check_pack, check_precisions
from .making import batch, one_hot, shaped, weighted_cross_entropy


def oracle(alpha):
    def losses_of(rows, targets, weight):
        classes = len(rows[0])
        disturbed = torch.rand(len(rows)) < alpha
        drawn = torch.randint(classes, (len(rows),)).tolist()
        losses = []
        for place, (row, target) in enumerate(zip(rows, targets, strict=True)):
            if target is not None and disturbed[place]:
                target = one_hot(drawn[place], classes)
            losses.append(0.0 if target is None else weighted_cross_entropy(target, row, weight))
        return losses

    return losses_of


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_every_form_of_call_against_loops(alpha):
    check_every_form(lambda **more: DisturbLabel(alpha, **more), oracle(alpha))


@pytest.mark.parametrize("alpha", [0.1, 0.6])
@pytest.mark.parametrize("weighted", [False, True])
def test_on_average_it_is_label_smoothing(alpha, weighted):
    logits, labels, soft = shaped((6,), 4)
    weight = torch.tensor(WEIGHT, dtype=torch.float64) if weighted else None
    times = 20_000
    torch.manual_seed(0)
    for target in (labels, soft):
        logits.requires_grad_()
        expected = LabelSmoothing(alpha, reduction="none", weight=weight)(logits, target)
        (expected_gradient,) = torch.autograd.grad(expected.sum(), logits)
        many = target.repeat(times, *[1] * (target.dim() - 1))
        losses = DisturbLabel(alpha, reduction="none", weight=weight)(logits.repeat(times, 1), many)
        (gradient,) = torch.autograd.grad(losses.sum() / times, logits)
        losses = losses.view(times, 6)
        error = losses.std(0) / times**0.5
        assert ((losses.mean(0) - expected).abs() < 5 * error).all()
        torch.testing.assert_close(gradient, expected_gradient, rtol=0, atol=0.05)


def test_a_label_is_kept_as_often_as_the_paper_says():
    torch.manual_seed(0)
    count, classes, alpha = 100_000, 5, 0.3
    logits = torch.arange(5.0).expand(count, classes)
    losses = DisturbLabel(alpha, reduction="none")(logits, torch.full((count,), 2))
    kept = (losses - F.cross_entropy(logits[0], torch.tensor(2))).abs() < 1e-6
    assert kept.double().mean().item() == pytest.approx(1 - alpha * (classes - 1) / classes, abs=0.01)


def test_every_call_draws_anew_and_the_seed_fixes_it():
    logits, labels = batch(200, 4)
    loss = DisturbLabel(0.5)
    torch.manual_seed(3)
    first, second = loss(logits, labels), loss(logits, labels)
    torch.manual_seed(3)
    assert torch.equal(loss(logits, labels), first)
    assert not torch.equal(first, second)


def test_evaluation_is_cross_entropy_and_draws_nothing():
    logits, labels, soft = shaped((6,), 4)
    loss = DisturbLabel(1.0).eval()
    torch.manual_seed(0)
    for target in (labels, soft):
        torch.testing.assert_close(loss(logits, target), F.cross_entropy(logits, target))
    drawn = torch.rand(3)
    torch.manual_seed(0)
    assert torch.equal(torch.rand(3), drawn)


def test_ignored_rows_stay_ignored():
    logits, labels = batch(50, 4)
    labels[::2] = -100
    losses = DisturbLabel(1.0, reduction="none")(logits, labels)
    assert not losses[::2].any()
    assert losses[1::2].all()


def test_gradients():
    logits, labels, soft = shaped((3,), 4)
    loss = DisturbLabel(0.5)

    def seeded(z, target):
        torch.manual_seed(1)
        return loss(z, target)

    for target in (labels, soft):
        assert torch.autograd.gradcheck(lambda z, t=target: seeded(z, t), logits.clone().requires_grad_())


def test_edges():
    check_nothing_moved(DisturbLabel(0))
    check_edges(DisturbLabel)
    assert DisturbLabel(1.0)(torch.zeros(1, 1), torch.tensor([0])).item() == 0


def test_precisions():
    check_precisions(lambda **more: DisturbLabel(0.5, **more))


def test_a_pack_is_each_of_its_runs():
    check_pack(lambda alpha: DisturbLabel(alpha).eval(), {"alpha": [0.0, 0.5, 1.0]})
    logits, _, _ = shaped((2, 5000), 4)
    logits = logits.movedim(1, -1)
    logits[1] = logits[0]
    labels = torch.zeros(2, 5000, dtype=torch.int64)
    strong, strong_again = DisturbLabel(torch.tensor([0.5, 0.5]))(logits, labels)
    assert strong.item() != strong_again.item(), "runs of a pack have draws of their own"
    untouched, disturbed = DisturbLabel(torch.tensor([0.0, 1.0]))(logits, labels)
    torch.testing.assert_close(untouched, F.cross_entropy(logits[0], labels[0]))
    torch.testing.assert_close(disturbed, LabelSmoothing(1.0)(logits[1], labels[1]), rtol=0.05, atol=0)


@pytest.mark.parametrize("alpha", [-0.1, 1.1])
def test_an_impossible_alpha_is_refused(alpha):
    with pytest.raises(ValueError, match=f"alpha must be between 0 and 1, not {alpha}"):
        DisturbLabel(alpha)


def test_it_prints_its_options():
    assert repr(DisturbLabel()) == "DisturbLabel(alpha=0.1)"
