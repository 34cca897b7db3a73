from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from softtargets.noise import assign_folds, out_of_fold


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 4), min_size=6, max_size=60), st.integers(2, 6), st.integers(0, 2**40))
def test_every_class_is_spread_over_the_folds(labels, folds, seed):
    labels = np.array(labels)
    found = assign_folds(labels, folds, seed)
    for chosen in (slice(None), *(labels == k for k in np.unique(labels))):
        counts = np.bincount(found[chosen], minlength=folds)
        assert counts.max() - counts.min() <= 1
    assert np.array_equal(found, assign_folds(torch.from_numpy(labels), folds, seed))


def test_folds_are_drawn_by_seed():
    labels = np.zeros(100, np.int64)
    assert not np.array_equal(assign_folds(labels, seed=0), assign_folds(labels, seed=1))
    assert not np.array_equal(assign_folds(labels), np.arange(100) % 5)


def test_nobody_is_predicted_by_a_model_that_saw_it():
    labels = np.arange(50) % 3
    seen = []

    def fit_predict(rest, held_out):
        assert not set(rest) & set(held_out)
        assert len(rest) + len(held_out) == 50
        seen.extend(held_out)
        said = np.full((len(held_out), 3), 0.1)
        said[:, 0] = held_out / 100
        said[:, 1] = 0.9 - said[:, 0]
        return torch.from_numpy(said)

    found = out_of_fold(fit_predict, labels, folds=4, seed=3)
    assert sorted(seen) == list(range(50))
    assert found[:, 0].tolist() == pytest.approx([n / 100 for n in range(50)])


def test_what_makes_no_sense_is_refused():
    labels = np.arange(6) % 2
    with pytest.raises(ValueError, match="folds must be from 2 to the number of examples, 6, not 7"):
        assign_folds(labels, 7)
    with pytest.raises(ValueError, match="not 1"):
        assign_folds(labels, 1)
    with pytest.raises(ValueError, match="number of examples, 0, not 5"):
        assign_folds(np.zeros(0, np.int64))
    with pytest.raises(ValueError, match="that of example 1 is -1"):
        assign_folds(np.array([0, -1, 2]), 2)
    with pytest.raises(ValueError, match=r"not \(2, 3\)"):
        assign_folds(labels.reshape(2, 3), 2)
    with pytest.raises(ValueError, match="probabilities of fold 0 must lie between 0 and 1"):
        out_of_fold(lambda rest, held_out: np.full((len(held_out), 2), 7.0), labels, 2)
    with pytest.raises(ValueError, match="fold 0 must be 3 x 2, not 6 x 2"):
        out_of_fold(lambda rest, held_out: np.full((6, 2), 0.5), labels, 2)
