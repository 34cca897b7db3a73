"""All claims with where their numbers come from, and what stands beside them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from softtargets.atlas.coverage import Exhibit, Loose, cites, exhibits, loose
from softtargets.atlas.origins import Origin, origins
from softtargets.claims import Judgement, Published, Verdict, papers, printed_by
from softtargets.exceptions import StudyError
from softtargets.studies import STUDIES, Study

# The name of those claims that no paper makes, and of the paper whose numbers stand apart: it repeats another.
OURS, REPLICATION = "ours", "wagner-2023"
# Where claims stand that are tested at a small size, whatever their paper: they say nothing of its numbers.
SMALL = "small"
# The papers in the order of the atlas; others follow by name, our own questions at the end.
ORDER = ("muller-2019", "response-2019", REPLICATION, "chen-2020", "lu-2023")


@dataclass(frozen=True)
class Entry:
    """A claim, its verdicts, and its place on the page of its study (from 1)."""

    judged: Judgement
    origin: Origin
    place: int
    paper: str

    @property
    def id(self) -> str:
        """Its anchor on the page of the atlas."""
        return f"{self.origin.name}-claim-{self.place}"

    @property
    def link(self) -> str:
        """Its address on the page of its study, from that of the atlas; nothing where there is no page."""
        return f"{self.origin.page}#claim-{self.place}" if self.origin.page else ""

    @property
    def section(self) -> str:
        """The part of the atlas it stands in: its paper, or what is only a demonstration."""
        return SMALL if self.origin.small else self.paper

    @property
    def verdict(self) -> Verdict:
        """On the direction."""
        return self.judged.verdict

    @property
    def number(self) -> Verdict | None:
        """On the number that the paper printed, where that is another question."""
        return None if self.judged.claim.is_number else self.judged.value

    @property
    def printed(self) -> tuple[Published, ...]:
        """What its paper printed."""
        return tuple(one for one in self.judged.claim.published if not self._repeats(one))

    @property
    def replication(self) -> tuple[Published, ...]:
        """What the replication printed beside it."""
        return tuple(one for one in self.judged.claim.published if self._repeats(one))

    def _repeats(self, item: Published) -> bool:
        return self.paper != REPLICATION and paper_of(item) == REPLICATION


@dataclass(frozen=True)
class Atlas:
    """Every claim, every study with or without results, every table and figure, and numbers without a claim."""

    entries: tuple[Entry, ...]
    origins: tuple[Origin, ...]
    exhibits: tuple[Exhibit, ...]
    loose: tuple[Loose, ...]

    def by_section(self) -> dict[str, list[Entry]]:
        """The claims of each paper that has some, in the order of the atlas, then those at a small size."""
        found: dict[str, list[Entry]] = {}
        for entry in sorted(self.entries, key=lambda one: one.origin.small):
            found.setdefault(entry.section, []).append(entry)
        return found


def gather(directory: Path, studies: Sequence[Study] = STUDIES, out: Path | None = None) -> Atlas:
    """All there is to say, from the results in a directory and what the studies test.

    Verdicts are those that stand on the pages in the directory. What has no page there is "not run yet". Links are for
    a page in the same directory, or in `out`.
    """
    if not directory.is_dir():
        raise StudyError(
            f"there is no directory {directory}; give one that has a directory for each study with --from"
        )
    base = "" if out is None else _way(out, directory)
    entries, found = [], []
    for origin, judged in origins(directory, studies):
        found.append(origin := replace(origin, base=base))
        entries += [Entry(one, origin, place, _paper(one)) for place, one in enumerate(judged, 1)]
    names = {paper: place for place, paper in enumerate(order())}
    entries.sort(key=lambda entry: names[entry.paper])  # stable: studies stay in their order
    beside = {paper: cites(entries, paper) for paper in papers()}
    return Atlas(tuple(entries), tuple(found), exhibits(beside, found), loose(beside))


def _way(start: Path, end: Path) -> str:
    """How links get from one directory to another.

    >>> _way(Path("atlas"), Path("results")), _way(Path("results"), Path("results"))
    ('../results/', '')
    """
    way = Path(os.path.relpath(end.resolve(), start.resolve())).as_posix()
    return "" if way == "." else f"{way}/"


def order() -> tuple[str, ...]:
    """The names of all papers in the order of the atlas."""
    return (*ORDER, *(name for name in papers() if name not in ORDER), OURS)


def _paper(judged: Judgement) -> str:
    """The paper that makes a claim: the first of those that stand beside it."""
    return next((paper_of(item) for item in judged.claim.published), OURS)


def place_of(item: Published, paper: str) -> str:
    """Where something is printed, without the paper's name where that is known.

    >>> from softtargets.claims import published
    >>> place_of(published("muller-2019/ece/cifar100/hard"), "muller-2019")
    'table 3'
    """
    own = paper_of(item) == paper
    return (item.source.partition(", ")[2] if own else "") or item.source


def paper_of(item: Published) -> str:
    """The name of the paper that printed something; by its address where the words have changed since."""
    by_words, by_address = _sources()
    found = by_words.get((item.source, item.setting, item.printed)) or by_address.get(item.url)
    return found or OURS


@cache
def _sources() -> tuple[Mapping[tuple[str, str, str], str], Mapping[str, str]]:
    by_words: dict[tuple[str, str, str], str] = {}
    by_address: dict[str, str] = {}
    for name in order()[:-1]:
        for item in printed_by(name).values():
            by_words[item.source, item.setting, item.printed] = name
            if item.url:
                by_address.setdefault(item.url, name)
    return by_words, by_address
