from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from softtargets.distillation import smoothness_index


def teacher(examples=40, classes=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(examples, classes, generator=generator, dtype=torch.float64)
    return logits.softmax(-1), torch.randint(classes, (examples,), generator=generator)


def by_loops(p, y):
    total = 0.0
    for row, label in zip(p, y, strict=True):
        classes = len(row)
        for k in range(classes):
            truth = 1 if k == label else 0
            total += (1 - truth) * row[k] * classes / (classes - 1)
    return total / len(y)


def test_an_index_computed_by_hand():
    # Wrong mass 0.4 and, as the second example is mistaken, 0.9; mean 0.65, times 3 / 2.
    p = np.array([[0.6, 0.3, 0.1], [0.7, 0.2, 0.1]])
    assert smoothness_index(p, np.array([0, 2])) == pytest.approx(0.975, rel=1e-12)


@pytest.mark.parametrize("classes", [2, 3, 10, 100])
def test_the_definition_with_loops(classes):
    p, y = teacher(classes=classes)
    assert smoothness_index(p, y) == pytest.approx(by_loops(p.tolist(), y.tolist()), rel=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 0.05, 0.1, 0.6, 1.0])
@pytest.mark.parametrize("classes", [2, 10, 100])
def test_targets_of_label_smoothing_over_all_classes_have_alpha(alpha, classes):
    labels = torch.arange(7) % classes
    targets = (1 - alpha) * torch.nn.functional.one_hot(labels, classes).double() + alpha / classes
    assert smoothness_index(targets, labels) == pytest.approx(alpha, rel=1e-12, abs=1e-15)


def test_a_teacher_that_is_sure_and_wrong_has_the_most():
    assert smoothness_index(torch.eye(4), torch.tensor([1, 2, 3, 0])) == pytest.approx(4 / 3)


def test_a_small_index_keeps_its_digits():
    p = torch.tensor([[1.0, 1e-20, 3e-20]])
    assert smoothness_index(p, torch.tensor([0])) == pytest.approx(4e-20 * 3 / 2, rel=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.lists(st.floats(-30, 30), min_size=4, max_size=4), min_size=1, max_size=10),
    data=st.data(),
)
def test_it_lies_between_none_and_the_most_in_any_order(rows, data):
    y = torch.tensor(data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows))))
    p = torch.tensor(rows, dtype=torch.float64).softmax(-1)
    found = smoothness_index(p, y)
    assert 0 <= found <= 4 / 3 * (1 + 1e-12)
    order = data.draw(st.permutations(range(len(rows))))
    assert smoothness_index(p[order], y[order]) == pytest.approx(found, rel=1e-12)


def test_numpy_and_torch_in_any_precision_agree():
    p, y = teacher()
    expected = smoothness_index(p, y)
    assert smoothness_index(p.numpy(), y.numpy().astype(np.uint8)) == expected
    assert smoothness_index(p.float(), y.int()) == pytest.approx(expected, rel=1e-6)
    assert smoothness_index(p.half(), y) == pytest.approx(expected, rel=1e-2)


@pytest.mark.parametrize(
    ("p", "y", "message"),
    [
        (torch.tensor([[3.0, -1.0]]), torch.tensor([0]), "teacher_probabilities must lie between 0 and 1"),
        (
            torch.tensor([[0.5, math.nan]]),
            torch.tensor([0]),
            "teacher_probabilities of example 0 are not all",
        ),
        (torch.tensor([[0.5, 0.5]]), torch.tensor([2]), "labels must lie between 0 and 1"),
        (torch.tensor([[0.5, 0.5]]), torch.tensor([0, 1]), "one label for each of the 1 examples"),
        (torch.zeros(0, 2), torch.zeros(0, dtype=torch.long), "at least one of each"),
        (torch.ones(2, 1), torch.tensor([0, 0]), "at least 2 classes"),
    ],
)
def test_bad_input_is_refused(p, y, message):
    with pytest.raises(ValueError, match=message):
        smoothness_index(p, y)
