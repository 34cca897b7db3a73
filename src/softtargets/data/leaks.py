"""Held-out sentences that the training set contains too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from softtargets.data.sentences import plain_form
from softtargets.data.text import Pairs


@dataclass(frozen=True)
class LeakReport:
    """How many held-out pairs have their source, their target or both together in the training set.

    The first three count sentences that are equal to the character, the ``alike`` ones those with the same words
    (`plain_form`). Each held-out pair counts, repetitions included.
    """

    held_out: int
    sources: int
    targets: int
    pairs: int
    sources_alike: int
    targets_alike: int
    pairs_alike: int

    def __str__(self) -> str:
        share = 100 * self.sources_alike / self.held_out if self.held_out else 0.0
        return (
            f"{self.sources_alike:,} of {self.held_out:,} held-out source sentences are in the training set "
            f"({share:.1f} %), {self.sources:,} of them to the character; of the target sentences "
            f"{self.targets_alike:,} ({self.targets:,}), of the pairs {self.pairs_alike:,} ({self.pairs:,})"
        )


def leaks(train: Pairs, held_out: Pairs) -> LeakReport:
    """Count what of `held_out` also occurs in `train`, to the character and by its words.

    Multi30k leaks next to nothing: of its 1,014 validation pairs 1 English sentence, 1 German and 4 French ones are in
    the training set, 1 French pair among them, and none of test 2016. Our split of Tatoeba leaks none by construction.

    >>> train = Pairs(("Hello.", "Go!"), ("Hallo.", "Geh!"))
    >>> str(leaks(train, Pairs(("hello", "Go!", "Run!"), ("Hallo!", "Los!", "Lauf!"))))
    '2 of 3 held-out source sentences are in the training set (66.7 %), 1 of them to the character; of the target
    sentences 1 (0), of the pairs 1 (0)'
    """
    return LeakReport(len(held_out), *_common(train, held_out, str), *_common(train, held_out, plain_form))


def _common(train: Pairs, held_out: Pairs, form: Callable[[str], str]) -> tuple[int, int, int]:
    known, asked = (
        [[form(sentence) for sentence in side] for side in (pairs.sources, pairs.targets)]
        for pairs in (train, held_out)
    )
    sources, targets = (set(side) for side in known)
    pairs = set(zip(*known, strict=True))
    return (
        sum(sentence in sources for sentence in asked[0]),
        sum(sentence in targets for sentence in asked[1]),
        sum(pair in pairs for pair in zip(*asked, strict=True)),
    )
