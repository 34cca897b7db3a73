"""The engine: recipes in, runs out; runs of one shape are trained together."""

from __future__ import annotations

import sys
import threading
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from softtargets.exceptions import SofttargetsError, Unfinished
from softtargets.recipes import Recipe
from softtargets.runs import Run, RunStore
from softtargets.training.devices import choose_device, no_default_device
from softtargets.training.distributed import Crew, join
from softtargets.training.distributed.facts import of_code, of_recipes
from softtargets.training.distributed.following import Follower
from softtargets.training.distributed.leading import Leader, Nobody
from softtargets.training.events import Watcher, Watchers
from softtargets.training.progress import ProgressLine
from softtargets.training.scheduling import Finisher, Keep, Loop, Queue, Resources, left_to_train
from softtargets.training.workers import helpers

KEEP = ("validation", "test")
CHECKPOINT_SECONDS = 30.0


@no_default_device()
def train(
    recipes: Iterable[Recipe],
    store: RunStore,
    *,
    device: str = "auto",
    keep: Keep = KEEP,
    data_dir: Path | None = None,
    watcher: Watcher | None = None,
    progress: bool | None = None,
    checkpoint_seconds: float = CHECKPOINT_SECONDS,
    workers: int = 1,
    sharing: int | None = None,
    beside: int | None = None,
    until: float | None = None,
    wait: bool = True,
    resources: Resources | None = None,
    afresh: Collection[str] = (),
    stop: threading.Event | None = None,
) -> list[Run]:
    """Train every recipe that has no finished run yet, teachers first, and return the runs in order.

    keep:     the splits on which predictions are kept, if the recipe's data has them; "test:scores" keeps no
              penultimate activations. Or a mapping from a recipe's id to its splits; other recipes keep none.
    progress: True shows a line of progress on standard error, False shows none. By default one is shown on a terminal,
              unless there is a `watcher`.
    watcher:  is told everything that happens, and may show it.
    workers:  the number of processes that train at the same time, this one included.
    sharing:  the number of processes in all, if others were started elsewhere: none takes more than its share at a
              time.
    beside:   how many processes share the memory of the device; by default all that share the work.
    until:    a moment of `time.monotonic`. After it no pack is started, and packs under way stop between two steps,
              with checkpoints. `Unfinished` then says what is left; it is not raised if all runs ended in time.
    wait:     wait for recipes that other processes are training; if False, `Unfinished` is raised as soon as nothing
              else is left.
    resources: what earlier calls on the same store loaded and compiled; `device` and `data_dir` must be the same.
    afresh:   ids of recipes whose runs, if they are light, are trained again for their weights and predictions.
    stop:     an event that stops the training as Ctrl-C does, for calls outside a program's main thread.

    Finished runs are reused, and interrupted ones are resumed. A run that diverged is returned with status ``failed``.

    In processes that torchrun has started, all of which must call this with the same recipes, all processes train every
    run together, one run after another (docs/ranks.md). The first process reads and writes runs, and calls the watcher;
    ``workers`` then has no effect.
    """
    recipes = list(recipes)
    crew = join(device)
    if crew is not None:
        _check_restarts(crew, until)
        if not crew.attended:
            crew.agree(of_code() | of_recipes(recipes, store))
        resources = resources or Resources(store, crew.device, data_dir)
        resources.crew = crew
        workers, sharing = 1, None
        if not crew.leads:
            Follower(crew, resources).follow_call(recipes)
            return [Run(store.root / recipe.id) for recipe in recipes]
    watcher = watching(watcher, progress)
    sharing = sharing or workers
    resources = resources or Resources(store, choose_device(device), data_dir)
    finisher = Finisher(resources, keep, watcher, frozenset(afresh))
    others = Nobody() if crew is None else Leader(crew)
    with others.training():
        todo = left_to_train(recipes, resources, finisher, watcher)
        queue = Queue(todo, resources, finisher, sharing, beside)
        loop = Loop(queue, resources, finisher, watcher, checkpoint_seconds, until, wait, stop, others)
        how: dict[str, Any] = {"device": device, "keep": keep, "data_dir": data_dir}
        how |= {"checkpoint_seconds": checkpoint_seconds, "until": until, "wait": wait, "afresh": afresh}
        with helpers(min(workers, len(todo)) - 1, train, list(todo.values()), store, sharing=sharing, **how):
            loop.run()
        finisher.conclude_found(todo)  # by helpers, at the last moment
        if todo:
            raise Unfinished([run for recipe in recipes if (run := store.find(recipe))], list(todo.values()))
    return [Run(store.root / recipe.id) for recipe in recipes]


def _check_restarts(crew: Crew, until: float | None) -> None:
    """Refuse a time limit where torchrun would start everything again when it is over."""
    if until is not None and crew.seat.restarts:
        raise SofttargetsError(
            f"torchrun --max-restarts {crew.seat.restarts} would start again when the time is up; leave out either "
            "the time limit or the restarts"
        )


def watching(watcher: Watcher | None, progress: bool | None) -> Watcher:
    """Who hears of the training: the caller's watcher, a line of progress, both or nobody."""
    if progress is None:
        progress = watcher is None and sys.stderr is not None and sys.stderr.isatty()
    watchers = [*([watcher] if watcher else []), *([ProgressLine()] if progress else [])]
    return watchers[0] if len(watchers) == 1 else Watchers(*watchers)
