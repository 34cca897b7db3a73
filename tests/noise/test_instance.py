from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.special import softmax
from scipy.stats import truncnorm

from softtargets.noise import instance, instance_probabilities
from softtargets.noise.base import uniforms_by_place
from softtargets.randomness import key_words, normals, words

COUNT, WIDTH, CLASSES = 4000, 12, 5


@pytest.fixture
def examples():
    random = np.random.default_rng(0)
    return random.integers(CLASSES, size=COUNT), random.standard_normal((COUNT, WIDTH))


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.45, 0.9])
def test_the_share_of_wrong_labels_is_the_rate(examples, rate):
    labels, inputs = examples
    share = (instance(labels, inputs, rate, CLASSES, seed=1) != labels).mean()
    assert abs(share - rate) < 4 * math.sqrt(rate * (1 - rate) / COUNT)


def test_a_rate_of_nothing_changes_nothing_and_of_one_everything(examples):
    labels, inputs = examples
    assert np.array_equal(instance(labels, inputs, 0.0, CLASSES, seed=0), labels)
    assert not (instance(labels, inputs, 1.0, CLASSES, seed=0) == labels).any()


def test_probabilities_against_loops(examples):
    labels, inputs = (each[:12] for each in examples)
    found = instance_probabilities(labels, inputs, 0.3, CLASSES, seed=7)
    uniform, _ = uniforms_by_place(12, 7, "instance noise")
    key = key_words(7, "instance noise directions")
    flips = truncnorm(-3, 3, loc=0.3, scale=0.1).ppf(uniform)
    for n, label in enumerate(labels.tolist()):
        scores = []
        for j in range(CLASSES):
            drawn = [normals(words(key, feature, label, j // 2)).tolist()[j % 2] for feature in range(WIDTH)]
            scores.append(math.fsum(x * w for x, w in zip(inputs[n].tolist(), drawn, strict=True)))
        others = [j for j in range(CLASSES) if j != label]
        shares = softmax([scores[j] for j in others])
        expected = dict(zip(others, flips[n] * shares, strict=True)) | {label: 1 - flips[n]}
        assert found[n].tolist() == pytest.approx([expected[j] for j in range(CLASSES)], abs=1e-9)


def test_labels_are_drawn_from_the_probabilities(examples):
    _, inputs = examples
    same = np.repeat(inputs[:1], COUNT, axis=0)
    labels = np.full(COUNT, 2)
    expected = instance_probabilities(labels, same, 0.5, CLASSES, seed=3).mean(0)
    shares = np.bincount(instance(labels, same, 0.5, CLASSES, seed=3), minlength=CLASSES) / COUNT
    assert np.abs(shares - expected).max() < 4 * math.sqrt(0.25 / COUNT)


def test_looks_decide_what_a_label_becomes(examples):
    _, inputs = examples
    labels = np.zeros(COUNT, np.int64)
    noisy = instance(labels, inputs, 1.0, CLASSES, seed=0)
    side = inputs @ (inputs[noisy == 1].mean(0) - inputs[noisy == 2].mean(0)) > 0
    assert (noisy[side] == 1).mean() > 2 * (noisy[~side] == 1).mean()


def test_streams_are_independent_draws_of_one_noise(examples):
    labels, inputs = examples
    first, other = (instance(labels, inputs, 1.0, CLASSES, seed=0, stream=stream) for stream in (0, 1))
    assert (first != other).any()
    # Each label has the same favourites in both, unlike under another seed.
    elsewhere = instance(labels, inputs, 1.0, CLASSES, seed=1)
    assert (first == other).mean() > (first == elsewhere).mean() + 0.2
    flips = [instance_probabilities(labels, inputs, 0.3, CLASSES, 0, s)[range(COUNT), labels] for s in (0, 1)]
    assert abs(np.corrcoef(flips)[0, 1]) < 4 / math.sqrt(COUNT)


def test_reproducible_by_seed_and_place(examples):
    labels, inputs = examples
    whole = instance(labels, inputs, 0.4, CLASSES, seed=5)
    part = instance(
        torch.from_numpy(labels[:99]), torch.from_numpy(inputs[:99].reshape(99, 3, 4)), 0.4, CLASSES, 5
    )
    assert np.array_equal(whole[:99], part)
    assert not np.array_equal(whole, instance(labels, inputs, 0.4, CLASSES, seed=6))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"inputs": np.zeros((2, 3))}, r"one for each of the 3 labels, not \(2, 3\)"),
        ({"inputs": np.zeros(3)}, r"not \(3,\)"),
        ({"inputs": np.array([[0.0], [np.nan], [0.0]])}, "those of example 1 are not"),
        ({"labels": np.array([0, 1, 2])}, "between 0 and 1 for 2 classes, but that of example 2 is 2"),
        ({"rate": 1.5}, "rate must be between 0 and 1, not 1.5"),
        ({"classes": 1, "labels": np.zeros(3, np.int64)}, "at least two classes, not 1"),
    ],
)
def test_what_makes_no_sense_is_refused(changes, message):
    options = {
        "labels": np.array([0, 1, 0]),
        "inputs": np.zeros((3, 3)),
        "rate": 0.2,
        "classes": 2,
        "seed": 0,
    }
    with pytest.raises(ValueError, match=message):
        instance(**(options | changes))
