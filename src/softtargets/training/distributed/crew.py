"""The processes that train one run together: the first leads, the others follow, and all exchange what each has summed.

What is decided (which run comes next, whether to stop, what to write) the leader decides and tells. What is computed
every process computes alike, from the same weights and its own rows of each batch, and sums over all rows are
exchanged. So every process has the whole state between two steps, and the leader alone reads and writes runs.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor, distributed

from softtargets.exceptions import SofttargetsError
from softtargets.training.distributed.meeting import meet
from softtargets.training.distributed.seat import Seat, device_of, seat
from softtargets.training.distributed.wires import Message, Wires
from softtargets.training.share import Share

# Nobody waits longer for the others to come at the beginning.
_MEETING_SECONDS = 300.0
# An exchange that takes longer than this has failed, though nobody is gone. Waiting for words has no limit.
_EXCHANGE = timedelta(minutes=10)


class Crew:
    """One process and its connections with the others."""

    def __init__(self, own: Seat, wires: Wires, device: torch.device, group: Any) -> None:
        self.seat, self.wires, self.device = own, wires, device
        self.share = Share(own.rank, own.ranks)
        self.attended = False  # whether the others follow this process through all that it does
        self._group = group

    @property
    def leads(self) -> bool:
        """Whether this is the process that decides and writes."""
        return self.seat.leads

    @property
    def ranks(self) -> int:
        """How many processes there are."""
        return self.share.ranks

    def added_up_(self, tensor: Tensor) -> Tensor:
        """The sum over all processes, in place; every one of them calls this, and has the same bits afterwards."""
        with self._exchanging():
            distributed.all_reduce(tensor, group=self._group)
        return tensor

    def gathered(self, own: Tensor) -> Tensor:
        """What all processes have, (ranks, ...); of the same shape everywhere."""
        # A sum with zeros is exact, and one exchange that every backend has for every type.
        room = own.new_zeros(self.ranks, *own.shape)
        room[self.share.rank] = own
        return self.added_up_(room)

    def send_(self, tensors: Sequence[Tensor]) -> None:
        """Give all processes the leader's numbers."""
        with self._exchanging(), torch.no_grad():
            for tensor in tensors:
                dense = tensor.detach().contiguous()
                distributed.broadcast(dense, 0, group=self._group)
                if dense.data_ptr() != tensor.data_ptr():
                    tensor.copy_(dense)

    def agree(self, facts: Mapping[str, str]) -> None:
        """Refuse if other processes see something else than the leader: the same facts by name in every process."""
        if self.leads:
            differing = None
            for _ in range(self.ranks - 1):
                rank, told = self.wires.hear()
                differing = differing or _difference(facts, told["facts"], rank)
            if differing:
                self.wires.tell(kind="trouble", text=differing)
                raise SofttargetsError(differing)
            self.wires.tell(kind="agreed")
            return
        self.wires.tell(kind="facts", facts=dict(facts))
        self.wires.hear()

    def ready(self, **told: Any) -> list[Message]:
        """Wait for all to have prepared what was asked of them; the leader gets what each of the others tells."""
        if self.leads:
            return [
                message
                for _, message in sorted((self.wires.hear() for _ in range(self.ranks - 1)), key=_rank)
            ]
        self.wires.tell(kind="ready", **told)
        return []

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """While a process waits for others inside of torch, where nobody could tell it that they are gone."""
        self.wires.work(True)
        try:
            yield
        finally:
            self.wires.work(False)

    @contextmanager
    def _exchanging(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:
            raise self.wires.explain(error) from None


def _rank(heard: tuple[int, Message]) -> int:
    return heard[0]


def _difference(own: Mapping[str, str], theirs: Mapping[str, str], rank: int) -> str | None:
    for name, value in own.items():
        if theirs.get(name) != value:
            return (
                f"rank {rank} has a different {name} from rank 0: {theirs.get(name)} instead of {value}; start all "
                "ranks with the same"
            )
    return None


_joined: list[Crew] = []


def join(device: str = "auto") -> Crew | None:
    """Meet the other processes that torchrun has started, once; None in a process alone."""
    own = seat()
    if own is None:
        return None
    if _joined:
        return _joined[0]
    where = device_of(own, device)
    torchs: Any = distributed
    store, _, _ = next(torchs.rendezvous("env://", timeout=timedelta(seconds=_MEETING_SECONDS)))
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    wires, meeting = meet(torchs.PrefixStore(f"softtargets/{attempt}", store), own, _MEETING_SECONDS)
    made = Crew(own, wires, where, None)
    with _explained(made):
        made.agree({"kind of device": where.type})
    backend = "nccl" if where.type == "cuda" else "gloo"
    if where.type == "cuda":
        torch.cuda.set_device(where)
    if distributed.is_initialized():
        made._group = distributed.new_group(backend=backend, timeout=_EXCHANGE)
    else:
        distributed.init_process_group(
            backend,
            store=torchs.PrefixStore(f"softtargets/{meeting}", store),
            rank=own.rank,
            world_size=own.ranks,
            timeout=_EXCHANGE,
            device_id=where if where.type == "cuda" else None,
        )
    _joined.append(made)
    atexit.register(leave)
    return made


def leave(code: int = 0) -> bool:
    """Part from the others, if there are any, before this process ends with an exit code.

    Returns whether one of them was lost: torch may then wait for it for ever when the process ends in the usual way.
    """
    if not _joined:
        return False
    made = _joined.pop()
    made.wires.leave(code)
    if made.wires.trouble is not None:
        return True
    _close()
    return False


def _close() -> None:
    with suppress(Exception):  # whatever it says at the end of a process, nobody can do anything about it
        if distributed.is_initialized():
            distributed.destroy_process_group()


@contextmanager
def _explained(made: Crew) -> Iterator[None]:
    try:
        yield
    except SofttargetsError:
        made.wires.leave(2)
        raise
