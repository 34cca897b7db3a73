from __future__ import annotations

import copy
import math
import re

import pytest
import torch
from torch.func import functional_call
from torch.nn import functional as F

from softtargets.losses import KnowledgeRefinery

from .checking import (
    WEIGHT,
    check_edges,
    check_every_form,
    check_gradient,
    check_nothing_moved,
    check_precisions,
)
from .making import batch, shaped, softmax, weight_of, weighted_cross_entropy


def some_table(classes=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(classes, classes, generator=generator)


def with_table(table, **options):
    loss = KnowledgeRefinery(len(table), **options)
    loss.table.copy_(table)
    return loss


def without(row, label):
    return softmax([value for k, value in enumerate(row) if k != label])


def apart(q, p):
    return sum(a * math.log(a / b) for a, b in zip(q, p, strict=True))


def oracle(alpha, table):
    def losses_of(rows, targets, weight):
        losses = []
        for row, target in zip(rows, targets, strict=True):
            if target is None:
                losses.append(0.0)
                continue
            label = target.index(max(target))
            extra = alpha * apart(without(row, label), without(table[label], label))
            losses.append(weighted_cross_entropy(target, row, weight) + weight_of(target, weight) * extra)
        return losses

    return losses_of


@pytest.mark.parametrize("alpha", [0.0, 1.0, 2.5])
def test_every_form_of_call_against_loops(alpha):
    table = some_table()
    check_every_form(
        lambda **more: with_table(table, alpha=alpha, **more), oracle(alpha, table.double().tolist())
    )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_the_table_takes_gradient_steps_whatever_the_reduction(weighted, reduction):
    """The same by autograd: the divergence of the table's opinion from the net's, one row after another."""
    alpha, rate = 0.7, 0.3
    weight = torch.tensor(WEIGHT, dtype=torch.float64) if weighted else None
    loss = KnowledgeRefinery(4, alpha, rate, weight=weight, reduction=reduction).double()
    table = torch.zeros(4, 4, dtype=torch.float64)
    for step in range(5):
        logits, labels = batch(7, 4, seed=step)
        labels[step] = -100
        learnt = table.clone().requires_grad_()
        total, mass = torch.zeros((), dtype=torch.float64), 0.0
        for row, label in zip(logits, labels.tolist(), strict=True):
            if label == -100:
                continue
            others = [k for k in range(4) if k != label]
            log_q, log_p = F.log_softmax(learnt[label, others], -1), F.log_softmax(row[others], -1)
            share = weight[label].item() if weighted else 1.0
            total = total + share * (log_q.exp() * (log_q - log_p)).sum()
            mass += share
        (gradient,) = torch.autograd.grad(alpha * total / mass, learnt)
        table = table - rate * gradient
        loss(logits, labels)
        torch.testing.assert_close(loss.table, table)
    assert not loss.table.diagonal().any()


def test_the_table_learns_what_the_net_says_of_the_wrong_classes():
    logits = torch.tensor([[9.0, 1.0, 0.0, -1.0]], dtype=torch.float64).repeat(4, 1)
    labels = torch.zeros(4, dtype=torch.int64)
    loss = KnowledgeRefinery(4, table_lr=1.0).double()
    first = loss(logits, labels)
    for _ in range(300):
        last = loss(logits, labels)
    found = F.softmax(loss.table[0, 1:], -1)
    torch.testing.assert_close(found, F.softmax(logits[0, 1:], -1), rtol=1e-3, atol=1e-4)
    assert not loss.table[1:].any(), "labels that were not seen keep their rows"
    assert last < first
    torch.testing.assert_close(last, F.cross_entropy(logits, labels), rtol=1e-2, atol=1e-4)


def test_the_loss_is_that_of_the_table_before_its_step():
    logits, labels = batch(6, 4)
    before = KnowledgeRefinery(4).eval()(logits, labels)
    torch.testing.assert_close(KnowledgeRefinery(4)(logits, labels), before)


def test_with_two_classes_it_is_cross_entropy():
    logits, labels = batch(6, 2)
    loss = KnowledgeRefinery(2)
    torch.testing.assert_close(loss(logits, labels), F.cross_entropy(logits, labels))
    assert not loss.table.any()


def test_the_logit_of_the_label_plays_no_part_in_the_residue():
    logits, labels = batch(6, 4)
    moved = logits.clone()
    moved[torch.arange(6), labels] += 3
    loss = with_table(some_table()).eval()

    def residue(z):
        return loss(z, labels) - F.cross_entropy(z, labels)

    torch.testing.assert_close(residue(logits), residue(moved))


def test_evaluation_leaves_the_table_alone():
    loss = with_table(some_table()).eval()
    before = copy.deepcopy(loss.state_dict())
    loss(*batch(6, 4))
    assert torch.equal(loss.table, before["table"])


def test_a_batch_in_which_nothing_counts_leaves_the_table_alone():
    loss = with_table(some_table())
    before = loss.table.clone()
    loss(torch.randn(3, 4), torch.full((3,), -100))
    loss(torch.zeros(0, 4), torch.zeros(0, dtype=torch.int64))
    assert torch.equal(loss.table, before)


def test_an_ignored_row_of_nan_does_not_reach_the_table():
    loss = with_table(some_table())
    loss(torch.tensor([[math.nan] * 4, [1.0, 0.0, 2.0, 0.0]]), torch.tensor([-100, 1]))
    assert loss.table.isfinite().all()


def test_probabilities_leave_out_their_most_probable_class():
    logits, labels, _ = shaped((9,), 4)
    soft = 0.6 * F.one_hot(labels, 4).double() + 0.1
    by_label, by_probability = KnowledgeRefinery(4), KnowledgeRefinery(4)
    by_label(logits, labels)
    by_probability(logits, soft)
    torch.testing.assert_close(by_label.table, by_probability.table)


def test_steps_of_the_table_are_not_rounded_under_autocast():
    logits, labels = batch(20, 4, torch.float32)
    plain, half = KnowledgeRefinery(4), KnowledgeRefinery(4)
    plain(logits, labels)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half(logits, labels)
    assert torch.equal(plain.table, half.table)


def test_gradients():
    check_gradient(with_table(some_table(), alpha=0.7).double().eval())
    loss = KnowledgeRefinery(4)
    logits, labels = batch(6, 4)
    loss(logits.requires_grad_(), labels).backward()
    assert not loss.table.requires_grad


def test_the_state_goes_on_where_it_was():
    one = KnowledgeRefinery(4)
    one(*batch(6, 4))
    other = KnowledgeRefinery(4)
    other.load_state_dict(one.state_dict())
    for loss in (one, other):
        loss(*batch(6, 4, seed=1))
    assert torch.equal(one.table, other.table)
    assert list(one.state_dict()) == ["table"]


def test_runs_with_a_table_each_can_be_stacked():
    logits, labels, _ = shaped((3, 9), 4)
    logits = logits.movedim(1, -1).float()
    alone = [KnowledgeRefinery(4) for _ in range(3)]
    expected = torch.stack([loss(logits[run], labels[run]) for run, loss in enumerate(alone)])
    loss = KnowledgeRefinery(4)
    buffers = {name: torch.stack([value] * 3) for name, value in loss.named_state().items()}
    found = torch.vmap(lambda state, z, y: functional_call(loss, state, (z, y)))(buffers, logits, labels)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(buffers["table"], torch.stack([loss.table for loss in alone]))


def test_runs_of_a_pack_cannot_share_a_table():
    loss = KnowledgeRefinery(4, alpha=torch.tensor([0.1, 0.2]))
    with pytest.raises(ValueError, match="KnowledgeRefinery keeps a table"):
        loss(torch.zeros(2, 3, 4), torch.zeros(2, 3, dtype=torch.int64))


def test_edges():
    check_nothing_moved(KnowledgeRefinery(4, alpha=0))
    check_edges(lambda **more: KnowledgeRefinery(4, **more))
    huge = torch.tensor([[1e4, -1e4, 0.0]], requires_grad=True)
    loss = KnowledgeRefinery(3)
    loss(huge, torch.tensor([0])).backward()
    assert huge.grad.isfinite().all()
    assert loss.table.isfinite().all()


def test_precisions():
    check_precisions(lambda **more: with_table(some_table(), **more))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": 1}, "classes must be at least 2, not 1"),
        ({"classes": 4, "alpha": -1}, "alpha must be at least 0, not -1"),
        ({"classes": 4, "table_lr": -0.1}, "table_lr must be at least 0, not -0.1"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        KnowledgeRefinery(**options)


def test_other_classes_than_the_table_has_are_refused():
    logits, labels, _ = shaped((5,), 4)
    with pytest.raises(ValueError, match="the table is for 3 classes, but the logits have 4"):
        KnowledgeRefinery(3)(logits, labels)


def test_it_prints_its_options():
    assert repr(KnowledgeRefinery(10)) == "KnowledgeRefinery(classes=10, alpha=1.0, table_lr=0.1)"
