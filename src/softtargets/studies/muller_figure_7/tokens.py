"""Which tokens are shown: by a rule about the text alone, so that all models show the same and none chooses."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# What triples are called, in the order of the page.
TRIPLES = {"words": "the three most frequent words", "nouns": "the three most frequent nouns"}
_SPACE = "▁"


def chosen_tokens(
    pieces: Sequence[str], labels: NDArray[np.int32], begins: NDArray[np.int64]
) -> dict[str, tuple[int, ...]]:
    """The three most frequent words of the training text, and the three most frequent nouns.

    A word is a piece of two letters or more that begins one, and it counts where no piece goes on with it. German
    writes nouns with a capital, and every first word: so nouns are capitalised words that do not begin a sentence.
    `labels` are the tokens of all sentences, one after another, and `begins` says where each sentence begins. A kind
    with fewer than three words is left out.

    >>> pieces = ["▁ein", "▁Mann", "▁Frau", "▁Hund", "▁Ein", "en", "▁und", "▁mit"]
    >>> labels = np.array([4, 1, 6, 0, 2, 7, 0, 3, 4, 2, 0, 1, 6, 5, 1], np.int32)
    >>> chosen_tokens(pieces, labels, np.array([0, 8, 15]))
    {'words': (0, 1, 2), 'nouns': (1, 2, 3)}
    """
    goes_on = np.array([not piece.startswith(_SPACE) and piece.isalpha() for piece in pieces])
    whole = np.append(~goes_on[labels[1:]], True)
    whole[begins[1:][begins[1:] > 0] - 1] = True
    first = np.zeros(len(labels), bool)
    first[begins[:-1][np.diff(begins) > 0]] = True
    words = [place for place, piece in enumerate(pieces) if _is_word(piece)]
    nouns = [place for place in words if pieces[place][1].isupper()]
    counts = (np.bincount(labels[seen], minlength=len(pieces)) for seen in (whole, whole & ~first))
    found = {
        name: _most(places, count)
        for name, places, count in zip(TRIPLES, (words, nouns), counts, strict=True)
    }
    return {name: tokens for name, tokens in found.items() if len(tokens) == 3}


def _is_word(piece: str) -> bool:
    return piece.startswith(_SPACE) and len(piece) > 2 and piece[1:].isalpha()


def _most(places: Sequence[int], counts: NDArray[np.int64]) -> tuple[int, ...]:
    """Of equally frequent ones those that come first in the vocabulary."""
    there = [place for place in places if counts[place] > 0]
    return tuple(sorted(sorted(there, key=lambda place: (-counts[place], place))[:3]))


def shown(piece: str) -> str:
    """A piece as people write it.

    >>> shown("▁Mann")
    'Mann'
    """
    return piece.removeprefix(_SPACE)
