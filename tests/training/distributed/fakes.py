"""Several processes played by threads of one: what each adds up, all add up."""

from __future__ import annotations

import threading
from types import SimpleNamespace

from softtargets.training.distributed.crew import Crew
from softtargets.training.share import Share


class Thread(Crew):
    """One of several that meet in memory."""

    def __init__(self, rank, room):
        self.share = Share(rank, room.ranks)
        self.seat = SimpleNamespace(leads=rank == 0)
        self._room = room

    def added_up_(self, tensor):
        room = self._room
        room.given[self.share.rank] = tensor
        room.barrier.wait()
        total = sum(each.detach().clone() for each in room.given)
        room.barrier.wait()
        return tensor.copy_(total)


def in_threads(ranks, work):
    """What `work(crew)` returns for each of so many ranks at the same time."""
    room = SimpleNamespace(ranks=ranks, given=[None] * ranks, barrier=threading.Barrier(ranks, timeout=30))
    found, errors = [None] * ranks, []

    def one(rank):
        try:
            found[rank] = work(Thread(rank, room))
        except BaseException as error:
            errors.append(error)
            room.barrier.abort()

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return found
