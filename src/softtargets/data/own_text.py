"""Aligned text of one's own as a corpus: held-out pairs, and a directory that says which text it is."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from softtargets.data.directory import data_directory
from softtargets.data.text import Pairs
from softtargets.exceptions import DataError
from softtargets.storage import make_directory, storage_errors, write_atomically

# Of text without a validation or test set: so many pairs of it at most, and at most this share.
MOST_HELD_OUT = 2000
SHARE_HELD_OUT = 0.05
LONGEST = 1000  # characters: no more pieces than any of our models takes, in whatever vocabulary
FEWEST = 20  # pairs of which some can be held out
SIDES = ("source", "target")  # how files end


def hold_out(pairs: Pairs, names: tuple[str, ...]) -> dict[str, Pairs]:
    """Take 5 % of the pairs, at most 2,000, out of a text for each of some splits; the rest is ``train``.

    Pairs with the same source sentence stay together, so that no held-out source was trained on. Nothing that is empty
    or has more than 1,000 characters is held out. Which pairs these are depends on their source sentences alone, by
    their SHA-256.

    >>> text = Pairs(tuple("abcdefghijklmnopqrstuvwxyz"), tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    >>> {name: len(split) for name, split in hold_out(text, ("validation", "test")).items()}
    {'train': 24, 'validation': 1, 'test': 1}
    """
    if not names:
        return {"train": pairs}
    if len(pairs) < FEWEST:
        raise DataError(
            f"{len(pairs)} sentence pairs are too few to hold some out for {' and '.join(names)}: there must be at "
            f"least {FEWEST}; give those splits as files of their own"
        )
    wanted = max(1, min(MOST_HELD_OUT, int(SHARE_HELD_OUT * len(pairs))))
    places: dict[str, list[int]] = {}
    for place, (source, target) in enumerate(pairs):
        if source.strip() and target.strip():
            places.setdefault(source, []).append(place)
    for source, target in pairs:
        if max(len(source), len(target)) > LONGEST:
            places.pop(source, None)
    order = iter(sorted(places, key=lambda source: hashlib.sha256(source.encode()).digest()))
    chosen: dict[str, list[int]] = {}
    for name in names:
        chosen[name] = []
        while len(chosen[name]) < wanted and (drawn := next(order, None)) is not None:
            chosen[name] += places[drawn]
    out = {place for some in chosen.values() for place in some}
    kept = [place for place in range(len(pairs)) if place not in out]
    if not kept or not all(chosen.values()):
        raise DataError(
            f"holding pairs out leaves nothing to train on: the {len(pairs)} pairs have {len(places)} different "
            "source sentences; give validation and test sets as separate files"
        )
    return {name: pairs.part(sorted(some)) for name, some in {"train": kept, **chosen}.items()}


def text_name(splits: Mapping[str, Pairs]) -> tuple[str, str]:
    """What the directory of such text is called, and its digest. The same text is the same corpus, whoever has it.

    >>> text_name({"train": Pairs(("Hello",), ("Hallo",))})
    ('text-37c36b310ed7906e', '37c36b310ed7906e')
    """
    digest = digest_of(_tidied(splits))
    return f"text-{digest}", digest


def digest_of(splits: Mapping[str, Pairs]) -> str:
    """Sixteen hexadecimal digits that say which text it is, whatever its files are called."""
    found = hashlib.sha256()
    for name in sorted(splits):
        for side in (splits[name].sources, splits[name].targets):
            found.update(f"{name} {len(side)}\n".encode())
            for sentence in side:
                found.update(sentence.encode())
                found.update(b"\n")
    return found.hexdigest()[:16]


def keep_text(splits: Mapping[str, Pairs], data_dir: Path | None = None) -> Path:
    """Write text into the data directory under its `text_name`, as ``train.source`` and so on; return the directory.

    What is there already stays as it is; if it is other text, it is refused. A crash leaves some of the files, and the
    next call writes the rest.
    """
    tidied = _tidied(splits)
    folder = data_directory(data_dir) / text_name(splits)[0]
    make_directory(folder)
    for name, content in _files(tidied):
        path = folder / name
        with storage_errors(path, "read"):
            there = path.read_bytes() if path.exists() else None
        if there is None:
            write_atomically(path, content)
        elif there != content:
            raise DataError(
                f"{path} has changed since it was written; delete the directory {folder} and give the same command "
                "again"
            )
    return folder


def _files(splits: Mapping[str, Pairs]) -> Iterator[tuple[str, bytes]]:
    for name, pairs in splits.items():
        for side, sentences in zip(SIDES, (pairs.sources, pairs.targets), strict=True):
            yield f"{name}.{side}", "".join(f"{sentence}\n" for sentence in sentences).encode()


def _tidied(splits: Mapping[str, Pairs]) -> dict[str, Pairs]:
    """Without what reading a file takes away at the ends of its lines, so that text is read as it was written."""
    return {
        name: Pairs(
            *(tuple(one.strip("\r\ufeff") for one in side) for side in (pairs.sources, pairs.targets))
        )
        for name, pairs in splits.items()
    }
