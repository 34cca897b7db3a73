"""The file of a campaign: a ranked list of studies, with their sizes and seeds, checked as it is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from softtargets.exceptions import CampaignError, SofttargetsError, nearest
from softtargets.recipes import parse_yaml, read_text
from softtargets.studies import STUDIES, Settings, Study, Trial, find_study

DEFAULT = Path("results") / "campaign.yaml"
_FIELDS = ("study", "size", "seeds", "set", "only", "why", "page")
_PARTS = ("studies", "planned")
_MOST_SHOWN = 12  # values of a label in an error


@dataclass(frozen=True)
class Entry:
    """One line of the campaign.

    rank:   its place in the file, from 1: what comes first is trained first.
    trials: the cells of the study's grid that it wants.
    why:    a line for people.
    page:   the directory that the study's page goes to; entries of one page are parts of the same grid.
    """

    rank: int
    study: Study
    settings: Settings
    trials: tuple[Trial, ...]
    why: str = ""
    page: str = ""


@dataclass(frozen=True)
class PlannedPage:
    """A study as the campaign wants it on its page: all entries of one page together."""

    name: str
    study: Study
    settings: Settings
    entries: tuple[Entry, ...]

    @property
    def command(self) -> str:
        """What trains the whole of it and writes the page, without a campaign."""
        changes = {**({"size": self.settings.size} if self.settings.size else {}), **self.settings.changes}
        words = [f"--set {key}={value}" for key, value in changes.items()]
        return " ".join(["softtargets study run", self.study.name, f"--seeds {self.settings.seeds}", *words])


@dataclass(frozen=True)
class Campaign:
    """Ranked entries; `planned` are names of studies that do not exist yet."""

    entries: tuple[Entry, ...]
    planned: tuple[str, ...] = ()
    path: Path = DEFAULT

    @property
    def pages(self) -> list[PlannedPage]:
        """The pages in the order of their first entries, with as many seeds as the most that an entry has."""
        found: dict[str, PlannedPage] = {}
        for entry in self.entries:
            there = found.get(entry.page)
            if there is None:
                found[entry.page] = PlannedPage(entry.page, entry.study, entry.settings, (entry,))
            else:
                most = max(there.settings.seeds, entry.settings.seeds)
                settings = replace(there.settings, seeds=most)
                found[entry.page] = replace(there, settings=settings, entries=(*there.entries, entry))
        return list(found.values())


def load_campaign(path: Path = DEFAULT, studies: Iterable[Study] = STUDIES) -> Campaign:
    """Read a campaign and refuse what it cannot mean, with the number of the entry.

    The file is a mapping: `studies` has the ranked entries, and `planned` names of studies that are still to be
    written, which are an error as soon as they exist.
    """
    if not path.exists():
        raise CampaignError(
            f"{path} does not exist; give the file of a campaign, or run the command in a checkout of the source "
            "repository"
        )
    tree = parse_yaml(read_text(path), str(path))
    if not isinstance(tree, Mapping) or not isinstance(tree.get("studies"), list):
        raise CampaignError(f"{path} is not a campaign: it needs a list of entries under 'studies:'")
    for part in tree:
        if part not in _PARTS:
            raise CampaignError(
                f"{path} has no part '{part}'{nearest(str(part), _PARTS)}; allowed: {', '.join(_PARTS)}"
            )
    known = tuple(studies)
    entries = tuple(_entry(path, rank, one, known) for rank, one in enumerate(tree["studies"], 1))
    if not entries:
        raise CampaignError(
            f"{path} has no entries under 'studies:'; each names a study, its size and its seeds"
        )
    _check_pages(path, entries)
    return Campaign(entries, _planned(path, tree.get("planned") or [], known), path)


def _planned(path: Path, names: Any, studies: Sequence[Study]) -> tuple[str, ...]:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise CampaignError(f"{path}: 'planned' must be a list of names of studies, not {names!r}")
    for name in names:
        if name in {study.name for study in studies}:
            raise CampaignError(
                f"{path}: the study '{name}' exists now; move it from 'planned' to an entry under 'studies'"
            )
    return tuple(names)


def _entry(path: Path, rank: int, tree: Any, studies: Sequence[Study]) -> Entry:
    place = f"{path}, entry {rank}"
    if not isinstance(tree, Mapping) or not isinstance(tree.get("study"), str):
        raise CampaignError(f"{place} names no study: write it as {{study: NAME, size: full, seeds: 3}}")
    place = f"{place} ({tree['study']})"
    for key in tree:
        if key not in _FIELDS:
            close = nearest(str(key), _FIELDS)
            raise CampaignError(f"{place} has no field '{key}'{close}; allowed: {', '.join(_FIELDS)}")
    try:
        study = find_study(studies, tree["study"])
        settings = _settings(study, tree)
        trials = tuple(study.trials(settings))
    except SofttargetsError as error:
        raise CampaignError(f"{place}: {_without_options(str(error))}") from None
    trials = _kept(place, trials, _mapping(place, tree, "only"))
    why, page = _text(place, tree, "why", ""), _text(place, tree, "page", study.name)
    if not page or Path(page).name != page or page.startswith("."):
        raise CampaignError(f"{place}: page '{page}' must be the name of a directory, without slashes")
    return Entry(rank, study, settings, trials, " ".join(why.split()), page)


def _text(place: str, tree: Mapping[str, Any], key: str, default: str) -> str:
    found = tree.get(key, default)
    if not isinstance(found, str):
        raise CampaignError(f"{place}: {key} must be text, not {found!r}")
    return found


def _settings(study: Study, tree: Mapping[str, Any]) -> Settings:
    seeds, size = tree.get("seeds"), tree.get("size")
    changes = dict(_mapping("", tree, "set"))
    if seeds is not None and (isinstance(seeds, bool) or not isinstance(seeds, int) or seeds < 1):
        raise CampaignError(f"seeds must be a whole number of at least 1, not {seeds!r}")
    if "size" in changes:
        raise CampaignError("write the size beside the study, as size: NAME, not under set")
    if size is not None:
        if size not in study.sizes:
            there = (
                f"it has: {', '.join(study.sizes)}" if study.sizes else "it comes in one size; leave size out"
            )
            raise CampaignError(f"this study has no size '{size}'{nearest(str(size), study.sizes)}; {there}")
        changes["size"] = size
    return study.settings(seeds, changes)


def _mapping(place: str, tree: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = tree.get(key) or {}
    if not isinstance(found, Mapping):
        before = f"{place}: " if place else ""
        raise CampaignError(f"{before}{key} must be a mapping, as in {key}: {{name: value}}, not {found!r}")
    return found


def _kept(place: str, trials: Sequence[Trial], only: Mapping[str, Any]) -> tuple[Trial, ...]:
    """The trials with these labels; a list means any of its values."""
    kept = tuple(trials)
    for key, wanted in only.items():
        chosen = wanted if isinstance(wanted, list) else [wanted]
        _check_label(place, trials, key, chosen)
        kept = tuple(trial for trial in kept if trial.labels.get(key) in chosen)
    if only and not kept:
        raise CampaignError(f"{place}: no cell has all of {dict(only)}")
    return kept


def _check_label(place: str, trials: Sequence[Trial], key: str, chosen: Sequence[Any]) -> None:
    """Refuse a label, or a value of it, that no trial has."""
    values = {trial.labels[key] for trial in trials if key in trial.labels}
    if not values:
        labels = list(dict.fromkeys(label for trial in trials for label in trial.labels))
        close = nearest(str(key), labels)
        raise CampaignError(
            f"{place}: no cell has the label '{key}'{close}; labels: {', '.join(labels) or 'none'}"
        )
    unknown = next((value for value in chosen if value not in values), None)
    if unknown is not None:
        there = sorted(map(str, values))[:_MOST_SHOWN]
        raise CampaignError(
            f"{place}: no cell has {key}: {unknown}{nearest(str(unknown), there)}; there are: "
            f"{', '.join(there)}{' ...' * (len(values) > _MOST_SHOWN)}"
        )


def _without_options(text: str) -> str:
    """Settings of studies speak of the options of the command line, which a file has none of."""
    return text.removeprefix("--")


def _check_pages(path: Path, entries: Iterable[Entry]) -> None:
    first: dict[str, Entry] = {}
    for entry in entries:
        there = first.setdefault(entry.page, entry)
        same = (there.study.name, there.settings.size, dict(there.settings.changes))
        if same != (entry.study.name, entry.settings.size, dict(entry.settings.changes)):
            raise CampaignError(
                f"{path}, entry {entry.rank} ({entry.study.name}): entry {there.rank} has the page '{entry.page}' with "
                "another study, size or set; give this one a page of its own, as page: NAME"
            )
