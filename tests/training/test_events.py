from __future__ import annotations

import inspect

import pytest

from softtargets.training import Plan, Watcher
from softtargets.training.events import Watchers

EVENTS = [name for name in vars(Watcher) if not name.startswith("_")]


class Noting(Watcher):
    def __init__(self, name: str, log: list[tuple[object, ...]]) -> None:
        for event in EVENTS:
            setattr(self, event, lambda *told, event=event: log.append((name, event, *told)))


def test_there_are_events():
    assert {"planned", "started", "progressed", "epoch", "finished"} <= set(EVENTS)


@pytest.mark.parametrize("event", EVENTS)
def test_several_watchers_hear_everything_in_order(event):
    log: list[tuple[object, ...]] = []
    together = Watchers(Noting("first", log), Noting("second", log))
    told = [object() for _ in list(inspect.signature(getattr(Watcher, event)).parameters)[1:]]
    getattr(together, event)(*told)
    assert log == [("first", event, *told), ("second", event, *told)]


def test_a_plan_may_know_nothing_of_the_work():
    assert Plan(3, 1).units == {}
    assert Plan(3, 1, {"a": 5}).images == {"a": 5}, "as it was called when all units were images"
    assert Plan(3, 1) == Plan(runs=3, reused=1, units={})
