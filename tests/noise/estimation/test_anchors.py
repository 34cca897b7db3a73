from __future__ import annotations

import numpy as np
import pytest
import torch

from softtargets.noise import estimate_noise
from softtargets.noise.estimation.anchors import FEWEST, SHARES, find_anchors
from softtargets.noise.estimation.sample import NoisySample, as_sample


def example(examples=1200, classes=4, seed=0):
    random = np.random.default_rng(seed)
    labels = random.integers(classes, size=examples)
    scores = 2 * np.eye(classes)[labels] + random.standard_normal((examples, classes))
    powers = np.exp(scores)
    return labels, powers / powers.sum(1, keepdims=True)


def by_hand(labels, probabilities, share):
    """Q of the most confident share of the predictions of each class, example by example."""
    classes = probabilities.shape[1]
    joint = np.zeros((classes, classes))
    predicted = probabilities.argmax(1)
    for k in range(classes):
        own = [n for n in range(len(labels)) if predicted[n] == k]
        own.sort(key=lambda n: -probabilities[n].max())
        first = own[: int(np.ceil(share * len(own) - 1e-9))]
        for n in first:
            joint[k, labels[n]] += len(own) / len(labels) / len(first)
    return joint


@pytest.mark.parametrize("seed", range(3))
def test_anchors_are_the_most_confident_of_each_class(seed):
    labels, probabilities = example(seed=seed)
    found = find_anchors(as_sample(labels, probabilities))
    expected = {share: by_hand(labels, probabilities, share) for share in SHARES}
    assert found.curve == pytest.approx({share: 1 - joint.trace() for share, joint in expected.items()})
    assert found.disagreement == min(found.curve.values())
    np.testing.assert_allclose(found.joint.numpy(), expected[found.share])


def test_a_weight_counts_as_so_many_examples():
    labels, probabilities = example()
    weights = np.random.default_rng(1).integers(0, 4, size=len(labels))
    data = as_sample(labels, probabilities).counted(torch.from_numpy(weights).double())
    twice = as_sample(np.repeat(labels, weights), np.repeat(probabilities, weights, 0))
    one, other = find_anchors(data), find_anchors(twice)
    # An example that is counted several times is an anchor as a whole.
    assert one.curve == pytest.approx(other.curve, abs=0.01)
    assert one.curve[1.0] == pytest.approx(other.curve[1.0], abs=1e-12)


def test_too_few_examples_for_a_share_leave_it_out():
    labels, probabilities = example(examples=200)
    assert min(find_anchors(as_sample(labels, probabilities)).curve) == 0.3 >= FEWEST / 200
    few = find_anchors(as_sample(labels[:10], probabilities[:10], every_class=False))
    assert few.curve.keys() == {1.0}


def test_a_class_that_is_never_predicted_has_no_row():
    labels, probabilities = example()
    probabilities[:, 0] = 0
    data = NoisySample(
        torch.from_numpy(labels), torch.from_numpy(probabilities), torch.ones(len(labels)).double()
    )
    assert find_anchors(data).joint[0].tolist() == [0.0] * 4
    found = estimate_noise(
        labels, probabilities / probabilities.sum(1, keepdims=True), "anchors", resamples=0
    )
    assert np.isnan(found.matrix[0]).all()


def test_the_best_quarter_of_the_classes():
    """Of four classes that are predicted equally often, one has every label right."""
    predicted = np.repeat(np.arange(4), 250)
    probabilities = 0.1 + 0.6 * np.eye(4)[predicted]
    wrong = np.arange(1000) % 10 < 2 * predicted  # 0, 20, 40 and 60 %
    found = find_anchors(as_sample(np.where(wrong, (predicted + 1) % 4, predicted), probabilities))
    assert found.lowest == 0
    assert found.curve[1.0] == pytest.approx(0.3)
