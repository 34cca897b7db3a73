"""The engine: recipes in, runs out; runs of one shape are trained together."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path

import torch

from softtargets.exceptions import SofttargetsError
from softtargets.recipes import Recipe
from softtargets.runs import Run, RunStore
from softtargets.training.devices import choose_device
from softtargets.training.events import Watcher
from softtargets.training.scheduling import (
    POLL_SECONDS,
    Finisher,
    Loop,
    Queue,
    Resources,
    Work,
    left_to_train,
)
from softtargets.training.workers import helpers

KEEP = ("validation", "test")
CHECKPOINT_SECONDS = 30.0


def train(
    recipes: Iterable[Recipe],
    store: RunStore,
    *,
    device: str = "auto",
    keep: Sequence[str] = KEEP,
    data_dir: Path | None = None,
    watcher: Watcher | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    workers: int = 1,
    sharing: int | None = None,
) -> list[Run]:
    """Train every recipe that has no finished run yet, teachers first, and return the runs in order.

    keep:     the splits on which predictions are kept (those that the recipe's data has).
    workers:  processes that share the recipes out among them, this one included.
    sharing:  how many processes there are in all, where others were started elsewhere: none takes more than its
              share at a time.
    Finished runs are reused; interrupted ones go on where they stopped; a recipe that another process is
    training is waited for. A diverged run comes back with status ``failed``.
    """
    recipes = list(recipes)
    watcher = watcher or Watcher()
    sharing = sharing or workers
    resources = Resources(store, choose_device(device), data_dir)
    finisher = Finisher(resources, keep, watcher)
    todo = left_to_train(recipes, resources, finisher, watcher)
    queue = Queue(todo, resources, finisher, sharing)
    loop = Loop(queue, resources, finisher, watcher, checkpoint_seconds)
    how = {"device": device, "keep": keep, "data_dir": data_dir, "checkpoint_seconds": checkpoint_seconds}
    with helpers(min(workers, len(todo)) - 1, train, list(todo.values()), store, sharing=sharing, **how):
        _train_all(queue, loop, watcher, resources.device)
    return [Run(store.root / recipe.id) for recipe in recipes]


def _train_all(queue: Queue, loop: Loop, watcher: Watcher, device: torch.device) -> None:
    """Train until nothing is left to do, here or in other processes."""
    told = False
    while queue.todo:
        left = len(queue.todo)
        with ExitStack() as locks:
            if works := queue.take(locks):
                _train_within_memory(works, locks, queue, loop, device)
        if works or len(queue.todo) < left:
            told = False
            continue
        # Should the other process die, its lock is free again and we take over from its checkpoint.
        if not told:
            watcher.waiting(next(iter(queue.todo.values())))
        told = True
        time.sleep(POLL_SECONDS)


def _train_within_memory(
    works: list[Work], locks: ExitStack, queue: Queue, loop: Loop, device: torch.device
) -> None:
    """Train these runs; if they take more memory than was estimated, later packs of their kind are smaller."""
    width = len(works)
    try:
        loop.train(works, locks)
        return
    except (MemoryError, RuntimeError) as error:
        if not _is_out_of_memory(error):
            raise
        width = max(width, len(works))
        if width == 1:
            raise SofttargetsError(
                f"run {works[0].recipe.id} does not fit into the memory of {device}; use a smaller batch or net"
            ) from error
        # What was not finished goes on from its last checkpoint, in packs of half the size.
        queue.halve(works[0].recipe, width)
    # Out here, where the error no longer holds on to the pack that was too large.
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()


def _is_out_of_memory(error: BaseException) -> bool:
    # torch says it with one of its own errors, or with a plain RuntimeError of its allocator or of a library.
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    return any(words in str(error) for words in ("allocate memory", "out of memory", "ALLOC_FAILED"))
