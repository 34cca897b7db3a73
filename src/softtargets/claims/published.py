"""What the papers printed, as data with its source: a file for each paper in ``papers`` beside this one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from softtargets.exceptions import nearest


@dataclass(frozen=True)
class Published:
    """One statement of a paper: the words or number it printed, under which conditions, and where."""

    printed: str
    setting: str
    source: str
    value: float | None = None
    url: str = ""


@dataclass(frozen=True)
class Paper:
    """A paper that studies are about, and its address: a DOI or arXiv.

    >>> str(Paper("Chen et al. 2020", "https://arxiv.org/abs/2010.12648"))
    'Chen et al. 2020, https://arxiv.org/abs/2010.12648'
    """

    citation: str
    url: str

    def __str__(self) -> str:
        return f"{self.citation}, {self.url}" if self.url else self.citation


def paper(name: str) -> Paper:
    """A paper by the name of its file.

    >>> paper("chen-2020").url
    'https://arxiv.org/abs/2010.12648'
    """
    return Paper(**_file(name)["paper"])


def papers() -> tuple[str, ...]:
    """The names of all papers there is something printed of.

    >>> "muller-2019" in papers()
    True
    """
    there = files("softtargets.claims").joinpath("papers").iterdir()
    return tuple(sorted(file.name.removesuffix(".yaml") for file in there if file.name.endswith(".yaml")))


def printed_by(paper: str) -> Mapping[str, Published]:
    """All that a paper printed, by key.

    >>> printed_by("muller-2019")["muller-2019/ece/cifar100/hard"].printed
    '0.150'
    """
    return _load(paper)


def published(key: str) -> Published:
    """Look up a published figure.

    >>> published("muller-2019/ece/cifar100/hard").value
    0.15
    """
    everything = _load(key.partition("/")[0])
    if key not in everything:
        raise KeyError(f"no published figure '{key}'{nearest(key, everything)}")
    return everything[key]


def sources(place: str, *endings: str) -> tuple[Published, ...]:
    """Published figures that stand beside a claim: one, or several whose keys begin alike.

    >>> [figure.value for figure in sources("muller-2019/ece/cifar100", "hard", "smoothed")]
    [0.15, 0.024]
    """
    return tuple(published(f"{place}/{ending}") for ending in endings) if endings else (published(place),)


@cache
def _load(paper: str) -> dict[str, Published]:
    entries = _file(paper)
    url = entries.get("paper", {}).get("url", "")
    return {key: Published(**fields, url=url) for key, fields in entries.items() if key != "paper"}


def _file(paper: str) -> dict[str, Any]:
    file = files("softtargets.claims").joinpath(f"papers/{paper}.yaml")
    return yaml.safe_load(file.read_text(encoding="utf-8")) if file.is_file() else {}
