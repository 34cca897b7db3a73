"""What the leader tells the others of a run, so that they train it with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch import Tensor

from softtargets.exceptions import RecipeError, SofttargetsError, Unfinished
from softtargets.training.distributed.crew import Crew
from softtargets.training.distributed.facts import of_data
from softtargets.training.distributed.wires import RankLost
from softtargets.training.interruption import interrupted_once
from softtargets.training.pack import Fleet, Pack, Start
from softtargets.training.tasks import Teacher

# Seconds in which a process that is gone is sure to be noticed.
_HEARING = 0.1


class Leader:
    """The leader's side of a training: begin a run, go on step by step, end it."""

    # Signals that come so many seconds after the first are that one again: torchrun passes on what a terminal sends to
    # all.
    patience = 10.0

    def __init__(self, crew: Crew) -> None:
        self._crew = crew
        self._taken: Callable[[], None] = lambda: None
        self._under_way = False  # a run, in which the others may wait for this process inside of torch

    @contextmanager
    def training(self) -> Iterator[None]:
        """One call of the engine; what other processes were told to do is over afterwards, however it ends."""
        self._crew.wires.done(False)
        with interrupted_once(self.patience) as self._taken, self._telling_the_end():
            yield

    def stopping(self) -> None:
        """Somebody has asked for the end, and it is about to come: who asks again need not be heard."""
        self._taken()

    @contextmanager
    def _telling_the_end(self) -> Iterator[None]:
        try:
            yield
        except KeyboardInterrupt:
            # torchrun asks all others to stop when one is gone, which is what to say then.
            time.sleep(_HEARING)
            self._crew.wires.check()
            self._end(outcome="interrupted")
            raise
        except Unfinished as cut:
            self._end(outcome="unfinished", left=[recipe.id for recipe in cut.left])
            raise
        except BaseException as error:
            said = f"rank 0 has failed: {error}"
            self._end(**({"kind": "trouble"} if self._under_way else {"outcome": "failed"}), text=said)
            raise
        else:
            self._end(outcome="done")
        finally:
            self.rest()

    def _end(self, **told: Any) -> None:
        self._crew.wires.done(True)
        with suppress(RankLost):
            self._crew.wires.tell(**({"kind": "end"} | told))

    def begin(self, start: Start) -> None:
        """Let all processes prepare a run, and see that they have the same data."""
        check_shares(start, self._crew)
        self._under_way = True
        self._crew.wires.work(True)
        teacher = start.teacher
        told: dict[str, Any] | None = None
        if teacher is not None:
            kept = teacher.kept
            told = {"recipe": teacher.recipe.to_dict()}
            told["kept"] = (
                None if kept is None else [str(kept.dtype).removeprefix("torch."), list(kept.shape)]
            )
        step = start.checkpoint.progress["step"] if start.checkpoint else 0
        self._crew.wires.tell(kind="start", recipe=start.recipe.to_dict(), step=step, teacher=told)
        own = of_data(start.task)
        for rank, message in enumerate(self._crew.ready(), 1):
            if message["data"] != own:
                raise SofttargetsError(
                    f"rank {rank} has other data for {start.recipe.data.name} than rank 0 (checksum "
                    f"{message['data']} instead of {own}): put the same files on all machines"
                )
        if teacher is not None:
            self._crew.send_(taught(teacher, self._crew.device))

    def begun(self, pack: Pack | Fleet) -> None:
        """Give all processes the state that the run begins or goes on with."""
        pack.share()

    def step(self) -> None:
        """Let all processes take the next step."""
        self._crew.wires.work(True)
        self._crew.wires.tell(kind="step")

    def over(self) -> None:
        """Let all processes leave the run."""
        self._crew.wires.tell(kind="over")
        self._under_way = False

    def rest(self) -> None:
        """The leader does something by itself now."""
        self._crew.wires.work(False)

    @property
    def is_asked(self) -> bool:
        """Whether somebody has asked one of the other processes to stop."""
        return self._crew.wires.asked.is_set()

    def note(self, begun: dict[str, Any]) -> None:
        """Write down by how many processes a run is trained, one number after another where that changes."""
        note_ranks(begun, self._crew.ranks)


class Nobody(Leader):
    """A process alone has nobody to tell."""

    patience = 0.0

    def __init__(self) -> None:
        pass

    @contextmanager
    def training(self) -> Iterator[None]:
        """As it is."""
        yield

    def begin(self, start: Start) -> None:
        pass

    def begun(self, pack: Pack | Fleet) -> None:
        pass

    def step(self) -> None:
        pass

    def over(self) -> None:
        pass

    def rest(self) -> None:
        pass

    def stopping(self) -> None:
        pass

    @property
    def is_asked(self) -> bool:
        return False

    def note(self, begun: dict[str, Any]) -> None:
        """Only what several processes have begun is worth a word."""
        if "ranks" in begun:
            note_ranks(begun, 1)


def note_ranks(begun: dict[str, Any], ranks: int) -> None:
    """Add a number of processes to those that a run was trained by before; of earlier runs it was one.

    >>> begun = {"resumed": 1}
    >>> note_ranks(begun, 4)
    >>> begun["ranks"]
    [1, 4]
    """
    before = begun.setdefault("ranks", [1] if begun["resumed"] else [])
    if before[-1:] != [ranks]:
        before.append(ranks)


def taught(teacher: Teacher, device: torch.device) -> list[Tensor]:
    """All numbers of a teacher, where processes exchange them."""
    if teacher.model is None:
        assert teacher.kept is not None
        teacher.kept = teacher.kept.to(device)
        return [teacher.kept]
    return [value.data for value in teacher.model.state_dict(keep_vars=True).values()]


def check_shares(start: Start, crew: Crew) -> None:
    """Refuse batches with fewer rows than there are processes; the last one of an epoch may have fewer."""
    rows = max(start.task.examples(shape) for shape in set(start.course.epoch(0).shapes))
    if rows < crew.ranks:
        raise RecipeError(
            f"a batch has at most {rows} rows, fewer than the {crew.ranks} ranks that share it; start fewer ranks, "
            "or give the recipe larger batches",
            "batch",
        )
