"""Splits by frequency and histograms of chosen tokens, by plain loops."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from softtargets.exceptions import SofttargetsError
from softtargets.translation import chosen_token_probabilities, frequency_scores, frequency_splits


def test_splits_by_a_loop():
    draw = random.Random(2)
    counts = np.array([draw.randint(0, 1000) for _ in range(40)])
    sentences = [[draw.randrange(40) for _ in range(draw.randint(0, 12))] for _ in range(100)]
    scores = [sum(int(counts[t]) for t in s) / len(s) if s else 0.0 for s in sentences]
    assert frequency_scores(sentences, counts).tolist() == pytest.approx(scores)
    order = sorted(range(100), key=lambda i: -scores[i])
    found = frequency_splits(sentences, counts)
    assert [len(part) for part in found] == [34, 33, 33]
    assert np.concatenate(found).tolist() == order
    assert min(scores[i] for i in found.most) >= max(scores[i] for i in found.medium)
    assert found.least[-1] == order[-1]
    shares = frequency_splits(sentences, counts / counts.sum())
    assert all(np.array_equal(a, b) for a, b in zip(found, shares, strict=True))


def test_equal_scores_keep_their_order():
    found = frequency_splits([[0]] * 7, np.array([3]))
    assert [part.tolist() for part in found] == [[0, 1, 2], [3, 4], [5, 6]]


def test_histogram_by_a_loop():
    draw = random.Random(3)
    chosen = [[math.log(draw.betavariate(4, 6)) for _ in range(draw.randint(0, 9))] for _ in range(300)]
    found = chosen_token_probabilities(chosen)
    counts = [0] * 20
    for one in chosen:
        for value in one:
            counts[min(int(math.exp(value) * 20), 19)] += 1
    assert found.counts.tolist() == counts
    assert found.tokens == sum(map(len, chosen))
    assert found.mode == pytest.approx(counts.index(max(counts)) / 20 + 0.025)
    assert 0.2 < found.mode < 0.6
    assert found.shares.sum() == pytest.approx(1)
    assert len(found.edges) == 21


def test_certainty_is_in_the_last_bin():
    found = chosen_token_probabilities([[0.0, 1e-9, -1e-9, math.log(0.41), math.log(0.43)]])
    assert found.counts[-1] == 3
    assert found.mode == pytest.approx(0.975)
    assert chosen_token_probabilities([[-math.inf]]).counts[0] == 1


def test_refusals():
    with pytest.raises(SofttargetsError, match="token 7, but counts are of 3 tokens, 0 to 2"):
        frequency_scores([[0], [7]], np.ones(3))
    with pytest.raises(SofttargetsError, match="counts must be one number"):
        frequency_scores([[0]], np.array([1.0, -1.0]))
    with pytest.raises(SofttargetsError, match="at least three sentences are needed for three groups, not 2"):
        frequency_splits([[0], [0]], np.ones(1))
    for width in (0, 0.3, 2, -1):
        with pytest.raises(SofttargetsError, match="width must divide 1"):
            chosen_token_probabilities([[-1.0]], width)
    with pytest.raises(SofttargetsError, match="no chosen tokens"):
        chosen_token_probabilities([[], []])
    for value in (0.7, math.nan):
        with pytest.raises(SofttargetsError, match="at most 0"):
            chosen_token_probabilities([[value]])
