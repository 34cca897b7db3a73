"""Which of several processes this one is, as torchrun says it in the environment."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from softtargets.exceptions import SofttargetsError
from softtargets.training.devices import choose_device

# What torchrun sets for each process that it starts.
_NUMBERS = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
_NEEDED = (*_NUMBERS, "MASTER_ADDR", "MASTER_PORT")
_ADVICE = (
    "start it with torchrun --nproc-per-node N -m softtargets train RECIPE, or unset RANK to train alone"
)


@dataclass(frozen=True)
class Seat:
    """Process `rank` of `ranks`, the `local` one on its machine; the first one leads and listens near `host`."""

    rank: int
    ranks: int
    local: int
    host: str
    restarts: int = 0  # how often torchrun starts all of them again

    @property
    def leads(self) -> bool:
        """Whether this is the one that claims, decides, measures and writes."""
        return self.rank == 0

    @property
    def speaks(self) -> bool:
        """Whether this is the one to say that the leader is gone: one on each machine does."""
        return self.rank == 1 or (self.local == 0 and self.rank > 1)


def seat(environment: Mapping[str, str] | None = None) -> Seat | None:
    """Where the environment puts this process; None where it is alone.

    >>> seat({}) is None
    True
    >>> address = {"MASTER_ADDR": "localhost", "MASTER_PORT": "29500"}
    >>> seat({"RANK": "1", "WORLD_SIZE": "4", "LOCAL_RANK": "1", **address}).rank
    1
    >>> seat({"RANK": "1", "WORLD_SIZE": "4"})
    Traceback (most recent call last):
    softtargets.exceptions.SofttargetsError: RANK is 1, so this is one of several processes, but LOCAL_RANK, \
MASTER_ADDR, MASTER_PORT are not set: start it with torchrun --nproc-per-node N -m softtargets train RECIPE, or unset \
RANK to train alone
    """
    found = os.environ if environment is None else environment
    if "RANK" not in found:
        return None
    if missing := [name for name in _NEEDED if not found.get(name)]:
        are = "is" if len(missing) == 1 else "are"
        raise SofttargetsError(
            f"RANK is {found['RANK']}, so this is one of several processes, but {', '.join(missing)} {are} not set: "
            f"{_ADVICE}"
        )
    try:
        rank, ranks, local = (int(found[name]) for name in _NUMBERS)
        restarts = int(found.get("TORCHELASTIC_MAX_RESTARTS") or 0)
    except ValueError:
        told = ", ".join(f"{name}={found[name]}" for name in _NUMBERS)
        raise SofttargetsError(f"{told}: these must be whole numbers; {_ADVICE}") from None
    if not 0 <= rank < ranks or local < 0:
        raise SofttargetsError(f"RANK is {rank} and WORLD_SIZE {ranks}: ranks are counted from 0; {_ADVICE}")
    return Seat(rank, ranks, local, found["MASTER_ADDR"], restarts)


def device_of(own: Seat, name: str) -> torch.device:
    """The device of one rank: the GPU of its number on its machine, or the processor, which all share."""
    device = choose_device("auto" if name == "auto" else name)
    if device.type == "cpu":
        return device
    there = torch.cuda.device_count()
    if device.index is not None and device.index != own.local:
        raise SofttargetsError(
            f"device '{name}' can only be used by one process, but there are {own.ranks} ranks, each with its own "
            "GPU; give --device cuda, or leave --device out"
        )
    if own.local >= there:
        raise SofttargetsError(
            f"this is process {own.local + 1} on this machine, which has {there} GPU{'s' * (there != 1)}, but each "
            f"process needs its own GPU; give torchrun --nproc-per-node {there}, or --device cpu"
        )
    return torch.device("cuda", own.local)
