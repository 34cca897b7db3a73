"""200 tiny runs on a cluster take little longer than with processes (`python -m benchmarks.executors` has figures)."""

from __future__ import annotations

import time

from softtargets.recipes import MLP, SGD, Digits, Recipe
from softtargets.runs import RunStore
from softtargets.training import train

BASE = Recipe(data=Digits(limit=100), model=MLP(hidden=(16,)), optimiser=SGD(lr=0.1), epochs=3, batch=32)


def recipes(first: int) -> list[Recipe]:
    return [BASE.replace({"seed": first + seed}) for seed in range(200)]


def test_workers_that_are_there_are_about_as_fast_as_processes(engine, tmp_path):
    engine(recipes(10_000)[:4], RunStore(tmp_path / "first"))  # starts workers, if that was not done before
    seconds = {"processes": [], "ray": []}
    for turn in range(5):  # others may work on the machine: the fastest turns of each are compared
        for name, way in (("processes", train), ("ray", engine)):
            store, begun = RunStore(tmp_path / f"{name} {turn}"), time.monotonic()
            assert len(way(recipes(0), store, device="cpu", workers=4, keep=())) == 200
            seconds[name].append(time.monotonic() - begun)
        # Processes are started anew each time, workers of a cluster are there: with 20 % and a second for noise it
        # holds by far, and does not where the head is in the way (a look at all runs for each that ends, say).
        if min(seconds["ray"]) < 1.2 * min(seconds["processes"]) + 1.0:
            return
    raise AssertionError(f"Ray takes more than 20 % longer than processes: {seconds}")
