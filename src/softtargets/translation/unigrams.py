"""How often each token of a vocabulary is a target."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from softtargets.exceptions import SofttargetsError
from softtargets.translation.symbols import EOS

_AT_ONCE = 65_536  # sentences


def frequencies(tokens: Iterable[Sequence[int]], size: int) -> NDArray[np.int64]:
    """Count each of `size` tokens over sentences, with one ``EOS`` for the end of each sentence.

    These are the counts of the labels that a decoder is trained on. Divided by their sum they are the unigram prior,
    q(v) = count(v) / sum of counts, of unigram label smoothing (Pereyra et al., Regularizing Neural Networks by
    Penalizing Confident Output Distributions, 2017, section 3.3).

    >>> frequencies([[4, 5, 4], []], size=6).tolist()
    [0, 0, 2, 0, 2, 1]
    """
    counts = np.zeros(size, np.int64)
    rows = iter(tokens)
    while block := list(islice(rows, _AT_ONCE)):
        flat = np.fromiter(chain.from_iterable(block), np.int64)
        wrong = flat[(flat < 0) | (flat >= size)]
        if len(wrong):
            raise SofttargetsError(
                f"contain {wrong[0]}, but the vocabulary has {size} tokens, counted from 0", argument="tokens"
            )
        counts += np.bincount(flat, minlength=size)
        counts[EOS] += len(block)
    return counts
