from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from softtargets.losses import LabelSmoothing, MaxSup

from .checking import (
    check_edges,
    check_every_form,
    check_gradient,
    check_nothing_moved,
    check_pack,
    check_precisions,
)
from .making import batch, weight_of, weighted_cross_entropy


def oracle(alpha):
    def losses_of(rows, targets, weight):
        return [
            0.0
            if target is None
            else weighted_cross_entropy(target, row, weight)
            + weight_of(target, weight) * alpha * (max(row) - sum(row) / len(row))
            for row, target in zip(rows, targets, strict=True)
        ]

    return losses_of


@pytest.mark.parametrize("alpha", [0.0, 0.1, 2.0])
def test_every_form_of_call_against_loops(alpha):
    check_every_form(lambda **more: MaxSup(alpha, **more), oracle(alpha))


def test_it_is_label_smoothing_where_the_label_leads_and_only_there():
    logits, _ = batch(20, 5)
    right, wrong = logits.argmax(-1), logits.argmin(-1)
    ours, smoothing = MaxSup(0.2, reduction="none"), LabelSmoothing(0.2, reduction="none")
    torch.testing.assert_close(ours(logits, right), smoothing(logits, right))
    assert (ours(logits, wrong) > smoothing(logits, wrong)).all()


def test_without_strength_it_is_cross_entropy():
    logits, labels = batch(6, 5)
    torch.testing.assert_close(MaxSup(0.0)(logits, labels), F.cross_entropy(logits, labels))


def test_gradients():
    check_gradient(MaxSup(0.3))


def test_edges():
    check_nothing_moved(MaxSup(0))
    check_edges(MaxSup)
    assert MaxSup()(torch.zeros(1, 1), torch.tensor([0])).item() == 0
    assert MaxSup(1.0)(torch.zeros(1, 4), torch.tensor([0])).item() == pytest.approx(math.log(4))
    assert math.isnan(MaxSup()(torch.tensor([[math.nan, 0.0]]), torch.tensor([1])).item())


def test_precisions():
    check_precisions(MaxSup)


def test_a_pack_is_each_of_its_runs():
    check_pack(MaxSup, {"alpha": [0.0, 0.1, 0.7]})


def test_a_negative_strength_is_refused():
    with pytest.raises(ValueError, match=r"alpha must be at least 0, not -0\.1"):
        MaxSup(-0.1)


def test_it_prints_its_options():
    assert repr(MaxSup(reduction="sum")) == "MaxSup(alpha=0.1, reduction='sum')"
