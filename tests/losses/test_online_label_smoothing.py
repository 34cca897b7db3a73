from __future__ import annotations

import copy
import re

import pytest
import torch
from torch.func import functional_call

from softtargets.losses import LabelSmoothing, OnlineLabelSmoothing

from .checking import check_edges, check_every_form, check_gradient, check_nothing_moved, check_precisions
from .making import batch, matrix, mixed, shaped, softmax, weighted_cross_entropy


def with_table(table, **options):
    loss = OnlineLabelSmoothing(len(table), **options)
    loss.table.copy_(table)
    return loss


def oracle(alpha, table):
    def losses_of(rows, targets, weight):
        losses = []
        for row, target in zip(rows, targets, strict=True):
            if target is None:
                losses.append(0.0)
                continue
            classes = range(len(row))
            soft = [sum(target[y] * table[y][k] for y in classes) for k in classes]
            losses.append(weighted_cross_entropy(mixed(target, soft, alpha), row, weight))
        return losses

    return losses_of


@pytest.mark.parametrize("alpha", [0.0, 0.5, 1.0])
def test_every_form_of_call_against_loops(alpha):
    table = matrix(4).float()
    check_every_form(
        lambda **more: with_table(table, alpha=alpha, **more), oracle(alpha, table.double().tolist())
    )


class ByHand:
    """The table kept in lists."""

    def __init__(self, classes, freeze):
        self.freeze = freeze
        self.classes = classes
        self.table = [[1 / classes] * classes for _ in range(classes)]
        self.begin()

    def begin(self):
        self.sums = [[0.0] * self.classes for _ in range(self.classes)]
        self.counts = [0] * self.classes

    def see(self, rows, labels):
        for row, label in zip(rows, labels, strict=True):
            if label != -100 and row.index(max(row)) == label:
                self.counts[label] += 1
                self.sums[label] = [a + b for a, b in zip(self.sums[label], softmax(row), strict=True)]

    def end_epoch(self):
        for k, count in enumerate(self.counts):
            if self.freeze is None or max(self.table[k]) < self.freeze:
                row = (
                    [value / count for value in self.sums[k]] if count else [1 / self.classes] * self.classes
                )
                self.table[k] = row
        self.begin()


@pytest.mark.parametrize("freeze", [None, 0.75])
def test_the_table_over_epochs_against_lists(freeze):
    loss, by_hand = OnlineLabelSmoothing(4, freeze=freeze), ByHand(4, freeze)
    frozen = 0
    for epoch in range(6):
        for step in range(5):
            logits, labels = batch(12, 4, seed=31 * epoch + step, scale=1.0 + epoch / 3)
            logits[torch.arange(12), labels] += 1.5
            labels[step] = -100
            if epoch == 2:
                labels[labels == 1] = 0  # a class without examples becomes uniform again, unless frozen
            loss(logits, labels)
            by_hand.see(logits.tolist(), labels.tolist())
            counts = torch.tensor(by_hand.counts, dtype=torch.float32)
            assert torch.equal(loss.counts, counts)
        loss.end_epoch()
        frozen += sum(max(row) >= 0.75 for row in by_hand.table)
        by_hand.end_epoch()
        torch.testing.assert_close(loss.table, torch.tensor(by_hand.table), rtol=1e-5, atol=1e-6)
        assert not loss.sums.any()
        assert not loss.counts.any()
    assert frozen, "this test must reach the rows that are frozen"


def test_at_first_it_is_uniform_label_smoothing():
    logits, labels = batch(6, 4, torch.float32)
    torch.testing.assert_close(
        OnlineLabelSmoothing(4, alpha=0.3)(logits, labels), LabelSmoothing(0.3)(logits, labels)
    )


def test_from_zeros_as_in_the_released_code_it_is_half_the_cross_entropy_at_first():
    """The released module starts from a matrix of zeros, and goes back to it for a class that is never right."""
    logits, labels = batch(12, 4, torch.float32)
    labels[labels == 3] = 0
    loss = OnlineLabelSmoothing(4, start="zeros")
    expected = torch.nn.functional.cross_entropy(logits, labels) / 2
    torch.testing.assert_close(loss(logits, labels), expected)
    loss.end_epoch()
    uniform = OnlineLabelSmoothing(4)
    uniform(logits, labels)
    uniform.end_epoch()
    assert not loss.table[3].any()
    right = loss.table.sum(-1) > 0
    assert torch.equal(loss.table[right], uniform.table[right])
    torch.testing.assert_close(uniform.table[3], torch.full((4,), 0.25))


def test_an_epoch_without_anything_correct_leaves_the_table_uniform():
    loss = with_table(torch.eye(3))
    loss(torch.eye(3), torch.tensor([1, 2, 0]))
    loss.end_epoch()
    torch.testing.assert_close(loss.table, torch.full((3, 3), 1 / 3))


def test_evaluation_collects_nothing():
    loss = OnlineLabelSmoothing(4).eval()
    before = copy.deepcopy(loss.state_dict())
    logits, labels = batch(20, 4)
    loss(logits, labels)
    assert all(torch.equal(value, before[name]) for name, value in loss.state_dict().items())
    loss.train()(logits, labels)
    assert loss.counts.sum() == (logits.argmax(-1) == labels).sum()


def test_probabilities_count_for_their_most_probable_class():
    logits, labels, _ = shaped((30,), 4)
    certain = torch.nn.functional.one_hot(labels, 4).double()
    by_label, by_probability = OnlineLabelSmoothing(4), OnlineLabelSmoothing(4)
    by_label(logits, labels)
    by_probability(logits, 0.6 * certain + 0.1)
    for name in ("sums", "counts"):
        assert torch.equal(getattr(by_label, name), getattr(by_probability, name))


def test_collecting_happens_where_a_kernel_computes_the_loss_too(monkeypatch):
    """The table must not depend on `smoothing`, which a kernel does not call."""
    loss, plain = OnlineLabelSmoothing(4), OnlineLabelSmoothing(4)
    logits, labels = batch(20, 4)
    plain(logits, labels)
    monkeypatch.setattr(loss, "per_example", lambda batch, given=None: batch.hard())
    loss(logits, labels)
    assert torch.equal(loss.sums, plain.sums)


def test_the_rule_of_the_kernel_is_the_target():
    from softtargets.losses.batch import Batch

    loss = with_table(matrix(4).float(), alpha=0.3)
    logits, labels = batch(5, 4)
    rule = loss.rule(Batch(logits, labels, None, -100), None)
    assert (rule.kind, rule.values) == ("mixture", (0.7, 0.3))
    assert rule.table is loss.table


def test_what_is_collected_is_not_rounded_under_autocast():
    logits, labels = batch(20, 4, torch.float32)
    plain, half = OnlineLabelSmoothing(4), OnlineLabelSmoothing(4)
    plain(logits, labels)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        half(logits, labels)
    assert torch.equal(plain.sums, half.sums)


def test_nothing_of_the_table_reaches_the_gradient():
    check_gradient(with_table(matrix(4).float(), alpha=0.4).double().eval())
    loss = OnlineLabelSmoothing(4)
    logits, labels = batch(6, 4)
    loss(logits.requires_grad_(), labels).backward()
    assert not any(value.requires_grad for value in loss.state_dict().values())


def test_the_state_goes_on_where_it_was():
    logits, labels = batch(20, 4)
    one = OnlineLabelSmoothing(4)
    one(logits, labels)
    one.end_epoch()
    one(logits.flip(0), labels)
    other = OnlineLabelSmoothing(4)
    other.load_state_dict(one.state_dict())
    for loss in (one, other):
        loss(logits, labels.flip(0))
        loss.end_epoch()
    assert torch.equal(one.table, other.table)
    assert sorted(one.state_dict()) == ["counts", "sums", "table"]


def test_runs_with_a_table_each_can_be_stacked():
    logits, labels, _ = shaped((3, 9), 4)
    logits = logits.movedim(1, -1).float()
    alone = [OnlineLabelSmoothing(4) for _ in range(3)]
    expected = torch.stack([loss(logits[run], labels[run]) for run, loss in enumerate(alone)])
    loss = OnlineLabelSmoothing(4)
    buffers = {name: torch.stack([value] * 3) for name, value in loss.named_state().items()}
    found = torch.vmap(lambda state, z, y: functional_call(loss, state, (z, y)))(buffers, logits, labels)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(buffers["sums"], torch.stack([loss.sums for loss in alone]))


def test_runs_of_a_pack_cannot_share_a_table():
    loss = OnlineLabelSmoothing(4, alpha=torch.tensor([0.1, 0.2]))
    with pytest.raises(ValueError, match="OnlineLabelSmoothing keeps a table"):
        loss(torch.zeros(2, 3, 4), torch.zeros(2, 3, dtype=torch.int64))


def test_edges():
    check_nothing_moved(OnlineLabelSmoothing(4, alpha=0))
    check_edges(lambda **more: OnlineLabelSmoothing(4, **more))
    one = OnlineLabelSmoothing(1)
    assert one(torch.zeros(2, 1), torch.tensor([0, 0])).item() == 0


def test_precisions():
    check_precisions(lambda **more: OnlineLabelSmoothing(4, **more))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"classes": 4, "start": "zero"},
            "start must be 'uniform' or 'zeros', not 'zero' (did you mean 'zeros'?)",
        ),
        ({"classes": 0}, "classes must be at least 1, not 0"),
        ({"classes": 4, "alpha": 1.5}, "alpha must be between 0 and 1, not 1.5"),
        ({"classes": 4, "freeze": 0}, "freeze must be above 0 and at most 1, not 0"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        OnlineLabelSmoothing(**options)


def test_other_classes_than_the_table_has_are_refused():
    logits, labels, _ = shaped((5,), 4)
    with pytest.raises(ValueError, match="the table is for 3 classes, but the logits have 4"):
        OnlineLabelSmoothing(3)(logits, labels)


def test_it_prints_its_options():
    assert repr(OnlineLabelSmoothing(10)) == "OnlineLabelSmoothing(classes=10, alpha=0.5)"
    assert repr(OnlineLabelSmoothing(10, freeze=0.88)).endswith("freeze=0.88)")
    assert repr(OnlineLabelSmoothing(10, start="zeros")).endswith("start='zeros')")
