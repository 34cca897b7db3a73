"""IWSLT 2014 and 2017: TED talks as they are published, or as fairseq's script prepares them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from softtargets.data.files import read_lines
from softtargets.data.text import Pairs, find_parallel, join_pairs, parallel_files, plain_or_gz
from softtargets.exceptions import DataError

LANGUAGES = ("en", "de", "fr")
# fairseq's prepare-iwslt14.sh and prepare-iwslt17-multilingual.sh; the latter is tested on sacreBLEU's iwslt17.
_TALKS_2017 = ("dev2010", "tst2010", "tst2011", "tst2012", "tst2013", "tst2014", "tst2015")
SETS: dict[str, dict[str, tuple[str, ...]]] = {
    "14": {"test": ("dev2010", "dev2012", "tst2010", "tst2011", "tst2012")},
    "17": {"validation": _TALKS_2017, "test": ("tst2017",)},
}
SINGLE = {"14": SETS["14"]["test"], "17": (*_TALKS_2017, "tst2016", "tst2017")}
EVERY = 23  # of 2014's training lines, the last of every so many is for validation
PREPARED = {"train": "train", "validation": "valid", "test": "test"}
_ABOUT_A_TALK = re.compile(r"<(?:url|talkid|keywords|speaker|reviewer|translator|/?doc)\b")
_TAGS = re.compile(r"</?(?:title|description)>")
_SEGMENT = re.compile(r"<seg id=\"[^\"]*\">(.*)</seg>")


def read_iwslt(root: Path, year: str, source: str, target: str, part: str) -> Pairs:
    """Read a part of IWSLT 2014 (``"14"``) or 2017 (``"17"``) below `root`.

    Where ``train.de`` and ``train.en`` lie in ``iwslt14`` (or fairseq's ``iwslt14.tokenized.de-en``), the files
    ``{train,valid,test}`` are taken as fairseq prepared them, with ``@@`` marks of BPE undone. Otherwise the published
    ones are read: ``train.tags.de-en.de`` without the lines about talks, and ``IWSLT14.TED.*.xml``. Of 2014 every 23rd
    training line is the validation set; dev2010, dev2012 (German alone), tst2010, tst2011 and tst2012 are the test set.
    Of 2017 dev2010 and tst2010 to tst2015 are the validation set and tst2017 is the test set. Unlike in fairseq the
    lines are counted before any cleaning. Each set may also be asked for by its name.
    """
    prepared = _prepared(root, year, source, target)
    if prepared and part in PREPARED:
        pairs = parallel_files(prepared, source, target, PREPARED[part])
        return Pairs(tuple(map(_without_bpe, pairs.sources)), tuple(map(_without_bpe, pairs.targets)))
    return _published(root, year, source, target, part)


def _prepared(root: Path, year: str, source: str, target: str) -> Path | None:
    """The folder of files that fairseq's script has made, if there is one."""
    for pair in (f"{source}-{target}", f"{target}-{source}"):
        made = f"iwslt{year}.tokenized.{pair}"
        for folder in (f"iwslt{year}", f"iwslt{year}/{pair}", f"iwslt{year}/{made}", made):
            if find_parallel(root / folder, "train", source, target):
                return root / folder
    return None


def _without_bpe(sentence: str) -> str:
    return (sentence + " ").replace("@@ ", "").removesuffix(" ") if "@@" in sentence else sentence


def _published(root: Path, year: str, source: str, target: str, part: str) -> Pairs:
    if part == "train" or (part == "validation" and year == "14"):
        files = _found(root, year, source, target, "train.tags.{}.{}")
        pairs = _paired(*((path, _talk_lines(read_lines(path))) for path in files))
        return _every_23rd(pairs, part == "validation") if year == "14" else pairs
    sets = SETS[year].get(part, (part,))
    if "fr" in (source, target) and part == "test":
        sets = tuple(name for name in sets if name != "dev2012")  # published for German alone
    return join_pairs(*(_test_set(root, year, source, target, name) for name in sets))


def _every_23rd(pairs: Pairs, wanted: bool) -> Pairs:
    return pairs.part(row for row in range(len(pairs)) if ((row + 1) % EVERY == 0) == wanted)


def _test_set(root: Path, year: str, source: str, target: str, name: str) -> Pairs:
    talks = "TEDX" if name == "dev2012" else "TED"
    files = _found(root, year, source, target, f"IWSLT{year}.{talks}.{name}.{{}}.{{}}.xml")
    return _paired(*((path, list(_segments(read_lines(path)))) for path in files))


def _paired(source: tuple[Path, list[str]], target: tuple[Path, list[str]]) -> Pairs:
    if len(source[1]) != len(target[1]):
        raise DataError(
            f"{source[0]} has {len(source[1])} sentences but {target[0]} has {len(target[1])}; aligned files need the "
            "same number"
        )
    return Pairs(tuple(source[1]), tuple(target[1]))


def _found(root: Path, year: str, source: str, target: str, pattern: str) -> tuple[Path, Path]:
    """The files of both languages; `pattern` has places for direction and language.

    Either direction will do, in this order; tst2017 is published as the source side of each.
    """
    top = root / f"iwslt{year}"
    there, back = f"{source}-{target}", f"{target}-{source}"
    for directions in ((there, there), (back, back), (there, back)):
        files = [
            _existing(top, direction, pattern.format(direction, language))
            for direction, language in zip(directions, (source, target), strict=True)
        ]
        if files[0] and files[1]:
            return files[0], files[1]
    names = " and ".join(f"'{pattern.format(there, language)}'" for language in (source, target))
    raise DataError(f"IWSLT'{year} is missing {names} in {top / there} (or the same for {back})")


def _existing(top: Path, direction: str, name: str) -> Path | None:
    """Where a file is, plain or ``.gz``: in the folder of its direction, as fairseq has it, or at the top."""
    paths = (
        plain_or_gz(folder / f"{name}.gz") for folder in (top / direction, top / "orig" / direction, top)
    )
    return next((path for path in paths if path.exists()), None)


def _talk_lines(lines: Iterable[str]) -> list[str]:
    """Spoken lines, titles and descriptions of ``train.tags`` files; neither addresses nor names."""
    return [_TAGS.sub("", line).strip() for line in lines if not _ABOUT_A_TALK.search(line)]


def _segments(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        found = _SEGMENT.search(line)
        if found:
            yield html.unescape(found[1]).strip()
