"""What noise draws: by seed and by the place of the example, so that one more example changes no other's label."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from softtargets.randomness import key_words, words

Numbers = NDArray[np.float64]


def uniforms_by_place(count: int, seed: int, purpose: str, stream: int = 0) -> tuple[Numbers, Numbers]:
    """Two numbers from 0 to just below 1 for each of so many examples, with all 53 bits of a double.

    Other streams of the same seed and purpose share no draws.

    >>> few, more = uniforms_by_place(2, 0, "example")[0], uniforms_by_place(5, 0, "example")[0]
    >>> bool((few == more[:2]).all())
    True
    """
    drawn = words(key_words(seed, purpose), torch.arange(count), stream).numpy()
    high, low = drawn[:, 0::2] >> 5, drawn[:, 1::2] >> 6
    both = (high * 2.0**26 + low) * 2.0**-53
    return both[:, 0], both[:, 1]


def chosen(probabilities: Numbers, uniform: Numbers) -> NDArray[np.int64]:
    """For each row (N, K) of probabilities the class that its number in [0, 1) falls on; never one of probability 0.

    >>> chosen(np.array([[0.2, 0.0, 0.8], [0.2, 0.0, 0.8]]), np.array([0.1, 0.2])).tolist()
    [0, 2]
    """
    reached = np.cumsum(probabilities, axis=1)
    # Rounding may leave the last sum below 1: whatever lies beyond belongs to the last class that is possible.
    last = probabilities.shape[1] - 1 - (probabilities[:, ::-1] > 0).argmax(1)
    found = (uniform[:, None] >= reached).sum(1)
    classes: NDArray[np.int64] = np.minimum(found, last).astype(np.int64)
    return classes
