"""The workers as the head knows them: who is starting, who waits, who trains what; and others for those that died."""

from __future__ import annotations

import os
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import softtargets
from softtargets.exceptions import SofttargetsError
from softtargets.executors.ray.cluster import Cluster
from softtargets.executors.ray.orders import Hello, Order, Place, Probe
from softtargets.executors.ray.worker import as_actor, versions

FAILED_STARTS = 3  # in a row, after which no further worker is started
_CONTROL = {"concurrency_group": "control"}
# What may change the last bits of a sum, or how they are computed, is the same on workers as here.
_PASSED_ON = (
    "ONEDNN_MAX_CPU_ISA",
    "DNNL_MAX_CPU_ISA",
    "ATEN_CPU_CAPABILITY",
    "MKL_CBWR",
    "CUBLAS_WORKSPACE_CONFIG",
)


@dataclass(eq=False)
class Station:
    """One worker. `waits_for` is what it was asked last: to arrive, to inspect, to work."""

    actor: Any
    waits_for: Any = None
    asked: str = ""
    news: Any = None
    hello: Hello | None = None
    order: Order | None = None
    kind: Hashable = None  # of the runs it trained last
    taught: set[str] = field(default_factory=set)  # teachers that have travelled there

    @property
    def is_idle(self) -> bool:
        """Whether it has arrived and has nothing to do."""
        return self.hello is not None and self.waits_for is None

    @property
    def node(self) -> str:
        """Where it is."""
        return self.hello.node if self.hello else "a node of the cluster"


@dataclass
class Staff:
    """All workers, which live from one call of the executor to the next."""

    cluster: Cluster
    size: int
    sized: dict[str, float]
    stations: list[Station] = field(default_factory=list)
    failed_starts: int = 0
    why_failed: str = ""
    is_closing: bool = False
    shunned: set[str] = field(default_factory=set)  # nodes without the data

    def gather(self, runs: int, place: Place, probe: Probe, carry: bool) -> None:
        """Ask those that are there to take a place, and start others until there are enough for so many runs."""
        self._arriving, self._enough = (place, probe, carry), min(self.size, runs)
        self.failed_starts, self.why_failed, self.is_closing = 0, "", False
        self.shunned.clear()
        for station in self.stations:
            station.hello, station.taught = None, set()
            self._ask(station, "arrive", *self._arriving)
        while len(self.stations) < self._enough:
            self.start()

    def start(self) -> None:
        """One more worker; it arrives when the cluster has room for it."""
        sized = {f"num_{name.lower()}s": amount for name, amount in self.sized.items() if name != "memory"}
        if "memory" in self.sized:
            sized["memory"] = self.sized["memory"]
        make = as_actor(self.cluster.ray, runtime_env=_environment(), scheduling_strategy="SPREAD", **sized)
        actor = make.remote()
        station = Station(actor)
        self.stations.append(station)
        self._ask(station, "arrive", *self._arriving)

    def inspect(self, station: Station, recipes: Any) -> None:
        """Let a worker look at recipes."""
        self._ask(station, "inspect", recipes)

    def give(self, station: Station, order: Order, packs: list[Any], kind: Hashable) -> None:
        """Let a worker train."""
        station.order, station.kind = order, kind
        self._ask(station, "work", order, *packs)
        self.ask_news(station)

    def ask_news(self, station: Station, seconds: float = 1.0) -> None:
        """Let a worker tell what happens."""
        station.news = station.actor.news.options(**_CONTROL).remote(seconds)

    def most_on_a_node(self) -> int:
        """How many workers may share the memory of one node."""
        cpus = max(node["Resources"].get("CPU", 0.0) for node in self.cluster.ray.nodes() if node["Alive"])
        return max(1, min(self.size, int(cpus / self.sized["CPU"])))

    def ask_to_stop(self) -> None:
        """All of them, between two steps."""
        for station in self.stations:
            if station.order is not None:
                station.actor.stop.options(**_CONTROL).remote()

    def lose(self, station: Station) -> None:
        """A worker is no more, or no good."""
        if station in self.stations:
            self.stations.remove(station)
        with suppress(Exception):
            self.cluster.ray.kill(station.actor)

    def replace(self, station: Station) -> None:
        """Another one in its place, unless they die as soon as they are started."""
        self.lose(station)
        if not self.is_closing and self.failed_starts < FAILED_STARTS and len(self.stations) < self._enough:
            self.start()

    def dismiss(self) -> None:
        """Send all of them home."""
        ray = self.cluster.ray
        leaving = [station.actor.leave.remote() for station in self.stations if station.is_idle]
        with suppress(Exception):
            ray.wait(leaving, num_returns=len(leaving), timeout=5.0)
        for station in list(self.stations):
            self.lose(station)

    def _ask(self, station: Station, what: str, *told: Any) -> None:
        station.asked = what
        station.waits_for = getattr(station.actor, what).remote(*told)


def check_versions(hello: Hello) -> None:
    """Refuse a worker with other versions than ours."""
    ours = versions()
    if differing := [name for name in ours if hello.versions.get(name) != ours[name]]:
        told = ", ".join(f"{name} {hello.versions.get(name)} instead of {ours[name]}" for name in differing)
        raise SofttargetsError(f"the worker on {hello.node} has {told}; install the same version on both")


def _environment() -> dict[str, Any]:
    """What workers are started with: our own sources, where these are not an installed package."""
    passed = {name: os.environ[name] for name in _PASSED_ON if name in os.environ}
    sources = Path(softtargets.__file__).parents[1]
    if not {"site-packages", "dist-packages"} & set(sources.parts):
        others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
        passed["PYTHONPATH"] = os.pathsep.join(dict.fromkeys([str(sources), *map(os.path.abspath, others)]))
    return {"env_vars": passed}


def why_died(ray: Any, error: BaseException) -> str:
    """Why a worker died, in some words, from what Ray says of it."""
    said = " ".join(str(error).split())
    if isinstance(error, ray.exceptions.OutOfMemoryError) or "running low on memory" in said:
        return "its node ran out of memory"
    if "node has died" in said or "node is dead" in said or "node died" in said:
        return "its node died"
    if "softtargets" in said and "ModuleNotFoundError" in said:
        return (
            "softtargets is not installed there: pip install "
            f"'softtargets[ray]=={softtargets.__version__}' on every node"
        )
    if isinstance(error, ray.exceptions.RuntimeEnvSetupError):
        return f"its environment could not be set up ({said[:200]})"
    return "its process was killed or crashed"
