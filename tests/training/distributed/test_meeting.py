"""How processes find each other."""

from __future__ import annotations

import socket
import threading

import pytest
from torch import distributed

from softtargets.exceptions import SofttargetsError
from softtargets.training.distributed.meeting import meet
from softtargets.training.distributed.seat import Seat


def met(store, ranks, seconds=20.0):
    found = {}

    def one(rank):
        found[rank] = meet(store, Seat(rank, ranks, rank, "127.0.0.1"), seconds)

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(ranks - 1, -1, -1)]
    for thread in threads:
        thread.start()
        thread.join(0.3)  # the leader comes last
    for thread in threads:
        thread.join(seconds)
    return found


def test_words_go_both_ways_and_the_meeting_has_one_name():
    found = met(distributed.HashStore(), 3)
    assert len({name for _, name in found.values()}) == 1
    leader = found[0][0]
    leader.tell(kind="hello")
    for rank in (1, 2):
        assert found[rank][0].hear() == (0, {"kind": "hello"})
        found[rank][0].tell(kind="here", rank=rank)
    assert sorted(leader.hear()[1]["rank"] for _ in range(2)) == [1, 2]
    leader.leave(3)
    for rank in (1, 2):
        assert found[rank][0].hear()[1] == {"kind": "bye", "code": 3}
        assert found[rank][0].parting == 3
        found[rank][0].leave(0)


def test_what_an_earlier_leader_has_written_is_not_believed():
    store = distributed.HashStore()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        store.set("softtargets/where", f"{probe.getsockname()[1]}/{'00' * 32}")
    found = met(store, 2)
    found[0][0].tell(kind="hello")
    assert found[1][0].hear() == (0, {"kind": "hello"})
    found[0][0].leave(0)
    found[1][0].leave(0)


def test_who_does_not_come_is_named():
    with pytest.raises(SofttargetsError, match=r"rank 1, 2 of 3 did not connect within 0\.2 s"):
        meet(distributed.HashStore(), Seat(0, 3, 0, "127.0.0.1"), 0.2)
