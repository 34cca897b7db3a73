"""Words between processes, here two ends of sockets in one."""

from __future__ import annotations

import socket
import time

import pytest

from softtargets.training.distributed.wires import RankLost, Wires


@pytest.fixture
def three():
    """The wires of a leader and of two others."""
    pairs = [socket.socketpair() for _ in range(2)]
    # Sockets that are no TCP have no delay to turn off.
    yield [
        Wires({1: _Plain(pairs[0][0]), 2: _Plain(pairs[1][0])}),
        *(Wires({0: _Plain(b)}) for _, b in pairs),
    ]
    for pair in pairs:
        for end in pair:
            end.close()


class _Plain:
    def __init__(self, wire):
        self._wire = wire

    def setsockopt(self, *ignored):
        pass

    def __getattr__(self, name):
        return getattr(self._wire, name)


def read(wires, seconds=5.0):
    """Wait until all that was sent so far has been taken by the threads that read."""
    end = time.monotonic() + seconds
    while wires._departed is None and time.monotonic() < end:
        time.sleep(0.005)


def test_a_fast_process_may_part_before_a_slow_one_has_heard_of_the_end(three):
    leader, fast, slow = three
    leader.done(True)
    leader.tell(kind="end", outcome="done")
    assert fast.hear() == (0, {"kind": "end", "outcome": "done"})
    fast.leave(0)
    read(leader)
    assert leader.trouble is None
    leader.leave(0)
    assert slow.hear() == (0, {"kind": "end", "outcome": "done"})
    assert slow.trouble is None


def test_who_has_parted_is_missed_when_there_is_more_to_do(three):
    leader, fast, slow = three
    leader.done(True)
    leader.tell(kind="end", outcome="done")
    assert slow.hear()[1]["kind"] == "end"
    fast.leave(3)
    read(leader)
    leader.done(False)
    with pytest.raises(RankLost, match="rank 1 has ended, with the exit code 3, before the training was"):
        leader.tell(kind="start")
    with pytest.raises(RankLost, match="rank 1 has ended"):
        slow.hear()


def test_before_the_end_nobody_may_part(three):
    leader, fast, slow = three
    fast.leave(0)
    read(leader)
    with pytest.raises(RankLost, match="rank 1 has ended"):
        leader.hear()
    with pytest.raises(RankLost, match="rank 1 has ended"):
        slow.hear()
