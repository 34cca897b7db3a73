"""Which runs a worker is given next: pure functions of what waits and who is at work."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

# A worker is given up to so many packs at a time: runs that end make room for others of their kind.
PACKS = 4


@dataclass(frozen=True)
class Waiting:
    """A run whose teacher is there.

    together: how many of its kind train together at most.
    teaches:  whether others wait for it.
    alone:    its workers died more than once: whether it is to blame shows when it trains alone.
    """

    id: str
    kind: Hashable
    together: int = 1
    teaches: bool = False
    alone: bool = False


def next_order(
    waiting: Sequence[Waiting], workers: int, under_way: Mapping[Hashable, int], last: Hashable = None
) -> list[str]:
    """The ids of the runs, of one kind, that a free worker is given; none if nothing waits.

    Of the kind that it had `last`, which is set up there; else what others wait for, then the kind of which the fewest
    are `under_way`, in the order given. One of `workers` takes its share of what is not finished, and no more: a whole
    pack where there is enough, several while there is plenty.

    >>> runs = [Waiting(f"{n}", "mlp", together=4) for n in range(40)]
    >>> [len(next_order(runs[done:], 2, {})) for done in (0, 10, 20, 32, 37, 39)]
    [10, 8, 5, 4, 2, 1]
    >>> len(next_order(runs[37:], 2, {"mlp": 4}))
    3
    """
    together = [one for one in waiting if not one.alone]
    if not together:
        return [one.id for one in waiting[:1]]
    first = min(
        enumerate(together),
        key=lambda item: (
            item[1].kind != last,
            not item[1].teaches,
            under_way.get(item[1].kind, 0),
            item[0],
        ),
    )[1]
    alike = [one for one in together if one.kind == first.kind]
    share = -(-(len(alike) + under_way.get(first.kind, 0)) // workers)
    half = -(-len(alike) // (2 * workers))
    size = max(min(first.together, share), min(PACKS * first.together, half))
    # What others wait for goes first, also inside a kind.
    alike.sort(key=lambda one: not one.teaches)
    return [one.id for one in alike[:size]]
