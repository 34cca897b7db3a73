from __future__ import annotations

import math
import re

import pytest
import torch
from torch.nn import functional as F

from softtargets.losses import LabelSmoothing, TFReg

from .checking import (
    check_edges,
    check_every_form,
    check_gradient,
    check_nothing_moved,
    check_pack,
    check_precisions,
)
from .making import batch, log_softmax, shaped, softmax, weight_of, weighted_cross_entropy


def virtual_teacher(label, classes, correct, temperature):
    rest = (1 - correct) / (classes - 1)
    return softmax([(correct if k == label else rest) / temperature for k in range(classes)])


def divergence_from_teacher(row, label, correct, temperature, student_temperature):
    q = virtual_teacher(label, len(row), correct, temperature)
    log_p = log_softmax([value / temperature for value in row] if student_temperature else row)
    return sum(a * (math.log(a) - b) for a, b in zip(q, log_p, strict=True))


def oracle(alpha, temperature, multiplier, correct, student_temperature, divergence):
    def losses_of(rows, targets, weight):
        losses = []
        for row, target in zip(rows, targets, strict=True):
            if target is None:
                losses.append(0.0)
                continue
            apart = sum(
                part * divergence_from_teacher(row, label, correct, temperature, student_temperature)
                for label, part in enumerate(target)
            )
            if divergence == "mean":
                apart /= len(row)
            hard = weighted_cross_entropy(target, row, weight)
            losses.append((1 - alpha) * hard + alpha * multiplier * weight_of(target, weight) * apart)
        return losses

    return losses_of


@pytest.mark.parametrize(
    "options",
    [
        (0.1, 20.0, 100.0, 0.99, False, "mean"),
        (0.95, 10.0, 1.0, 0.99, False, "mean"),
        (0.5, 2.0, 1.0, 0.9, True, "batchmean"),
        (1.0, 0.05, 3.0, 1.0, True, "mean"),
        (0.3, 1.0, 2.0, 0.1, False, "batchmean"),
        (0.0, 20.0, 100.0, 0.99, False, "mean"),
    ],
)
def test_every_form_of_call_against_loops(options):
    check_every_form(lambda **more: TFReg(*options, **more), oracle(*options))


def test_it_is_what_the_released_code_computes():
    """Written with torch's own functions, as there: the divergence is averaged over examples and classes."""
    logits, labels = batch(8, 100)
    teacher = torch.full((8, 100), 0.01 / 99, dtype=torch.float64)
    teacher[torch.arange(8), labels] = 0.99
    apart = F.kl_div(F.log_softmax(logits, 1), F.softmax(teacher / 20, 1), reduction="none").mean()
    expected = 0.9 * F.cross_entropy(logits, labels) + 0.1 * 100 * apart
    torch.testing.assert_close(TFReg()(logits, labels), expected)


def test_as_released_it_is_uniform_label_smoothing():
    assert virtual_teacher(0, 100, 0.99, 20)[0] == pytest.approx(0.0105, abs=5e-5)
    assert virtual_teacher(0, 100, 0.99, 20)[1] == pytest.approx(0.00999, abs=1e-5)
    logits, labels = batch(16, 100)
    ours, theirs = (logits.clone().requires_grad_() for _ in range(2))
    TFReg()(ours, labels).backward()
    LabelSmoothing(0.1)(theirs, labels).backward()
    similarity = F.cosine_similarity(ours.grad.flatten(), theirs.grad.flatten(), dim=0)
    assert similarity.item() > 0.99999
    assert ours.grad.norm().item() == pytest.approx(theirs.grad.norm().item(), rel=0.01)


def test_the_stated_masses_have_the_same_gradient():
    alpha, temperature, multiplier, classes = 0.1, 20.0, 100.0, 10
    logits, labels = batch(5, classes)
    logits.requires_grad_()
    teacher = virtual_teacher(0, classes, 0.99, temperature)
    v, u, c = teacher[0], teacher[1], alpha * multiplier / classes
    hard, soft = (1 - alpha) + c * (v - u), c * u * classes
    log_p = F.log_softmax(logits, -1)
    mixture = hard * F.nll_loss(log_p, labels) - soft * log_p.mean()
    (expected,) = torch.autograd.grad(mixture, logits)
    (found,) = torch.autograd.grad(TFReg(alpha, temperature, multiplier)(logits, labels), logits)
    torch.testing.assert_close(found, expected)
    assert soft / (hard + soft) == pytest.approx(
        0.52, abs=0.02
    )  # ten classes share a multiplier meant for 100


def test_a_student_that_says_what_the_teacher_says_pays_only_cross_entropy():
    q = torch.tensor([virtual_teacher(2, 4, 0.99, 0.5)], dtype=torch.float64)
    loss = TFReg(0.4, 0.5, 7.0)(q.log(), torch.tensor([2]))
    assert loss.item() == pytest.approx(-0.6 * math.log(q[0, 2]), rel=1e-12)


def test_gradients():
    check_gradient(TFReg())
    check_gradient(TFReg(0.7, 2.0, 3.0, 0.8, True, "batchmean"))


def test_edges():
    check_nothing_moved(TFReg(alpha=0))
    check_edges(TFReg)
    with pytest.raises(ValueError, match="TFReg needs logits of at least two classes"):
        TFReg()(torch.zeros(2, 1), torch.tensor([0, 0]))
    cold = TFReg(0.5, 1e-6, 1.0)  # the teacher is sure, and nothing overflows
    logits, labels = batch(4, 5)
    divergence = F.cross_entropy(logits, labels) / 5
    torch.testing.assert_close(cold(logits, labels), 0.5 * F.cross_entropy(logits, labels) + 0.5 * divergence)
    huge = torch.tensor([[1e4, -1e4, 0.0]], dtype=torch.float64)
    assert math.isfinite(TFReg()(huge, torch.tensor([1])).item())
    assert math.isnan(TFReg()(torch.tensor([[math.nan, 0.0]]), torch.tensor([1])).item())


def test_precisions():
    check_precisions(TFReg)


def test_a_pack_is_each_of_its_runs():
    check_pack(
        TFReg,
        {
            "alpha": [0.1, 0.5, 0.95],
            "temperature": [20.0, 1.0, 0.3],
            "multiplier": [100.0, 2.0, 1.0],
            "correct": [0.99, 0.5, 1.0],
        },
    )
    logits, labels, _ = shaped((5,), 4)
    by_tensor = TFReg(alpha=torch.tensor(0.3))(logits, labels)
    torch.testing.assert_close(by_tensor, TFReg(0.3)(logits, labels), rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 1.1}, "alpha must be between 0 and 1, not 1.1"),
        ({"temperature": 0}, "temperature must be above 0, not 0"),
        ({"multiplier": -1}, "multiplier must be at least 0, not -1"),
        ({"correct": 1.5}, "correct must be between 0 and 1, not 1.5"),
        ({"divergence": "batch"}, "divergence must be 'mean' or 'batchmean', not 'batch' (did you mean"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        TFReg(**options)


def test_it_prints_its_options():
    assert repr(TFReg()) == (
        "TFReg(alpha=0.1, temperature=20.0, multiplier=100.0, correct=0.99, student_temperature=False, "
        "divergence='mean')"
    )
