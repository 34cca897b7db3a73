"""What of the papers studies cover: every table and figure, and printed numbers beside which no claim stands."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import yaml

from softtargets.atlas.origins import Origin
from softtargets.claims import Published, Verdict, printed_by

if TYPE_CHECKING:
    from softtargets.atlas.entries import Entry

# How the names of studies call the papers.
_SHORT = {
    "muller-2019": "muller",
    "response-2019": "response",
    "wagner-2023": "wagner",
    "chen-2020": "chen",
    "lu-2023": "labo",
}
NO_STUDY = "no study yet"
# Beside which key of its paper which claims stand.
Beside = Mapping[str, Sequence["Entry"]]


@dataclass(frozen=True)
class Exhibit:
    """A table or figure of a paper: how much of it is printed as data, what stands beside a claim, and who tests it.

    why: where no study does, the reason.
    """

    paper: str
    name: str
    about: str
    printed: int
    beside: int
    origins: tuple[Origin, ...]
    verdicts: tuple[Verdict, ...]
    why: str = ""


@dataclass(frozen=True)
class Loose:
    """What a paper printed in one place under one heading, and no claim of a study stands beside."""

    paper: str
    source: str
    setting: str
    items: tuple[Published, ...]


def cites(entries: Iterable[Entry], paper: str) -> dict[str, list[Entry]]:
    """By key of what a paper printed the claims that it stands beside."""
    found: dict[tuple[str, str, str], list[Entry]] = {}
    for entry in entries:
        for item in entry.judged.claim.published:
            found.setdefault((item.source, item.setting, item.printed), []).append(entry)
    return {
        key: found.get((item.source, item.setting, item.printed), [])
        for key, item in printed_by(paper).items()
    }


def exhibits(beside: Mapping[str, Beside], there: Sequence[Origin]) -> tuple[Exhibit, ...]:
    """Every table and figure of every paper."""
    return tuple(
        _exhibit(paper, told, beside.get(paper, {}), there)
        for paper, listed in _listed().items()
        for told in listed
    )


def _exhibit(paper: str, told: Mapping[str, str], beside: Beside, there: Sequence[Origin]) -> Exhibit:
    name = told["name"]
    keys = [key for key, item in printed_by(paper).items() if mentions(item.source, name)]
    entries = unique_entries(entry for key in keys for entry in beside.get(key, ()))
    found = _tested_by(f"{_SHORT[paper]}-{name.replace(' ', '-')}", entries, there)
    return Exhibit(
        paper,
        name,
        told["about"],
        len(keys),
        sum(bool(beside.get(key)) for key in keys),
        found,
        tuple(entry.verdict for entry in entries),
        "" if found else told.get("why", NO_STUDY),
    )


def _tested_by(name: str, entries: Iterable[Entry], there: Sequence[Origin]) -> tuple[Origin, ...]:
    """The studies that are named after a table or figure, and those whose claims it stands beside."""
    own = [one for one in there if one.study == name or one.study.startswith(f"{name}-")]
    return tuple({one.name: one for one in (*own, *(entry.origin for entry in entries))}.values())


def mentions(source: str, name: str) -> bool:
    """Whether a source is, or is in, a table or figure.

    >>> mentions("Chen et al. 2020, figure 9 and appendix A.1", "figure 9"), mentions("..., figure 11", "figure 1")
    (True, False)
    """
    return re.search(rf"\b{re.escape(name)}\b", source) is not None


def unique_entries(entries: Iterable[Entry]) -> list[Entry]:
    """Each claim once."""
    return list({entry.id: entry for entry in entries}.values())


def loose(beside: Mapping[str, Beside]) -> tuple[Loose, ...]:
    """All that is printed and has no claim beside it, grouped by its place and the beginning of its setting."""
    groups: dict[tuple[str, str, str], list[Published]] = {}
    for paper, keys in beside.items():
        for key, entries in keys.items():
            item = printed_by(paper)[key]
            if not entries and not any(words in item.setting for words in _QUOTED):
                groups.setdefault((paper, item.source, _heading(item.setting)), []).append(item)
    return tuple(Loose(*place, tuple(items)) for place, items in groups.items())


# Numbers that a paper repeats from another are that one's.
_QUOTED = ("of other work", "quoted from Müller et al.")


def _heading(setting: str) -> str:
    """What comes before the first comma: the model and the dataset."""
    return setting.partition(",")[0]


@cache
def _listed() -> dict[str, list[dict[str, str]]]:
    text = files("softtargets.atlas").joinpath("exhibits.yaml").read_text(encoding="utf-8")
    listed: dict[str, list[dict[str, str]]] = yaml.safe_load(text)
    return listed
