"""What is done with a store, one operation in a fresh process: seconds, and how much the process grew by."""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.failures import Stated
from benchmarks.resident import CLEAR, resident_peak
from benchmarks.scale.stores import campaign_of, fill, recipes, study_of
from softtargets.atlas import gather
from softtargets.campaign import Campaign, Outlook, Speeds
from softtargets.recipes import Recipe
from softtargets.runs import Run, RunStore, environment, merge_runs, pack_runs
from softtargets.studies import run_study
from softtargets.training import Watcher
from softtargets.training.scheduling import Finisher, Queue, Resources, left_to_train

SAMPLE = 200  # runs that are asked for one by one, of larger stores
FEW = 64  # runs that are written, carried over or deleted
PACKS = 8
SEED = 0


class Broken(Stated):
    """An operation failed in its process."""


@dataclass(frozen=True)
class Done:
    """Seconds that so many things took, on the wall and of processors, and bytes that the process grew by."""

    seconds: float
    count: int
    peak: int | None
    busy: float


@dataclass(frozen=True)
class Task:
    """What is timed, after all that is not; how many things it does."""

    run: Callable[[], object]
    count: int = 1


Operation = Callable[[RunStore, int, Path], Task]  # of a store, its runs, and a directory to work in


def _some(runs: int) -> list[Recipe]:
    """Runs of a store in no order."""
    chosen = random.Random(SEED).sample(range(runs), min(runs, SAMPLE))
    found = [recipe for number in chosen for recipe in recipes(1, start=number)]
    for recipe in found:
        _ = recipe.id  # hashed once, before the clock runs
    return found


def _new(runs: int) -> list[Recipe]:
    """Runs that the store has not."""
    found = recipes(FEW, start=runs)
    for recipe in found:
        _ = recipe.id
    return found


def _write(store: RunStore, runs: int, place: Path) -> Task:
    new = _new(runs)
    finish_first = recipes(1, start=runs + FEW)
    fill(store, finish_first)  # loads what is loaded late
    return Task(lambda: fill(store, new), len(new))


def _find(store: RunStore, runs: int, place: Path) -> Task:
    some = _some(runs)
    return Task(lambda: [store.find(recipe) for recipe in some], len(some))


def _claim(store: RunStore, runs: int, place: Path) -> Task:
    some = _some(runs)

    def claim() -> None:
        for recipe in some:
            writer = store.claim(recipe)
            assert writer is not None
            writer.release()

    return Task(claim, len(some))


def _delete(store: RunStore, runs: int, place: Path) -> Task:
    new = _new(runs)
    fill(store, new)
    return Task(lambda: [store.delete(recipe.id) for recipe in new], len(new))


def _carry(together: int) -> Operation:
    """Runs with their weights into the store, so many in each file, as they come from workers that share no disk."""

    def carry(store: RunStore, runs: int, place: Path) -> Task:
        new = _new(runs)
        away = RunStore(place / "away")
        fill(away, new)
        files = []
        for start in range(0, len(new), together):
            files.append(place / f"{start}.zip")
            chosen = [Run(away.root / recipe.id) for recipe in new[start : start + together]]
            pack_runs(chosen, files[-1], ("weights", "predictions"))
        return Task(lambda: [merge_runs(file, store) for file in files], len(new))

    return carry


def _take(store: RunStore, runs: int, place: Path) -> Task:
    """Packs of a sweep of which nothing is done yet; one comes before, which computes what is computed once."""
    empty = RunStore(place / "empty")
    resources, finisher = _engine(empty)
    queue = Queue(left_to_train(recipes(runs), resources, finisher, Watcher()), resources, finisher, 1)
    with ExitStack() as locks:
        queue.take(locks)

    def take() -> None:
        for _ in range(PACKS):  # what was taken is taken again, since nobody trains it
            with ExitStack() as locks:
                queue.take(locks)

    return Task(take, PACKS)


def _engine(store: RunStore) -> tuple[Resources, Finisher]:
    resources = Resources(store, torch.device("cpu"), None)
    return resources, Finisher(resources, ("test",), Watcher())


def _entries_cold(store: RunStore, runs: int, place: Path) -> Task:
    (store.root / "index.json").unlink(missing_ok=True)
    return Task(store.entries)


def _entries(store: RunStore, runs: int, place: Path) -> Task:
    RunStore(store.root).entries()
    gc.collect()
    return Task(store.entries)


def _entries_again(store: RunStore, runs: int, place: Path) -> Task:
    """In a process that has looked before; one run is new."""
    store.entries()
    fill(store, recipes(1, start=runs))
    return Task(store.entries)


def _list(store: RunStore, runs: int, place: Path) -> Task:
    from softtargets.cli.runs import list_

    return Task(lambda: _silently(lambda: list_(runs_dir=store.root)))


def _verify(store: RunStore, runs: int, place: Path) -> Task:
    from softtargets.cli.runs import verify

    return Task(lambda: _silently(lambda: verify(runs_dir=store.root)))


def _silently(call: Callable[[], object]) -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        call()


def _plan(store: RunStore, runs: int, place: Path) -> Task:
    """A call of `train` that finds everything finished."""
    wanted = recipes(runs)
    resources, finisher = _engine(store)
    resources.task(wanted[0].data)
    return Task(lambda: left_to_train(wanted, resources, finisher, Watcher()))


def _outlook(store: RunStore, runs: int, place: Path) -> Task:
    campaign = campaign_of(study_of(recipes(runs)), place)
    return Task(lambda: _looked_at(campaign, store))


def _looked_at(campaign: Campaign, store: RunStore) -> Outlook:
    """On the device that the runs say they are of, so that their speeds are learnt."""
    name = environment("cpu")["device_name"]
    return Outlook(campaign, store, Speeds(name, "cpu"), torch.device("cpu"))


def _look_again(store: RunStore, runs: int, place: Path) -> Task:
    campaign = campaign_of(study_of(recipes(runs)), place)
    outlook = _looked_at(campaign, store)

    def look() -> None:
        outlook.look()
        outlook.wanted()

    return Task(look)


def _pack(store: RunStore, runs: int, place: Path) -> Task:
    there = [Run(store.root / recipe.id) for recipe in recipes(runs)]
    return Task(lambda: pack_runs(there, place / "all.zip"))


def _merge(store: RunStore, runs: int, place: Path) -> Task:
    pack_runs([Run(store.root / recipe.id) for recipe in recipes(runs)], place / "all.zip")
    return Task(lambda: merge_runs(place / "all.zip", RunStore(place / "merged")))


def _page(store: RunStore, runs: int, place: Path) -> Task:
    study = study_of(recipes(runs))
    return Task(lambda: _written(study, store, place))


def _written(study: Any, store: RunStore, place: Path) -> None:
    run_study(study, study.settings(None, {}), store, place / study.name, command="none", train=None)


def _atlas(store: RunStore, runs: int, place: Path) -> Task:
    study = study_of(recipes(runs))
    _written(study, store, place)
    return Task(lambda: gather(place, (study,)))


_OPERATIONS: dict[str, Operation] = {
    "write": _write,
    "find": _find,
    "claim": _claim,
    "delete": _delete,
    "carry 1": _carry(1),
    "carry 32": _carry(32),
    "take": _take,
    "entries cold": _entries_cold,
    "entries": _entries,
    "entries again": _entries_again,
    "list": _list,
    "verify": _verify,
    "plan": _plan,
    "outlook": _outlook,
    "look again": _look_again,
    "pack": _pack,
    "merge": _merge,
    "page": _page,
    "atlas": _atlas,
}


def done(name: str, root: Path, runs: int) -> Done:
    """Do it once, in this process, and leave the store as it was."""
    store = RunStore(root)
    with _place(root) as place, _as_before(store, runs):
        task = _OPERATIONS[name](store, runs, place)
        seconds: list[float] = []

        def timed() -> None:
            begun, busy = time.perf_counter(), time.process_time()
            task.run()
            seconds.extend((time.perf_counter() - begun, time.process_time() - busy))

        peak = None
        if CLEAR.exists():
            peak = resident_peak(timed)
        else:
            timed()
        return Done(seconds[0], task.count, peak, seconds[1])


@contextmanager
def _place(root: Path) -> Iterator[Path]:
    """A directory on the same disk, removed at the end."""
    place = Path(tempfile.mkdtemp(prefix="work-", dir=root.parent))
    try:
        yield place
    finally:
        shutil.rmtree(place)


@contextmanager
def _as_before(store: RunStore, runs: int) -> Iterator[None]:
    """Runs that an operation adds are gone afterwards, and so is what it measures on others."""
    try:
        yield
    finally:
        for recipe in recipes(FEW + 1, start=runs):
            shutil.rmtree(store.root / recipe.id, ignore_errors=True)
        for item in os.scandir(store.root):
            if os.path.isdir(f"{item.path}/measures"):
                shutil.rmtree(f"{item.path}/measures")


def done_apart(name: str, root: Path, runs: int) -> Done:
    """The same in a process of its own, so that memory is that of the operation."""
    command = [sys.executable, "-W", "ignore", "-m", __name__, json.dumps([name, str(root), runs])]
    there = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    ended = subprocess.run(command, capture_output=True, text=True, env=there, check=False)
    if ended.returncode < 0:
        raise Broken(f"its process was ended by signal {-ended.returncode}: perhaps out of memory")
    if ended.returncode:
        raise Broken((ended.stderr.strip().splitlines() or ["it broke without a word"])[-1])
    return Done(*json.loads(ended.stdout.splitlines()[-1]))


def main(arguments: Sequence[str]) -> None:
    """What `done_apart` starts."""
    torch.set_num_threads(1)
    name, root, runs = json.loads(arguments[0])
    sys.stdout.write(json.dumps(astuple(done(name, Path(root), runs))) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
