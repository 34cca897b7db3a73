from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import softmax

from softtargets.noise import pair, suspicious_examples, symmetric
from softtargets.noise.estimation.anchors import find_anchors
from softtargets.noise.estimation.calibrated import calibrated
from softtargets.noise.estimation.sample import as_sample


def example(noise, examples=2000, sure=2.5):
    random = np.random.default_rng(0)
    clean = random.integers(4, size=examples)
    given = noise(clean, 0.2, 4, 1)
    # What a model says that has learnt from such labels: it knows how often which class is taken for which.
    transitions = np.stack([(given[clean == k][:, None] == np.arange(4)).mean(0) for k in range(4)])
    known = softmax(sure * np.eye(4)[clean] + random.standard_normal((examples, 4)), axis=1)
    return clean, given, known @ transitions


def test_scores_by_hand():
    _, given, probabilities = example(pair, 600)
    data, _ = calibrated(as_sample(given, probabilities))
    counts = find_anchors(data).counts.numpy() + 0.5
    found = suspicious_examples(given, probabilities)
    scores = {}
    for n, p in enumerate(data.probabilities.numpy()):
        weights = [p[i] * (counts[i, given[n]] / counts[i].sum()) ** 0.5 for i in range(4)]
        scores[n] = 1 - weights[given[n]] / sum(weights)
        weights[given[n]] = -1
        place = int(np.flatnonzero(found.index == n)[0])
        assert found.likely[place] == int(np.argmax(weights))
        assert found.given[place] == given[n]
    assert found.score.tolist() == pytest.approx([scores[n] for n in found.index])
    assert (np.diff(found.score) <= 0).all()
    assert sorted(found.index) == list(range(600))


@pytest.mark.parametrize("noise", [symmetric, pair])
def test_wrong_labels_come_first_and_more_of_them_than_by_the_margin(noise):
    clean, given, probabilities = example(noise)
    wrong = given != clean
    found = suspicious_examples(given, probabilities, most=int(wrong.sum()))
    precision = wrong[found.index].mean()
    own = probabilities[np.arange(len(given)), given]
    others = probabilities - 2 * np.eye(4)[given]
    by_margin = wrong[np.argsort(own - others.max(1))[: wrong.sum()]].mean()
    assert precision > 0.75
    assert precision >= by_margin - 0.01
    right = given[found.index] != clean[found.index]
    assert (found.likely[right] == clean[found.index[right]]).mean() > 0.85


def test_as_many_as_asked_for_and_in_rows():
    _, given, probabilities = example(symmetric, 300)
    whole = suspicious_examples(torch.from_numpy(given), torch.from_numpy(probabilities))
    first = suspicious_examples(given, probabilities, most=7)
    assert (len(first), len(whole)) == (7, 300)
    assert first.index.tolist() == whole.index[:7].tolist()
    assert list(first.rows()[0]) == ["rank", "index", "given", "likely", "score"]
    assert [row["rank"] for row in first.rows()] == list(range(1, 8))
    assert suspicious_examples(given, probabilities, most=0).rows() == []
    with pytest.raises(ValueError, match="most must be a number of examples, not -1"):
        suspicious_examples(given, probabilities, most=-1)


def test_probabilities_of_zero_and_one_and_few_examples():
    found = suspicious_examples(np.array([0, 1, 1]), np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]))
    assert found.index[0] == 2
    assert found.likely[0] == 0
    assert np.isfinite(found.score).all()
    alone = suspicious_examples(np.array([1]), np.array([[0.2, 0.8]]))
    assert (alone.index.tolist(), alone.likely.tolist()) == ([0], [0])
