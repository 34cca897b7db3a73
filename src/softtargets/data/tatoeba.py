"""Tatoeba's sentence pairs with a split of our own, by English sentence and fixed for ever."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from softtargets.data.files import reading
from softtargets.data.sentences import hashed, plain_form
from softtargets.data.text import Pairs, read_tsv
from softtargets.exceptions import DataError

# Of each language that is paired with English: the table, and how many pairs it has. A recipe names its data and
# not how much of it there is, so other exports, which are longer or shorter, go by another name.
TABLES = {"de": ("deu-eng.tsv", 169_813), "fr": ("fra-eng.tsv", 167_130)}
# The share of English sentences held out for each part: about 3,000 pairs in either language.
SHARES = {"test": 0.018, "validation": 0.018}
PARTS = ("train", "validation", "test")


def tatoeba_file(root: Path, source: str, target: str) -> tuple[Path, int]:
    """Return the table of a direction, whether or not it exists, and the number of pairs in it."""
    name, count = TABLES[target if source == "en" else source]
    return root / "tatoeba" / name, count


def read_tatoeba(path: Path, count: int, part: str, *, turned: bool = False) -> Pairs:
    """Read a part of a table of English and other sentences; `turned` puts English second."""
    with reading(path) as file:  # a missing file is named
        there = os.fstat(file.fileno())
    chosen = _split(path, count, there.st_size, there.st_mtime_ns)[part]
    return Pairs(chosen.targets, chosen.sources) if turned else chosen


@lru_cache(maxsize=2)
def _split(path: Path, count: int, size: int, written: int) -> dict[str, Pairs]:
    """All parts of a table; remembered, since whoever wants one wants the others too."""
    pairs = read_tsv(path)
    if len(pairs) != count:
        raise DataError(
            f"{path} has {len(pairs):,} pairs, but this corpus has {count:,}; load another export of Tatoeba as your "
            "own text, with parallel-text"
        )
    return split_by_sentence(pairs)


def split_by_sentence(pairs: Pairs) -> dict[str, Pairs]:
    """Deal pairs out to train, validation and test by their source sentence, and order them by the same hash.

    A sentence and all its translations are in one part, whatever its case and punctuation, and in the same part of
    every corpus: an English sentence that is held out of en-de is held out of en-fr. Pairs whose target is a target of
    validation or test as well are left out of train, so that nothing leaks in the other direction either; of Tatoeba
    these are 965 in German and 811 in French. The order is as good as random, so the first few thousand pairs are a
    sample of all; in the files they are the shortest.

    >>> parts = split_by_sentence(Pairs(("Hi.", "HI!", "Run!"), ("Hallo!", "Grüß Gott!", "Lauf!")))
    >>> {part: list(pairs) for part, pairs in parts.items()}
    {'train': [('Run!', 'Lauf!')], 'validation': [('Hi.', 'Hallo!'), ('HI!', 'Grüß Gott!')], 'test': []}
    """
    places = [hashed(plain_form(sentence), "softtargets tatoeba split") for sentence in pairs.sources]
    dealt: dict[str, list[int]] = {part: [] for part in PARTS}
    for row in sorted(range(len(pairs)), key=places.__getitem__):
        if places[row] < SHARES["test"]:
            part = "test"
        else:
            part = "validation" if places[row] < SHARES["test"] + SHARES["validation"] else "train"
        dealt[part].append(row)
    held_out = {plain_form(pairs.targets[row]) for row in (*dealt["validation"], *dealt["test"])}
    dealt["train"] = [row for row in dealt["train"] if plain_form(pairs.targets[row]) not in held_out]
    return {part: pairs.part(rows) for part, rows in dealt.items()}
