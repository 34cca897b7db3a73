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

    keep:     the splits on which predictions are kept (those that the recipe's data has); "test:scores" without
              penultimate activations. Or these for each recipe by its id; of others none.
    progress: show a line of progress on standard error. Without it, one is shown on a terminal, unless there is a
              `watcher`, which is told all that happens and shows what it likes.
    workers:  processes that share the recipes out among them, this one included.
    sharing:  how many processes there are in all, where others were started elsewhere: none takes more than its
              share at a time.
    beside:   how many processes share the memory of the device; without it, all that share the work.
    until:    a moment of `time.monotonic`: afterwards no pack is begun, and those under way stop between two steps,
              with checkpoints. `Unfinished` then says what is left; nothing is raised if all runs ended in time.
    wait:     for recipes that other processes are training; without it `Unfinished` is raised as soon as nothing else
              is left.
    resources: what earlier calls on the same store loaded and compiled; `device` and `data_dir` must be as they were.
    afresh:   ids of recipes whose runs, if they are light, are trained once more for their weights and predictions.
    stop:     an event that asks for the end as Ctrl-C does, for calls that are not in a program's main thread.
    Finished runs are reused; interrupted ones go on where they stopped; a recipe that another process is
    training is waited for. A diverged run comes back with status ``failed``.

    In processes that torchrun has started, all of which must call this with the same recipes, every run is trained by
    all of them, one run after another (docs/ranks.md). The first one reads and writes runs, and watches; ``workers`` is
    of no effect then.
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
