"""Clean sentence pairs as fairseq's IWSLT scripts do, and say what that took away."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

from softtargets.data.text import Pairs
from softtargets.exceptions import SofttargetsError

Count = Callable[[Sequence[str]], Sequence[int]]
"""Gives the length of each sentence, in whatever unit."""

# No reader sees these. The first may have stood between words, the second have no width; joiners, which are part of
# words and emoji, are in neither.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")
_WIDTHLESS = re.compile("[\xad\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")


@dataclass(frozen=True)
class CleaningReport:
    """What became of the pairs that were read. Each dropped pair counts once, under the first reason there is.

    altered: pairs from which control or other invisible characters were taken.
    duplicates: kept pairs that are equal to an earlier one; they are reported and not dropped.
    """

    read: int
    kept: int
    empty: int
    short: int
    long: int
    ratio: int
    altered: int
    duplicates: int

    def __str__(self) -> str:
        reasons = {"empty": "empty on one side", "short": "too short", "long": "too long"}
        reasons["ratio"] = "too different in length"
        dropped = [f"{getattr(self, name):,} {why}" for name, why in reasons.items() if getattr(self, name)]
        said = f"{self.kept:,} of {self.read:,} sentence pairs were kept"
        if dropped:
            said += f"; dropped: {', '.join(dropped)}"
        if self.altered:
            said += f"; invisible characters were removed from {self.altered:,}"
        if self.duplicates:
            said += f"; {self.duplicates:,} of those kept are repetitions"
        return f"{said}."


@dataclass(frozen=True)
class CleanedPairs:
    """Pairs that were kept, in order, and the report on all."""

    pairs: Pairs
    report: CleaningReport


def words(sentences: Sequence[str]) -> list[int]:
    """Count what stands between spaces.

    >>> words(["Two words.", ""])
    [2, 0]
    """
    return [len(sentence.split()) for sentence in sentences]


def clean_pairs(
    pairs: Pairs,
    shortest: int = 1,
    longest: int | None = 175,
    ratio: float | None = 1.5,
    lowercase: bool = False,
    count: Count = words,
) -> CleanedPairs:
    """Drop pairs that are empty, too short or long, or too different in length on their two sides.

    The rule is that of Moses' clean-corpus-n, as fairseq's prepare-iwslt14.sh calls it: shortest <= length <= longest
    on both sides and neither side more than `ratio` times as long as the other. `None` for `longest` or `ratio` sets
    no bound. Lengths are words between spaces, or what `count` gives for a list of sentences:
    ``lambda texts: [len(pieces) for pieces in tokeniser.encode(texts)]`` counts pieces. Invisible control characters
    become spaces, runs of spaces one space, and everything is NFC; fairseq counts after Moses' tokenisation, so it
    drops others where punctuation decides.

    >>> cleaned = clean_pairs(Pairs(("Go on!", "Yes.", ""), ("Mach weiter!", "Ja, das ist so.", "Nichts")))
    >>> list(cleaned.pairs)
    [('Go on!', 'Mach weiter!')]
    >>> str(cleaned.report)
    '1 of 3 sentence pairs were kept; dropped: 1 empty on one side, 1 too different in length.'
    """
    _check(shortest, longest, ratio)
    tally = {field.name: 0 for field in fields(CleaningReport)}
    tally["read"] = len(pairs)
    tidied = []
    for pair in pairs:
        visible = tuple(map(_visible, pair))
        tally["altered"] += visible != pair
        tidied.append(tuple(_tidy(sentence, lowercase) for sentence in visible))
    lengths = [count([pair[side] for pair in tidied]) for side in (0, 1)]
    kept, seen = [], set()
    for pair, *both in zip(tidied, *lengths, strict=True):
        reason = _reason(pair, both, shortest, longest, ratio)
        if not reason:
            tally["duplicates"] += pair in seen
            seen.add(pair)
            kept.append(pair)
        tally[reason or "kept"] += 1
    sides = tuple(zip(*kept, strict=True)) or ((), ())
    return CleanedPairs(Pairs(*sides), CleaningReport(**tally))


def _reason(
    pair: tuple[str, ...], lengths: Sequence[int], shortest: int, longest: int | None, ratio: float | None
) -> str:
    """Why a pair is dropped, as the report calls it; an empty text for one that is kept."""
    low, high = min(lengths), max(lengths)
    if not all(pair):
        return "empty"
    if low < shortest:
        return "short"
    if longest is not None and high > longest:
        return "long"
    return "ratio" if ratio is not None and high > ratio * low else ""


def _visible(sentence: str) -> str:
    return _WIDTHLESS.sub("", _CONTROL.sub(" ", sentence))


def _tidy(sentence: str, lowercase: bool) -> str:
    return unicodedata.normalize("NFC", " ".join((sentence.lower() if lowercase else sentence).split()))


def _check(shortest: int, longest: int | None, ratio: float | None) -> None:
    if shortest < 0:
        raise SofttargetsError(f"must be at least 0, not {shortest}", argument="shortest")
    if longest is not None and longest < shortest:
        raise SofttargetsError(
            f"must be at least as much as shortest ({shortest}), not {longest}", argument="longest"
        )
    if ratio is not None and not ratio >= 1:
        raise SofttargetsError(f"must be at least 1, not {ratio}", argument="ratio")
