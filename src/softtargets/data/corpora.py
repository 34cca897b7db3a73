"""Load sentence pairs by name."""

from __future__ import annotations

from pathlib import Path

from softtargets.data import iwslt, tatoeba, text, wmt
from softtargets.data.catalogue import find_source, remedied
from softtargets.data.directory import data_directory
from softtargets.data.source import one_of
from softtargets.exceptions import DataError

PARTS = ("train", "validation", "test")
# Of each corpus in the catalogue: its languages, which are paired with each other or with English alone, and its parts.
CORPORA: dict[str, tuple[tuple[str, ...], bool, tuple[str, ...]]] = {
    "multi30k": (text.MULTI30K_LANGUAGES, False, text.MULTI30K_PARTS),
    "tatoeba": (("en", *tatoeba.TABLES), True, tatoeba.PARTS),
    "iwslt14": (iwslt.LANGUAGES, True, (*PARTS, *iwslt.SINGLE["14"])),
    "iwslt17": (iwslt.LANGUAGES, True, (*PARTS, *iwslt.SINGLE["17"])),
    "wmt14": (("en", "de"), True, wmt.PARTS),
}


def load_pairs(
    name: str, source: str, target: str, part: str = "train", data_dir: Path | str | None = None
) -> text.Pairs:
    """Return sentence pairs of a corpus in one direction, or of several joined (``source="de+fr"``).

    Names: ``multi30k``, ``tatoeba``, ``iwslt14``, ``iwslt17``, ``wmt14``, and ``parallel-text`` for aligned files of
    your own. Parts: ``train``, ``validation``, ``test``; further test sets go by their names (``test_2017_flickr``,
    ``tst2015``, ``newstest2021``). For ``parallel-text``, `data_dir` holds ``part.source`` and ``part.target`` (plain
    or ``.gz``), or a table ``part.source-target.tsv``; validation may be called validation, val, valid or dev.

    With several target languages every source sentence begins with the one that is wanted: ``<2de> Good morning``.
    """
    one_of(name, (*CORPORA, "parallel-text"), "there is no parallel text", "known:")
    root = data_directory(data_dir)
    sources, targets = source.split("+"), target.split("+")
    directions = [(one, other) for other in targets for one in sources]
    for one, other in directions:
        if not one or not other or one == other:
            raise DataError(
                f"cannot pair the languages '{source}' and '{target}'; name two different languages, such as en and "
                "de"
            )
    if len(set(directions)) < len(directions):
        raise DataError(f"a language is named twice in '{source}' or '{target}'")
    loaded = [_direction(name, root, *direction, part) for direction in directions]
    if len(loaded) == 1:
        return loaded[0]
    return text.join_pairs(
        *loaded, tags=[f"<2{other}>" for _, other in directions] if len(targets) > 1 else None
    )


def _direction(name: str, root: Path, source: str, target: str, part: str) -> text.Pairs:
    if name not in CORPORA:
        return text.parallel_files(root, source, target, part)
    known = find_source(name)
    languages, with_english, parts = CORPORA[name]
    for language in (source, target):
        one_of(language, languages, f"{known.title} has no language")
    if with_english and "en" not in (source, target):
        raise DataError(f"{known.title} has no {source}-{target} pairs; one of the two languages must be en")
    one_of(part, parts, f"{known.title} has no part")
    with remedied(name, root):
        if name == "multi30k":
            files = text.multi30k_files(root, source, target, part)
            known.require(root, *files)
            return text.read_parallel(*files)
        if name == "tatoeba":
            table, count = tatoeba.tatoeba_file(root, source, target)
            known.require(root, table)
            return tatoeba.read_tatoeba(table, count, part, turned=target == "en")
        if name == "wmt14":
            return wmt.read_wmt(root, source, target, part)
        return iwslt.read_iwslt(root, name.removeprefix("iwslt"), source, target, part)
