"""The two estimates that count, against loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from softtargets.noise import estimate_noise
from softtargets.noise.estimation.counting import confident_joint, naive_joint
from softtargets.noise.estimation.sample import as_sample as checked


def drawn(seed, examples=60, classes=4):
    random = np.random.default_rng(seed)
    labels = np.concatenate([np.arange(classes), random.integers(classes, size=examples - classes)])
    sharp = np.where(random.random((examples, 1)) < 0.5, 3.0, 0.5) * random.random((examples, classes))
    sharp[range(examples), labels] += random.random(examples)
    powers = np.exp(sharp)
    return labels, powers / powers.sum(1, keepdims=True)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_naive_against_loops(seed):
    labels, probabilities = drawn(seed)
    joint = [[0.0] * 4 for _ in range(4)]
    for label, row in zip(labels.tolist(), probabilities.tolist(), strict=True):
        joint[row.index(max(row))][label] += 1 / 60
    np.testing.assert_allclose(naive_joint(checked(labels, probabilities)), joint, atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_confident_against_loops(seed):
    labels, probabilities = drawn(seed)
    rows, of = probabilities.tolist(), labels.tolist()
    thresholds = []
    for k in range(4):
        own = [row[k] for row, label in zip(rows, of, strict=True) if label == k]
        thresholds.append(sum(own) / len(own))
    counts = [[0.0] * 4 for _ in range(4)]  # noisy, clean: as the paper has it
    for row, label in zip(rows, of, strict=True):
        sure = [k for k in range(4) if row[k] >= thresholds[k] - 1e-9]
        if sure:
            counts[label][max(sure, key=lambda k: row[k])] += 1
    joint = np.zeros((4, 4))
    for label in range(4):
        total = sum(counts[label])
        for k in range(4):
            joint[k, label] = counts[label][k] / total * of.count(label) / 60
    np.testing.assert_allclose(confident_joint(checked(labels, probabilities)), joint, atol=1e-12)


@pytest.mark.parametrize("estimate", [naive_joint, confident_joint])
def test_counting_an_example_twice_is_having_it_twice(estimate):
    data = checked(*drawn(0))
    weights = torch.arange(60) % 3
    repeated = torch.repeat_interleave(torch.arange(60), weights)
    double = checked(data.labels[repeated], data.probabilities[repeated])
    torch.testing.assert_close(estimate(data.counted(weights.double())), estimate(double))


def test_where_nobody_is_sure_a_label_is_taken_to_be_right():
    # Those labelled 0 all say 1, but less surely than those labelled 1 do.
    probabilities = np.array([[0.4, 0.6], [0.35, 0.65], [0.0, 1.0], [0.0, 1.0]])
    found = estimate_noise(np.array([0, 0, 1, 1]), probabilities, "confident", resamples=0)
    assert found.matrix.tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_a_label_that_a_resample_lacks_leaves_numbers():
    data = checked(*drawn(3))
    joint = confident_joint(data.counted((data.labels != 2).double()))
    assert bool(joint.isfinite().all())
    assert float(joint.sum()) == pytest.approx(1)
    assert joint[:, 2].tolist() == [0] * 4
