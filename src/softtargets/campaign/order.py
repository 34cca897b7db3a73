"""What is trained next: pure functions of what is left, what it costs, and the time there is."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from softtargets.campaign.speeds import Speed

# Estimates are medians: a run that would just fit more often than not would be cut in every second case.
MARGIN = 1.1
# Several devices are given so many groups each at a time: while one has a long one, others train several short ones.
GROUPS_PER_DEVICE = 4
# A pack that would train for less than this before it is stopped is not begun.
WORTH_BEGINNING = 15.0
# At the end of a session only a few runs of a pack may fit, which take longer each. They are left to the next session
# if they would take this many times as long as there, and something else fits better.
CUT = 1.1


@dataclass(frozen=True)
class Wanted:
    """A training that is to be done, as planning sees it.

    rank:     of the first entry of the campaign that wants it, or a student of it.
    kind:     runs of one kind train together, `most_together` of them at most.
    units:    of work that are left; None where nobody can tell.
    begun:    whether there is a checkpoint.
    needs:    the id of its teacher, as long as that is to be trained.
    again:    teachers that came without their weights and are trained once more for it.
    """

    id: str
    rank: int
    kind: Hashable
    units: float | None
    speed: Speed
    most_together: int = 1
    begun: bool = False
    needs: str | None = None
    again: tuple[Wanted, ...] = ()


@dataclass(frozen=True)
class Group:
    """Trainings to be given to the engine at once; `seconds` is how long they should take (None: unknown).

    `whole` says that they should be finished in the time there is; otherwise they are begun and go on another time.
    None of them should be done before so many seconds (`soonest`).
    """

    ids: tuple[str, ...]
    seconds: float | None
    whole: bool
    soonest: float


def next_group(
    wanted: Sequence[Wanted],
    seconds_left: float,
    ready: Iterable[Hashable] = (),
    blocked: Iterable[str] = (),
    sharing: int = 1,
    session: float = 0.0,
) -> Group | None:
    """The trainings to begin now, of one kind; None where there is nothing that makes sense.

    Of those whose teachers are there, the highest-ranked that can be finished in the time left; runs that were begun
    before new ones of their rank. Others of its kind go with it as long as all of them fit: those of its own rank, and
    of lower ranks those that cost less than setting up their kind once more. Where the time left is too short for most
    of them, and the few would take much longer each than in the next session (`CUT`), a kind that loses less is
    preferred. If nothing fits whole, the highest-ranked is begun, with others of its kind and rank.

    wanted:  in the order of the campaign.
    ready:   the kinds that are set up already.
    blocked: runs that cannot be trained now, by this process; nor can their students.
    sharing: how many devices share the campaign: none takes more than its share of the runs of a kind at a time.
    session: seconds that the next session will have.
    """
    set_up, out = set(ready), set(blocked)
    waiting = {one.id for one in wanted} | out
    taught = [one for one in wanted if one.needs not in waiting]
    can = [one for one in taught if one.id not in out]
    can.sort(key=lambda one: (one.rank, not one.begun))  # stable: the order of the campaign within these
    many = Counter(one.kind for one in taught)
    shortened: Group | None = None
    for alike in _by_kind(can, seconds_left, set_up):
        width = _width(alike[0], many, sharing)
        group = _whole(alike, seconds_left, set_up, width)
        found = _group(group, set_up, whole=True)
        if seconds_left >= session or alike[0].begun or not _is_cut(group, alike, set_up, width, session):
            return found
        shortened = shortened or found
    return shortened or _begun(can, seconds_left, set_up, many, sharing)


def next_round(
    wanted: Sequence[Wanted],
    seconds_left: float,
    devices: int,
    ready: Iterable[Hashable] = (),
    blocked: Iterable[str] = (),
    sharing: int = 1,
    session: float = 0.0,
) -> Group | None:
    """The trainings to begin now on several devices, of any kinds: groups as `next_group` has them, as one.

    Each device has one at a time; as many are chosen as all of them should finish in the time left.
    """
    found: list[Group] = []
    out, busy = set(blocked), [0.0] * devices  # for so many seconds, with what is chosen
    while len(found) < (1 if devices == 1 else GROUPS_PER_DEVICE * devices):
        first = min(busy)
        group = next_group(wanted, seconds_left - first, ready, out, sharing, session)
        if group is None or not (group.whole or first == 0.0):
            break
        found.append(group)
        out.update(group.ids)
        busy[busy.index(first)] += group.seconds or seconds_left
    if len(found) < 2:
        return found[0] if found else None
    known = all(group.seconds is not None for group in found)
    ids = tuple(key for group in found for key in group.ids)
    whole, first_done = all(group.whole for group in found), min(group.soonest for group in found)
    return Group(ids, max(busy) if known else None, whole, first_done)


def cost(group: Sequence[Wanted], ready: Iterable[Hashable] = ()) -> float:
    """Seconds that runs of one kind take together, with some margin; infinite where nobody can tell."""
    if any(one.units is None for one in group):
        return math.inf
    first, set_up = group[0], set(ready)
    width = min(len(group), first.most_together)
    # Of one kind some may have a teacher beside them: each takes its own time.
    rates = {
        id(speed): speed.per_second(width) for speed in {id(one.speed): one.speed for one in group}.values()
    }
    training = sum((one.units or 0.0) / rates[id(one.speed)] for one in group)
    setup = 0.0 if first.kind in set_up else first.speed.setup
    return MARGIN * (setup + training) + _teachers(group, set_up)


def soonest(group: Sequence[Wanted], ready: Collection[Hashable] = ()) -> float:
    """Seconds before which none of these runs should be done; zero where nobody can tell.

    Each has a pack to itself, and may take as much less than its estimate as `MARGIN` allows it to take more.
    """
    alone = [cost([one], ready) for one in group]
    return 0.0 if math.inf in alone else min(alone) / MARGIN**2


def _teachers(group: Sequence[Wanted], ready: set[Hashable]) -> float:
    """Seconds for teachers that are trained again first, those of a kind together."""
    alike: dict[Hashable, list[Wanted]] = {}
    teachers = {teacher.id: teacher for one in group for teacher in one.again}
    for one in teachers.values():
        alike.setdefault(one.kind, []).append(one)
    return sum(cost(found, ready) for found in alike.values())


def _by_kind(can: Sequence[Wanted], seconds_left: float, ready: set[Hashable]) -> Iterator[list[Wanted]]:
    """Runs of each kind that has one which can be finished in the time left, that one first; in the order of these."""
    alike: dict[Hashable, list[Wanted]] = {}
    for one in can:
        alike.setdefault(one.kind, []).append(one)
    seen = set()
    for one in can:
        if one.kind not in seen and cost([one], ready) <= seconds_left:
            seen.add(one.kind)
            yield [one, *(other for other in alike[one.kind] if other.id != one.id)]


def _whole(alike: Sequence[Wanted], seconds_left: float, ready: set[Hashable], width: int) -> list[Wanted]:
    """The first of these runs of a kind, with others that fit."""
    first, *others = alike
    same = [one for one in others if one.rank == first.rank]
    lower = [one for one in others if one.rank > first.rank]
    group = _joined([first], same, width, seconds_left, ready)
    most = min(seconds_left, cost(group, ready) + MARGIN * first.speed.setup)
    return _joined(group, lower, width, most, ready)


def _is_cut(
    group: Sequence[Wanted], alike: Sequence[Wanted], ready: set[Hashable], width: int, session: float
) -> bool:
    """Whether the next session, which sets up its kinds anew, would do the same much faster."""
    return _each(group, ready) > CUT * _each(_whole(alike, session, set(), width), ())


def _each(group: Sequence[Wanted], ready: Collection[Hashable]) -> float:
    """Seconds beside those that the same runs would take one by one, each kind set up: they may be slow or fast."""
    alone = sum(cost([one], [one.kind, *(teacher.kind for teacher in one.again)]) for one in group)
    return cost(group, ready) / alone if alone else 0.0


def _width(first: Wanted, many: Mapping[Hashable, int], sharing: int) -> int:
    """How many runs train together at most: as many as train well, and no more than a device's share.

    What others are training counts too, so that the share of the last device is that of the first.
    """
    return min(first.most_together, -(-many[first.kind] // sharing))


def _joined(
    group: Sequence[Wanted], others: Iterable[Wanted], width: int, most: float, ready: set[Hashable]
) -> list[Wanted]:
    """The group with others, up to a width, that cost no more, all together, than so many seconds."""
    found = list(group)
    for one in others:
        if len(found) >= width:
            break
        if cost([*found, one], ready) <= most:
            found.append(one)
    return found


def _begun(
    can: Sequence[Wanted],
    seconds_left: float,
    ready: set[Hashable],
    many: Mapping[Hashable, int],
    sharing: int,
) -> Group | None:
    """The highest-ranked that has time to be set up and to train for a while."""
    for first in can:
        setup = 0.0 if first.kind in ready else first.speed.setup
        if setup + WORTH_BEGINNING <= seconds_left:
            alike = [one for one in can if (one.kind, one.rank) == (first.kind, first.rank)]
            return _group(alike[: _width(first, many, sharing)], ready, whole=False)
    return None


def _group(group: Sequence[Wanted], ready: set[Hashable], whole: bool) -> Group:
    seconds = cost(group, ready)
    ids = tuple(one.id for one in group)
    return Group(ids, None if seconds == math.inf else seconds, whole, soonest(group, ready))


def schedule(
    wanted: Sequence[Wanted], seconds: float, ready: Iterable[Hashable] = (), blocked: Iterable[str] = ()
) -> list[Group]:
    """All groups that would be trained in so many seconds, if everything took as long as it should."""
    left, found, set_up, session = list(wanted), [], set(ready), seconds
    while group := next_group(left, seconds, set_up, blocked, session=session):
        found.append(group)
        if not group.whole:
            break
        seconds -= group.seconds or 0.0
        chosen = set(group.ids)
        set_up |= {one.kind for one in left if one.id in chosen}
        left = [one for one in left if one.id not in chosen]
    return found
