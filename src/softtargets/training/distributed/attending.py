"""A whole command in processes that torchrun has started: the first one does it, the others attend to it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from softtargets.exceptions import SofttargetsError
from softtargets.runs import RunStore
from softtargets.training.distributed.crew import join
from softtargets.training.distributed.facts import of_code
from softtargets.training.distributed.following import Follower
from softtargets.training.distributed.wires import CODE
from softtargets.training.scheduling.resources import Resources


class Parted(NamedTuple):
    """How a process ends that has followed another one: with an exit code, and a line if nobody else would say it."""

    code: int
    line: str = ""


def attend(
    device: str, store: RunStore, data_dir: Path | None = None, facts: Mapping[str, str] | None = None
) -> Parted | None:
    """None in the first process, and in one that is alone, which go on; any other trains what the first one trains.

    It returns when the first process parts from it (`leave`), however many calls of `train` that has made; it must not
    call `train` itself. `facts` must be the same in all processes, by name.
    """
    crew = join(device)
    if crew is None:
        return None
    crew.attended = True
    seen = {**of_code(), **(facts or {}), "directory of runs": str(store.root.absolute())}
    if crew.leads:
        crew.agree(seen)
        return None
    try:
        crew.agree(seen)
        return Parted(Follower(crew, Resources(store, crew.device, data_dir, crew)).follow_all())
    except SofttargetsError as error:
        speaks = crew.wires.orphaned and crew.seat.speaks
        return Parted(CODE, f"error: {error}" if speaks else "")
