"""Predictions of examples by models that were not trained on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softtargets.arrays import ArrayLike, as_probabilities, as_tensor
from softtargets.noise.base import label_array
from softtargets.randomness import key_words, permutation


def assign_folds(labels: ArrayLike, folds: int = 5, seed: int = 0) -> NDArray[np.int64]:
    """The fold (N,) of each example, from 0: random by seed, each class spread over all folds as evenly as can be.

    >>> folds = assign_folds(np.array([0, 0, 0, 1, 1, 1]), folds=3)
    >>> sorted(folds[:3]), sorted(folds[3:])
    ([np.int64(0), np.int64(1), np.int64(2)], [np.int64(0), np.int64(1), np.int64(2)])
    """
    if np.ndim(labels) != 1:
        raise ValueError(f"labels must be (examples,), one class each, not {tuple(np.shape(labels))}")
    found = label_array(labels, 1 + max(int(as_tensor(labels).max()), 0)) if len(labels) else np.zeros(0)
    if not 2 <= folds <= len(found):
        raise ValueError(f"folds must be from 2 to the number of examples, {len(found)}, not {folds}")
    order = permutation(key_words(seed, "folds"), len(found)).numpy()
    # Class after class, in random order within each: dealing them out in turn spreads every class.
    dealt = order[np.argsort(found[order], kind="stable")]
    assigned = np.empty(len(found), np.int64)
    assigned[dealt] = np.arange(len(found)) % folds
    return assigned


def out_of_fold(
    fit_predict: Callable[[NDArray[np.int64], NDArray[np.int64]], Any],
    labels: ArrayLike,
    folds: int = 5,
    seed: int = 0,
) -> NDArray[np.float64]:
    """Probabilities (N, K) of every example by a model that was trained on the other folds.

    `fit_predict(rest, held_out)` trains on the examples at positions `rest` and gives the probabilities (n, K) of those
    at `held_out`.

    >>> labels = np.array([0, 1, 0, 1, 1, 1])
    >>> def frequencies(rest, held_out):
    ...     return np.tile(np.bincount(labels[rest], minlength=2) / len(rest), (len(held_out), 1))
    >>> out_of_fold(frequencies, labels, folds=2)[0]
    array([0.33333333, 0.66666667])
    """
    assigned = assign_folds(labels, folds, seed)
    found: NDArray[np.float64] | None = None
    for fold in range(folds):
        rest, held_out = np.flatnonzero(assigned != fold), np.flatnonzero(assigned == fold)
        said = as_probabilities(fit_predict(rest, held_out), f"probabilities of fold {fold}").detach().cpu()
        if found is None:
            found = np.empty((len(assigned), said.shape[1]))
        if said.shape != (len(held_out), found.shape[1]):
            raise ValueError(
                f"probabilities of fold {fold} must be {len(held_out)} x {found.shape[1]}, not "
                f"{len(said)} x {said.shape[1]}; give all classes in every fold"
            )
        found[held_out] = said.double().numpy()
    assert found is not None
    return found
