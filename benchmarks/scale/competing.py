"""Several processes after the same runs of one store: how many claims, and how many finished runs, a second."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from threading import BrokenBarrierError
from typing import Any, NamedTuple

import torch

from benchmarks.failures import Stated
from benchmarks.scale.stores import fill, finish, recipes
from softtargets.recipes import Recipe
from softtargets.runs import RunStore

PATIENCE = 300.0  # seconds


class Unfair(Stated):
    """Processes that did not share the work out as they must."""


class Share(NamedTuple):
    """What one process did, between two moments of the clock that all share."""

    begun: float
    ended: float
    done: int
    refused: int


def claims(store: RunStore, chosen: list[Recipe], number: int) -> tuple[int, int]:
    """Claim and give back every run, in an order of its own: how many, and how often another process had it."""
    order = list(chosen)
    random.Random(number).shuffle(order)
    refused = 0
    for recipe in order:
        writer = store.claim(recipe)
        if writer is None:
            refused += 1
        else:
            writer.release()
    return len(order) - refused, refused


def finishes(store: RunStore, chosen: list[Recipe], number: int) -> tuple[int, int]:
    """Finish whatever is not finished, as trainings of no length would."""
    done = refused = 0
    for recipe in chosen:
        writer = store.claim(recipe)
        if writer is None:
            refused += 1
            continue
        with writer:
            if not writer.finished:
                finish(writer)
                done += 1
    return done, refused


_COMPETITIONS: dict[str, Callable[[RunStore, list[Recipe], int], tuple[int, int]]] = {
    "claims": claims,
    "finishes": finishes,
}


def compete(name: str, root: Path, runs: int, processes: int) -> list[Share]:
    """Let so many processes begin at the same moment; what each did."""
    store = RunStore(root)
    if name == "claims":
        fill(store, recipes(runs))
    context = get_context("spawn")
    barrier, answers = context.Barrier(processes), context.SimpleQueue()
    started = [
        context.Process(target=_take_part, args=(name, root, runs, number, barrier, answers))
        for number in range(processes)
    ]
    for one in started:
        one.start()
    found = [answers.get() for _ in started]
    for one in started:
        one.join()
    for answer in found:
        if isinstance(answer, str):
            raise Unfair(answer)
    shares = [Share(*answer) for answer in found]
    if name == "finishes" and sum(share.done for share in shares) != runs:
        raise Unfair(f"{sum(share.done for share in shares)} runs were finished, not {runs}")
    return shares


def _take_part(name: str, root: Path, runs: int, number: int, barrier: Any, answers: Any) -> None:
    try:
        torch.set_num_threads(1)
        chosen = recipes(runs)
        for recipe in chosen:
            _ = recipe.id
        fill(RunStore(root.parent / f"warm-{number}"), chosen[:2])
        barrier.wait(PATIENCE)
        begun = time.time()
        done, refused = _COMPETITIONS[name](RunStore(root), chosen, number)
        answers.put((begun, time.time(), done, refused))
    except (Exception, BrokenBarrierError) as error:
        with suppress(Exception):
            barrier.abort()
        answers.put(f"a process failed: {error!r}")
