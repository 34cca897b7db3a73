"""Where a campaign stands: entry by entry what is done and missing, and what the rest should take."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from softtargets.campaign.cells import STATUSES, Status, entry_recipes, to_train
from softtargets.campaign.file import Entry
from softtargets.campaign.order import Group, Wanted, cost, schedule
from softtargets.campaign.pages import RESULTS
from softtargets.campaign.planning import Outlook
from softtargets.storage import read_json
from softtargets.studies import Results


@dataclass(frozen=True)
class EntryStatus:
    """An entry of the campaign: its cells by status, and what it still takes.

    cells:   by status; a cell that several entries want is counted in each of them.
    claims:  how many its study has.
    waiting: those of them that its page, if there is one, calls “not run yet”; none where all cells of it are there.
    seconds: of the device, for what no entry before it trains; None where nobody can tell.
    source:  where that is from: measured, table or guessed.
    """

    entry: Entry
    cells: Mapping[Status, int]
    claims: int
    waiting: int
    seconds: float | None
    source: str

    @property
    def total(self) -> int:
        """Cells in all."""
        return sum(self.cells.values())

    @property
    def left(self) -> int:
        """Cells that are to be trained."""
        return sum(self.cells[name] for name in ("missing", "interrupted", "running"))


def entry_statuses(outlook: Outlook) -> list[EntryStatus]:
    """All entries in their order."""
    wanted = {one.id: one for one in outlook.wanted()}
    pages = {
        page.name: {key for entry in page.entries for key in entry_recipes(entry)}
        for page in outlook.campaign.pages
    }
    found = []
    for entry in outlook.campaign.entries:
        left = _left(outlook, entry, entry_recipes(entry))
        # What an entry before it has trained costs nothing here.
        own = [wanted.pop(key) for key in left if key in wanted]
        waits = bool(_left(outlook, entry, pages[entry.page]))
        found.append(_status(outlook, entry, own, waits))
    return found


def _left(outlook: Outlook, entry: Entry, keys: Iterable[str]) -> list[str]:
    return [key for key in keys if outlook.states[key].status_for(entry.study.name) != "done"]


def _status(outlook: Outlook, entry: Entry, own: list[Wanted], waits: bool) -> EntryStatus:
    counted = Counter(outlook.states[key].status_for(entry.study.name) for key in entry_recipes(entry))
    seconds, source = estimate(own)
    cells = {name: counted[name] for name in STATUSES}
    verdicts = _verdicts(outlook.campaign.path.parent / entry.page)
    if verdicts is None:
        claims = waiting = len(entry.study.claims(Results(())))
    else:
        claims, waiting = len(verdicts), verdicts.count("not run yet")
    return EntryStatus(entry, cells, claims, waiting if waits else 0, seconds, source)


def _verdicts(page: Path) -> list[str] | None:
    """Those on a page as it was last written; None where there is none.

    Which claims wait could be told from the runs as well, but not without their predictions, and not in a moment.
    """
    try:
        return [claim["verdict"] for claim in read_json(page / RESULTS)["claims"]]
    except (OSError, ValueError, LookupError, TypeError):
        return None


def estimate(wanted: Iterable[Wanted]) -> tuple[float | None, str]:
    """Seconds for runs of any kinds, each kind set up once; and how well that is known, by what is known worst."""
    kinds: dict[Any, list[Wanted]] = {}
    for one in wanted:
        kinds.setdefault(one.kind, []).append(one)
    seconds = sum(cost(group) for group in kinds.values())
    sources = {group[0].speed.source for group in kinds.values()}
    worst = next((source for source in ("guessed", "table", "measured") if source in sources), "")
    return (None if math.isinf(seconds) else seconds), worst


def coming(outlook: Outlook, seconds: float) -> list[Group]:
    """What a session of so many seconds would train."""
    blocked = [*outlook.running(), *outlook.unreachable()]
    return schedule(outlook.wanted(), seconds, blocked=blocked)


def totals(outlook: Outlook) -> tuple[Mapping[Status, int], float | None, str]:
    """Of the whole campaign: cells by status, each once, and seconds left with their source."""
    counted = Counter(state.status for state in outlook.states.values())
    left = to_train(outlook.cells, outlook.states)
    seconds, source = estimate(one for one in outlook.wanted() if one.id in left)
    return {name: counted[name] for name in STATUSES}, seconds, source
