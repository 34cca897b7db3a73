from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_softmax, rel_entr, softmax

from softtargets.distillation import Agreement, agreement, agreement_of_probabilities


def models(examples=60, classes=5, seed=0):
    """Logits of a teacher and of a student that resembles it, and labels."""
    random = np.random.default_rng(seed)
    teacher = 3 * random.standard_normal((examples, classes))
    student = teacher + 2 * random.standard_normal((examples, classes))
    return teacher, student, random.integers(classes, size=examples)


def by_loops(teacher, student, labels, temperature):
    """Every number of an agreement from its definition."""
    same = divergence = difference = wrong = same_wrong = 0.0
    for z, s, label in zip(teacher, student, labels, strict=True):
        p, q = ([math.exp(value / temperature) for value in row] for row in (z, s))
        p, q = [value / sum(p) for value in p], [value / sum(q) for value in q]
        first, second = p.index(max(p)), q.index(max(q))
        same += first == second
        divergence += sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))
        difference += sum(abs(a - b) for a, b in zip(p, q, strict=True)) / len(p)
        wrong += first != label
        same_wrong += first == second != label
    n = len(labels)
    return same / n, divergence / n, difference / n, wrong, same_wrong / wrong


@pytest.mark.parametrize("temperature", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_definitions_with_loops(temperature, seed):
    teacher, student, labels = models(seed=seed)
    found = agreement(teacher, student, labels, temperature)
    assert found.examples == 60
    assert (
        found.same_class,
        found.divergence,
        found.difference,
        found.teacher_errors,
        found.same_class_where_teacher_wrong,
    ) == pytest.approx(by_loops(teacher.tolist(), student.tolist(), labels.tolist(), temperature), rel=1e-11)


def test_an_agreement_computed_by_hand():
    log = math.log
    teacher, student = np.log([[0.8, 0.2], [0.5, 0.5]]), np.log([[0.6, 0.4], [0.25, 0.75]])
    found = agreement(teacher, student)
    first = 0.8 * log(0.8 / 0.6) + 0.2 * log(0.2 / 0.4)
    second = 0.5 * log(2) + 0.5 * log(0.5 / 0.75)
    assert found.divergence == pytest.approx((first + second) / 2, rel=1e-12)
    assert found.difference == pytest.approx((0.2 + 0.25) / 2, rel=1e-12)
    assert found.same_class == 0.5  # of equals the first counts
    assert (found.teacher_errors, found.same_class_where_teacher_wrong) == (None, None)


def test_probabilities_and_logits_say_the_same():
    teacher, student, labels = models()
    expected = agreement(teacher, student, labels)
    found = agreement_of_probabilities(softmax(teacher, axis=1), softmax(student, axis=1), labels)
    for name in Agreement.__dataclass_fields__:
        assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=1e-12)


def test_probabilities_of_zero_against_scipy():
    p = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
    q = np.array([[0.5, 0.25, 0.25], [0.25, 0.75, 0.0]])
    expected = rel_entr(p, q).sum(1).mean()
    assert agreement_of_probabilities(p, q).divergence == pytest.approx(expected, rel=1e-12)
    assert agreement_of_probabilities(q, p).divergence == math.inf


def test_the_divergence_has_a_direction():
    p, q = np.array([[0.9, 0.1]]), np.array([[0.5, 0.5]])
    assert agreement_of_probabilities(p, q).divergence == pytest.approx(
        0.9 * math.log(1.8) + 0.1 * math.log(0.2)
    )
    assert agreement_of_probabilities(q, p).divergence == pytest.approx(
        0.5 * math.log(0.5 / 0.9) + 0.5 * math.log(5)
    )


@pytest.mark.parametrize("scale", [1e2, 1e4, 1e30])
def test_sure_models_stay_finite(scale):
    teacher, student, _ = models()
    found = agreement(scale * teacher, scale * student)
    p, log_p = softmax(scale * teacher, axis=1), log_softmax(scale * teacher, axis=1)
    expected = (p * (log_p - log_softmax(scale * student, axis=1))).sum(1).mean()
    assert math.isfinite(found.divergence)
    assert found.divergence == pytest.approx(expected, rel=1e-12)


def test_sums_that_coarse_precision_leaves_off_one_are_no_divergence():
    p = torch.randn(50, 1000, generator=torch.Generator().manual_seed(0)).softmax(-1)
    coarse = p.half()
    exact = coarse.double() / coarse.double().sum(1, keepdim=True)
    assert (coarse.double().sum(1) - 1).abs().max() > 1e-5
    assert agreement_of_probabilities(exact, coarse).divergence == pytest.approx(0, abs=1e-12)
    itself = agreement_of_probabilities(coarse, coarse)
    assert (itself.same_class, itself.divergence, itself.difference) == (1, 0, 0)


@pytest.mark.parametrize("seed", range(20))
def test_a_divergence_that_is_lost_in_rounding_is_not_negative(seed):
    teacher, student, _ = models(examples=1, seed=seed)
    assert agreement(teacher, teacher + 1e-12 * (student - teacher)).divergence >= 0


def test_the_temperature_leaves_the_classes_alone():
    teacher, student, labels = models()
    found = [agreement(teacher, student, labels, t) for t in (1.0, 1e15)]
    assert found[0].same_class == found[1].same_class
    assert found[0].same_class_where_teacher_wrong == found[1].same_class_where_teacher_wrong
    assert found[1].divergence < 1e-12 < found[0].divergence


def test_a_teacher_without_mistakes_has_none_to_pass_on():
    logits = torch.eye(3)
    found = agreement(logits, logits, torch.arange(3))
    assert found.teacher_errors == 0
    assert math.isnan(found.same_class_where_teacher_wrong)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.lists(st.floats(-40, 40), min_size=6, max_size=6), min_size=1, max_size=10),
    data=st.data(),
)
def test_shares_are_shares_and_the_order_does_not_matter(rows, data):
    both = torch.tensor(rows, dtype=torch.float64)
    teacher, student = both[:, :3], both[:, 3:]
    y = torch.tensor(data.draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows))))
    found = agreement(teacher, student, y)
    assert 0 <= found.same_class <= 1
    assert found.divergence >= 0
    assert 0 <= found.difference <= 2 / 3 + 1e-12
    itself = agreement(teacher, teacher)
    assert (itself.same_class, itself.divergence, itself.difference) == (1, 0, 0)
    order = data.draw(st.permutations(range(len(rows))))
    moved = agreement(teacher[order], student[order], y[order])
    assert moved.divergence == pytest.approx(found.divergence, rel=1e-12, abs=1e-15)
    assert (moved.same_class, moved.teacher_errors) == (found.same_class, found.teacher_errors)
    turned = agreement(student, teacher)
    assert (turned.same_class, turned.difference) == (found.same_class, pytest.approx(found.difference))


GOOD = torch.tensor([[0.9, 0.1], [0.2, 0.8]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: agreement(GOOD, GOOD[:1]), r"same examples and classes, not \(2, 2\) and \(1, 2\)"),
        (lambda: agreement(GOOD, torch.zeros(2, 3)), r"not \(2, 2\) and \(2, 3\)"),
        (lambda: agreement(GOOD * math.nan, GOOD), "teacher_logits of example 0 are not all finite"),
        (lambda: agreement(GOOD, GOOD * math.inf), "student_logits of example 0 are not all finite"),
        (lambda: agreement(GOOD, GOOD, torch.tensor([0, 2])), "labels must lie between 0 and 1"),
        (lambda: agreement(GOOD, GOOD, torch.tensor([0])), "one label for each of the 2 examples"),
        (lambda: agreement(GOOD[:0], GOOD[:0]), "at least one of each"),
        (lambda: agreement(GOOD, GOOD, temperature=0), "temperature must be a finite number above 0, not 0"),
        (lambda: agreement(GOOD, GOOD, temperature=math.nan), "temperature must be .* not nan"),
        (
            lambda: agreement_of_probabilities(GOOD * 3, GOOD),
            "teacher_probabilities must lie between 0 and 1",
        ),
        (
            lambda: agreement_of_probabilities(GOOD, GOOD / 2),
            "student_probabilities of each example must add up",
        ),
        (lambda: agreement_of_probabilities(GOOD, GOOD[:1]), "same examples and classes"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
