"""Parallel text: two aligned files, one sentence a line, or one file of two tab-separated columns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from softtargets.data.files import read_lines
from softtargets.exceptions import DataError

MULTI30K_LANGUAGES = ("en", "de", "fr")
MULTI30K_TESTS = ("test_2016_flickr", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr")
MULTI30K_PARTS = ("train", "validation", "test", "val", *MULTI30K_TESTS)
# What files of a part may be called, the first that is there being taken.
STEMS = {"validation": ("validation", "val", "valid", "dev")}


@dataclass(frozen=True)
class Pairs:
    """Sentences and their translations, in order.

    >>> list(Pairs(("Hello",), ("Hallo",)))
    [('Hello', 'Hallo')]
    """

    sources: tuple[str, ...]
    targets: tuple[str, ...]

    def __post_init__(self) -> None:
        if len(self.sources) != len(self.targets):
            raise DataError(f"there are {len(self.sources)} sentences but {len(self.targets)} translations")

    def __len__(self) -> int:
        return len(self.sources)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(zip(self.sources, self.targets, strict=True))

    def part(self, rows: Iterable[int]) -> Pairs:
        """Some of the pairs, in the order asked for."""
        chosen = list(rows)
        return Pairs(*(tuple(side[row] for row in chosen) for side in (self.sources, self.targets)))


def read_parallel(source: Path, target: Path) -> Pairs:
    """Read two aligned files, each plain or ``.gz``; their line counts must agree."""
    sources, targets = read_lines(source), read_lines(target)
    if len(sources) != len(targets):
        raise DataError(
            f"{source} has {len(sources)} lines but {target} has {len(targets)}; aligned files need the same "
            f"number"
        )
    return Pairs(tuple(sources), tuple(targets))


def read_tsv(path: Path) -> Pairs:
    """Read source and target from the two tab-separated columns of a plain or ``.gz`` file."""
    rows = []
    for number, line in enumerate(read_lines(path), start=1):
        columns = line.split("\t")
        if len(columns) != 2:
            raise DataError(f"{path} line {number} has {len(columns)} tab-separated columns, expected 2")
        rows.append(columns)
    return Pairs(*zip(*rows, strict=True)) if rows else Pairs((), ())


def multi30k_files(root: Path, source: str, target: str, part: str) -> tuple[Path, Path]:
    """Return the two files of a Multi30k part, whether or not they exist; the test set is that of 2016."""
    stem = {"validation": "val", "test": MULTI30K_TESTS[0]}.get(part, part)
    folder = root / "multi30k"
    return plain_or_gz(folder / f"{stem}.{source}.gz"), plain_or_gz(folder / f"{stem}.{target}.gz")


def parallel_files(folder: Path, source: str, target: str, part: str) -> Pairs:
    """Read ``part.source`` and ``part.target``, or the columns of ``part.source-target.tsv``.

    Each may end in ``.gz``; a table for the opposite direction is turned round. The files of the part validation may
    be called validation, val, valid or dev.
    """
    stems = STEMS.get(part, (part,))
    for stem in stems:
        two = find_parallel(folder, stem, source, target)
        if two:
            return read_parallel(*two)
        table, turned = (
            plain_or_gz(folder / f"{stem}.{languages}.tsv.gz")
            for languages in (f"{source}-{target}", f"{target}-{source}")
        )
        if table.exists():
            return read_tsv(table)
        if turned.exists():
            pairs = read_tsv(turned)
            return Pairs(pairs.targets, pairs.sources)
    called = f" (or {', '.join(stems[1:])} for {part})" if len(stems) > 1 else ""
    raise DataError(
        f"{folder} has neither {part}.{source} and {part}.{target} nor {part}.{source}-{target}.tsv{called} "
        f"(each may end in .gz)"
    )


def find_parallel(folder: Path, stem: str, source: str, target: str) -> tuple[Path, Path] | None:
    """Return ``stem.source`` and ``stem.target``, each plain or ``.gz``, where both exist."""
    source_file, target_file = (
        plain_or_gz(folder / f"{stem}.{language}.gz") for language in (source, target)
    )
    return (source_file, target_file) if source_file.exists() and target_file.exists() else None


def join_pairs(*parts: Pairs, tags: Sequence[str] | None = None) -> Pairs:
    """Put pairs one after the other; with `tags`, one for each, sources begin with theirs.

    A model from several languages into one needs no tag; one into several is told by it which language to write.

    >>> german, french = Pairs(("Good",), ("Gut",)), Pairs(("Good",), ("Bon",))
    >>> list(join_pairs(german, french, tags=("<2de>", "<2fr>")))
    [('<2de> Good', 'Gut'), ('<2fr> Good', 'Bon')]
    """
    if tags is not None and len(tags) != len(parts):
        raise DataError(
            f"there are {len(tags)} tags for {len(parts)} sets of pairs; give one tag for each set"
        )
    prefixes = [f"{tag} " for tag in tags] if tags is not None else [""] * len(parts)
    sources = (
        prefix + sentence for prefix, part in zip(prefixes, parts, strict=True) for sentence in part.sources
    )
    return Pairs(tuple(sources), tuple(sentence for part in parts for sentence in part.targets))


def plain_or_gz(compressed: Path) -> Path:
    """Return the plain file where only that exists, else the compressed one."""
    plain = compressed.with_suffix("")
    return plain if plain.exists() and not compressed.exists() else compressed
