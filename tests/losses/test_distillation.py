from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from softtargets.losses import Distillation

from .making import batch, cross_entropy, one_hot, softmax


def by_loops(logits, labels, teacher, temperature, beta, student_temperature):
    total = 0.0
    for row, label, taught in zip(logits.tolist(), labels.tolist(), teacher.tolist(), strict=True):
        soft = softmax([value / temperature for value in taught])
        own = [value / temperature for value in row] if student_temperature else row
        hard = cross_entropy(one_hot(label, len(row)), row)
        total += (1 - beta) * hard + beta * cross_entropy(soft, own)
    return total / len(labels)


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0, 20.0])
@pytest.mark.parametrize("student_temperature", [False, True])
def test_the_loss_against_loops(beta, temperature, student_temperature):
    logits, labels = batch(6, 5)
    teacher, _ = batch(6, 5, seed=1)
    expected = by_loops(logits, labels, teacher, temperature, beta, student_temperature)
    loss = Distillation(temperature, beta, student_temperature)
    assert loss(logits, labels, teacher).item() == pytest.approx(expected, rel=1e-13)


def test_the_loss_in_single_precision():
    logits, labels = batch(6, 5, torch.float32)
    teacher, _ = batch(6, 5, torch.float32, seed=1)
    expected = by_loops(logits.double(), labels, teacher.double(), 3.0, 0.3, True)
    found = Distillation(3.0, 0.3, True)(logits, labels, teacher)
    assert found.dtype == torch.float32
    assert found.item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("student_temperature", [False, True])
def test_without_weight_on_the_teacher_it_is_cross_entropy(student_temperature):
    logits, labels = batch()
    teacher, _ = batch(seed=1)
    found = Distillation(5.0, 0.0, student_temperature)(logits, labels, teacher)
    torch.testing.assert_close(found, F.cross_entropy(logits, labels))


def test_with_all_weight_on_the_teacher_the_labels_do_not_matter():
    logits, labels = batch(6, 4)
    teacher, _ = batch(6, 4, seed=1)
    loss = Distillation(2.0, 1.0)
    assert torch.equal(loss(logits, labels, teacher), loss(logits, (labels + 1) % 4, teacher))
    blended = Distillation(2.0, 0.5)
    assert not torch.equal(blended(logits, labels, teacher), blended(logits, (labels + 1) % 4, teacher))


@pytest.mark.parametrize("temperature", [1.0, 4.0])
def test_it_is_the_divergence_from_the_teacher_plus_the_teachers_entropy(temperature):
    logits, labels = batch(6, 5)
    teacher, _ = batch(6, 5, seed=1)
    divergence = entropy = 0.0
    for row, taught in zip(logits.tolist(), teacher.tolist(), strict=True):
        q = softmax([value / temperature for value in taught])
        p = softmax([value / temperature for value in row])
        divergence += sum(a * math.log(a / b) for a, b in zip(q, p, strict=True)) / 6
        entropy -= sum(a * math.log(a) for a in q) / 6
    found = Distillation(temperature, 1.0, True)(logits, labels, teacher).item()
    assert found == pytest.approx(divergence + entropy, rel=1e-12)


def test_it_has_the_gradient_of_torchs_divergence():
    logits, labels = batch(6, 5)
    teacher, _ = batch(6, 5, seed=1)
    ours, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    Distillation(3.0, 1.0, True)(ours, labels, teacher).backward()
    F.kl_div(
        F.log_softmax(theirs / 3, -1), F.log_softmax(teacher / 3, -1), reduction="batchmean", log_target=True
    ).backward()
    torch.testing.assert_close(ours.grad, theirs.grad, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(("beta", "own"), [(1.0, False), (0.3, True), (0.0, False)])
def test_gradients_flow_to_the_student(beta, own):
    logits, labels = batch(3, 4)
    teacher, _ = batch(3, 4, seed=1)
    loss = Distillation(2.0, beta, own)
    assert torch.autograd.gradcheck(lambda z: loss(z, labels, teacher), logits.requires_grad_())


def test_a_student_that_agrees_with_its_teacher_cannot_do_better():
    teacher, labels = batch(4, 5, seed=1)
    student = teacher.clone().requires_grad_()
    Distillation(3.0, 1.0, True)(student, labels, teacher).backward()
    assert student.grad.abs().max().item() < 1e-15


def test_an_infinitely_hot_teacher_says_nothing():
    logits, labels = batch(4, 5)
    found = Distillation(1e9)(logits, labels, batch(4, 5, seed=1)[0]).item()
    uniform = sum(cross_entropy([0.2] * 5, row) for row in logits.tolist()) / 4
    assert found == pytest.approx(uniform, rel=1e-8)


def test_the_defaults_are_those_of_the_cifar_10_experiments():
    loss = Distillation()
    assert (loss.temperature, loss.beta, loss.student_temperature) == (1.0, 1.0, False)


@pytest.mark.parametrize("temperature", [0, -1.0, math.nan])
def test_an_impossible_temperature_is_refused(temperature):
    with pytest.raises(ValueError, match=f"temperature must be above 0, not {temperature}"):
        Distillation(temperature)


@pytest.mark.parametrize("beta", [-0.1, 1.1, math.nan])
def test_an_impossible_beta_is_refused(beta):
    with pytest.raises(ValueError, match=f"beta must be between 0 and 1, not {beta}"):
        Distillation(1.0, beta)


def test_it_prints_its_options():
    assert repr(Distillation(4.0, 0.5, True)) == (
        "Distillation(temperature=4.0, beta=0.5, student_temperature=True)"
    )
