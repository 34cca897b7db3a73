"""What a campaign costs on several devices: its order simulated, group by group, with what is known of speeds."""

from __future__ import annotations

import heapq
import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from softtargets.campaign.cells import MISSING
from softtargets.campaign.order import MARGIN, Wanted, cost, next_group
from softtargets.campaign.planning import Outlook
from softtargets.campaign.speeds import Source

SOURCES: tuple[Source, ...] = ("measured", "table", "guessed")


@dataclass(frozen=True)
class Simulated:
    """So many devices that share a campaign, each on a command of its own.

    seconds: until the last run has ended.
    busy:    seconds of devices in which they train or set up, all devices together.
    setup:   those of them until the first step of a group.
    groups:  how many there were.
    spent:   seconds of devices by run: those of a group in proportion to the work of its runs.
    """

    devices: int
    seconds: float
    busy: float
    setup: float
    groups: int
    spent: Mapping[str, float] = field(repr=False)

    @property
    def used(self) -> float:
        """The share of the time that the devices are not idle."""
        return self.busy / (self.devices * self.seconds) if self.seconds else 1.0


@dataclass(frozen=True)
class StudyCost:
    """What the runs of a study cost that no study before it trains.

    seconds: of one device, by where its speed is from; runs that nobody can tell the length of are not in them.
    unknown: how many those are, with the students that wait for them.
    """

    study: str
    runs: int
    seconds: Mapping[Source, float]
    unknown: int


@dataclass(frozen=True)
class Chain:
    """Runs of which each needs the one before, and the seconds that they take, each alone on a device."""

    ids: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class CampaignCost:
    """All of it."""

    studies: tuple[StudyCost, ...]
    simulated: tuple[Simulated, ...]
    chain: Chain
    unknown: Mapping[str, int]  # runs that nobody can tell the length of, by the name of their data

    @property
    def seconds(self) -> float:
        """Of one device."""
        return sum(sum(study.seconds.values()) for study in self.studies)

    def share(self, source: Source) -> float:
        """How much of these seconds is known in one way."""
        found = sum(study.seconds[source] for study in self.studies)
        return found / self.seconds if self.seconds else 0.0


def from_nothing(outlook: Outlook) -> Outlook:
    """A campaign as if none of its runs were there; what their speeds say is not forgotten."""
    outlook.states = dict.fromkeys(outlook.cells, MISSING)
    return outlook


def campaign_cost(outlook: Outlook, devices: Sequence[int]) -> CampaignCost:
    """What is left of a campaign costs, on one device by study, and on so many that share it."""
    wanted = outlook.wanted()
    unknown = unpredictable(wanted)
    alone = simulate(wanted, 1)
    simulated = tuple(alone if count == 1 else simulate(wanted, count) for count in devices)
    return CampaignCost(
        _by_study(outlook, wanted, alone, unknown),
        simulated,
        longest_chain([one for one in wanted if one.id not in unknown]),
        dict(Counter(outlook.cells[one.id].recipe.data.name for one in wanted if one.id in unknown)),
    )


def unpredictable(wanted: Iterable[Wanted]) -> set[str]:
    """Runs that nobody can tell the length of, and all that wait for them; `wanted` has teachers first."""
    found: set[str] = set()
    for one in wanted:
        if one.units is None or one.needs in found or any(teacher.units is None for teacher in one.again):
            found.add(one.id)
    return found


def simulate(wanted: Sequence[Wanted], devices: int) -> Simulated:
    """Devices that take group after group, as `campaign run --sharing` on each of them does, until nothing is left.

    What nobody can tell the length of is left out. Nothing is lost between groups: measuring and packing take their
    time besides.
    """
    out = unpredictable(wanted)
    left = {one.id: one for one in wanted if one.id not in out}
    running: dict[str, Wanted] = {}
    ready: list[set[Hashable]] = [set() for _ in range(devices)]
    free = list(range(devices))
    coming: list[
        tuple[float, int, tuple[str, ...]]
    ] = []  # when which device is free again, and what has then ended
    spent: dict[str, float] = {}
    moment = busy = setup = 0.0
    groups = 0
    while left or coming:
        while free and left:
            device = free[0]
            all_left = [*left.values(), *running.values()]
            group = next_group(all_left, math.inf, ready[device], running, devices)
            if group is None:  # what is left waits for what is under way
                break
            free.pop(0)
            chosen = [left.pop(key) for key in group.ids]
            seconds = cost(chosen, ready[device])
            setup += MARGIN * chosen[0].speed.setup * (chosen[0].kind not in ready[device])
            spent |= _shared_out(chosen, seconds)
            ready[device].add(chosen[0].kind)
            running |= {one.id: one for one in chosen}
            busy, groups = busy + seconds, groups + 1
            heapq.heappush(coming, (moment + seconds, device, group.ids))
        if not coming:
            break  # a teacher that is neither there nor to be trained
        moment, device, ended = heapq.heappop(coming)
        for key in ended:
            del running[key]
        free.append(device)
    return Simulated(devices, moment, busy, setup, groups, spent)


def _shared_out(group: Sequence[Wanted], seconds: float) -> dict[str, float]:
    total = sum(one.units or 0.0 for one in group)
    if not total:
        return {one.id: seconds / len(group) for one in group}
    return {one.id: seconds * (one.units or 0.0) / total for one in group}


def longest_chain(wanted: Sequence[Wanted]) -> Chain:
    """What no number of devices makes shorter: teachers and students one after the other, each alone on its device."""
    alone: dict[str, Chain] = {}
    for one in wanted:  # teachers first
        before = alone.get(one.needs or "", Chain((), 0.0))
        alone[one.id] = Chain((*before.ids, one.id), before.seconds + cost([one]))
    return max(alone.values(), key=lambda chain: chain.seconds, default=Chain((), 0.0))


def _by_study(
    outlook: Outlook, wanted: Sequence[Wanted], alone: Simulated, unknown: set[str]
) -> tuple[StudyCost, ...]:
    """In the order of the campaign; a run counts for the first study that wants it."""
    runs: Counter[str] = Counter()
    missing: Counter[str] = Counter()
    seconds: dict[str, dict[Source, float]] = defaultdict(lambda: dict.fromkeys(SOURCES, 0.0))
    names = {one.id: outlook.campaign.entries[one.rank - 1].study.name for one in wanted}
    for one in wanted:
        name = names[one.id]
        runs[name] += 1
        missing[name] += one.id in unknown
        seconds[name][one.speed.source] += alone.spent.get(one.id, 0.0)
    order = dict.fromkeys(entry.study.name for entry in outlook.campaign.entries)
    return tuple(StudyCost(name, runs[name], seconds[name], missing[name]) for name in order if runs[name])
