from __future__ import annotations

import math

import pytest
import torch

from softtargets.losses.functional import (
    divergence,
    divergence_from_uniform,
    entropy,
    label_cross_entropy,
    relative_entropy,
    soft_cross_entropy,
    softened,
)

from .making import batch, cross_entropy, log_softmax, softmax


def test_each_function_against_loops():
    logits, labels = batch(5, 4)
    log_p = torch.log_softmax(logits, -1)
    targets = torch.softmax(batch(5, 4, seed=1)[0], -1)
    for row, (given, label, q) in enumerate(
        zip(logits.tolist(), labels.tolist(), targets.tolist(), strict=True)
    ):
        p = softmax(given)
        spread = -sum(value * math.log(value) for value in p)
        assert label_cross_entropy(log_p, labels)[row].item() == pytest.approx(-log_softmax(given)[label])
        assert soft_cross_entropy(log_p, targets)[row].item() == pytest.approx(cross_entropy(q, given))
        assert entropy(log_p)[row].item() == pytest.approx(spread, rel=1e-13)
        assert relative_entropy(log_p)[row].item() == pytest.approx(spread / math.log(4), rel=1e-13)
        between = sum(b * math.log(b / a) for a, b in zip(p, q, strict=True))
        assert divergence(targets.log(), log_p)[row].item() == pytest.approx(between, rel=1e-12)
        away = sum(value * math.log(value * 4) for value in p)
        assert divergence_from_uniform(log_p)[row].item() == pytest.approx(away, rel=1e-12)
        expected = log_softmax([value / 3 for value in given])
        assert softened(logits, 3.0)[row].tolist() == pytest.approx(expected, rel=1e-13)


def test_impossible_classes_cost_nothing_where_the_target_excludes_them():
    log_p = torch.log_softmax(torch.tensor([[0.0, 0.0, -math.inf]], dtype=torch.float64), -1).requires_grad_()
    excluded = torch.tensor([0.5, 0.5, 0.0], dtype=torch.float64)
    assert soft_cross_entropy(log_p, excluded).item() == pytest.approx(math.log(2))
    assert entropy(log_p).item() == pytest.approx(math.log(2))
    (soft_cross_entropy(log_p, excluded) + entropy(log_p)).sum().backward()
    assert torch.isfinite(log_p.grad).all()
    everywhere = torch.tensor([0.5, 0.25, 0.25], dtype=torch.float64)
    assert soft_cross_entropy(log_p, everywhere).item() == math.inf
    assert divergence(everywhere.log(), log_p).item() == math.inf
    log_p.grad = None
    both = divergence(excluded.log(), log_p) + divergence(log_p, excluded.log())
    assert both.item() == pytest.approx(0, abs=1e-15)
    both.sum().backward()
    assert torch.isfinite(log_p.grad).all()


def test_one_class_leaves_nothing_to_be_undecided_about():
    log_p = torch.zeros(3, 1)
    assert entropy(log_p).tolist() == relative_entropy(log_p).tolist() == [0.0] * 3
