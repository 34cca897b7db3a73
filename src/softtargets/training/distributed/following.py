"""What the processes do that do not lead: as they are told."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event
from typing import Any

import torch

from softtargets.exceptions import SofttargetsError, Unfinished
from softtargets.recipes import Recipe
from softtargets.training.building import build_model
from softtargets.training.distributed.crew import Crew
from softtargets.training.distributed.facts import of_data
from softtargets.training.distributed.leading import Leader, taught
from softtargets.training.distributed.wires import Message, RankLost
from softtargets.training.interruption import graceful_interruption, interrupted_once
from softtargets.training.pack import Pack, Start
from softtargets.training.precision import float32_products
from softtargets.training.scheduling.resources import Resources
from softtargets.training.tasks import Teacher


class Follower:
    """Trains what the leader says, until it says that a call of the engine, or everything, is over."""

    def __init__(self, crew: Crew, resources: Resources) -> None:
        self._crew, self._resources = crew, resources
        self._told = False

    def follow_call(self, recipes: Sequence[Recipe]) -> None:
        """One call of the engine with these recipes, which ends as the leader's does."""
        told = self._follow("end")
        if told.get("outcome") == "interrupted":
            raise KeyboardInterrupt
        if told.get("outcome") == "unfinished":
            raise Unfinished([], [recipe for recipe in recipes if recipe.id in told["left"]])
        if told.get("outcome") != "done":
            raise RankLost(told.get("text") or "rank 0 has left before the training was over")

    def follow_all(self) -> int:
        """All that the leader does until it ends: its exit code."""
        self._follow("bye")
        return self._crew.wires.parting or 0

    def _follow(self, last: str) -> Message:
        patience = Leader.patience
        with interrupted_once(patience) as taken, graceful_interruption(patience=patience) as asked:
            try:
                message = self._hear(asked)
                while message["kind"] not in (last, "bye"):
                    message = self._train(message, asked) if message["kind"] == "start" else self._hear(asked)
                return message
            except RankLost:
                if self._crew.wires.parting is None:
                    raise
                return {"kind": "bye"}
            except Exception as error:
                known = isinstance(error, SofttargetsError)
                said = str(error) if known else f"{type(error).__name__}: {error}"
                rank = self._crew.share.rank
                self._crew.wires.tell(kind="trouble", text=f"rank {rank} has failed: {said}")
                raise
            finally:
                if last == "bye" or asked.is_set():
                    taken()  # it ends, and whoever asks for that again need not be heard

    def _hear(self, asked: Event) -> Message:
        return self._crew.wires.hear(lambda: self._pass_on(asked))[1]

    def _pass_on(self, asked: Event) -> None:
        """The leader decides when to stop: it must know that this process was asked to."""
        if asked.is_set() and not self._told:
            self._told = True
            self._crew.wires.tell(kind="asked")

    def _train(self, told: Message, asked: Event) -> Message:
        """One run as far as the leader goes; returns the first message that asks for something else."""
        recipe = Recipe.from_dict(told["recipe"])
        device = self._resources.device
        with (
            torch.random.fork_rng(devices=[device] if device.type == "cuda" else []),
            float32_products(recipe.precision),
            self._crew.at_work(),
        ):
            start = Start(recipe, self._resources.noisy(recipe))
            self._crew.ready(data=of_data(start.task))
            start.teacher = self._teacher(told["teacher"])
            pack = Pack([start], self._resources.machinery(recipe))
            pack.begin_at(told["step"])
            pack.share()
            while (message := self._hear(asked))["kind"] == "step":
                pack.keep_up(pack.advance())
            return message

    def _teacher(self, told: dict[str, Any] | None) -> Teacher | None:
        """The teacher as the leader has it: its run need not be here."""
        if told is None:
            return None
        recipe = Recipe.from_dict(told["recipe"])
        task, device = self._resources.task(recipe.data), self._resources.device
        if told["kept"] is None:
            teacher = Teacher(recipe, build_model(recipe, task).to(device), task)
        else:
            dtype, shape = told["kept"]
            teacher = Teacher(recipe, None, task, kept=torch.zeros(shape, dtype=getattr(torch, dtype)))
        self._crew.send_(taught(teacher, device))
        return teacher
