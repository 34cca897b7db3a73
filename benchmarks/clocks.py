"""Clocks: how long one thing takes, and how to compare several fairly."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from statistics import quantiles

import torch

from benchmarks.failures import explain
from benchmarks.results import Timing
from softtargets.exceptions import SofttargetsError

FEWEST, MOST = 7, 2000
WARM_UP = 3
# A kernel that spins keeps the GPU busy while the host queues what is to be timed; never for longer than this.
LONGEST_HEAD_START = 5e-3
SPINS_PER_SECOND = 2e9


@dataclass
class Timed:
    """Something to time. `prepare` comes before each repetition and is not timed."""

    run: Callable[[], object]
    prepare: Callable[[], object] = lambda: None
    # How long the host takes to queue it; known after the warm-up.
    host: float = field(default=0.0, compare=False)


class WallClock:
    """The host's clock, until the device is done too."""

    def __init__(
        self,
        device: torch.device,
        warm_up: int = WARM_UP,
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.device, self.now, self._warm_up = device, now, warm_up

    def warm_up(self, timed: Timed) -> None:
        """Run it until compilers, caches and clocks have settled, which also tells how long the host needs."""
        queued = []
        for _ in range(self._warm_up):
            timed.prepare()
            self.finish()
            begun = time.perf_counter()
            timed.run()
            queued.append(time.perf_counter() - begun)
        self.finish()
        timed.host = min(queued)

    def sample(self, timed: Timed) -> float:
        """The seconds of one repetition, with nothing queued before or after."""
        timed.prepare()
        return self.series(timed, 1)

    def series(self, timed: Timed, count: int) -> float:
        """The seconds of so many repetitions, one after the other."""
        self.finish()
        begun = self.now()
        for _ in range(count):
            timed.run()
        self.finish()
        return self.now() - begun

    def finish(self) -> None:
        """Wait until the device has done everything it was given."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


class EventClock(WallClock):
    """Events on a CUDA stream: the time the device itself needs.

    Before each repetition the L2 cache is filled with something else. Then the device is kept busy for a moment,
    so that the host has queued everything before the first event is reached and its slowness is not measured;
    `back_to_back` measures that. Whoever waits for the device midway pays for the wait, as it would anywhere.
    """

    def __init__(self, device: torch.device) -> None:
        super().__init__(device)
        cache = getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 0)
        self._scratch = torch.empty(max(4 * cache, 1 << 27), dtype=torch.uint8, device=device)
        self._spin: Callable[[int], None] | None = getattr(torch.cuda, "_sleep", None)

    def sample(self, timed: Timed) -> float:
        """One repetition between two events."""
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        timed.prepare()
        self._scratch.zero_()
        if self._spin is not None:
            self._spin(int(SPINS_PER_SECOND * min(2 * timed.host, LONGEST_HEAD_START)))
        start.record()
        timed.run()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / 1e3


def clock_for(device: torch.device) -> WallClock:
    """Events on a GPU, the clock on the wall elsewhere."""
    return EventClock(device) if device.type == "cuda" else WallClock(device)


def summarise(samples: Sequence[float]) -> Timing:
    """Median and quartiles.

    >>> summarise([3.0, 1.0, 2.0])
    Timing(median=2.0, low=1.5, high=2.5, repetitions=3)
    """
    if len(samples) < 2:
        return Timing(samples[0], samples[0], samples[0], len(samples))
    low, middle, high = quantiles(samples, n=4, method="inclusive")
    return Timing(middle, low, high, len(samples))


def interleave(
    clock: WallClock,
    everybody: Mapping[str, Timed],
    seconds: float,
    *,
    fewest: int = FEWEST,
    most: int = MOST,
) -> tuple[dict[str, Timing], dict[str, str]]:
    """Time all in turns, so that a drift of the machine meets all alike: timings, and why others broke.

    Each gets `seconds`, preparation included, but at least `fewest` repetitions and at most `most`.
    """
    samples: dict[str, list[float]] = {name: [] for name in everybody}
    spent = dict.fromkeys(everybody, 0.0)
    broken: dict[str, str] = {}

    def sample(name: str) -> bool:
        """Whether another one is wanted."""
        begun = clock.now()
        samples[name].append(clock.sample(everybody[name]))
        spent[name] += clock.now() - begun
        count = len(samples[name])
        return count < fewest or (spent[name] < seconds and count < most)

    def attempt(name: str, action: Callable[[], object]) -> bool:
        try:
            return action() is not False
        except Exception as error:
            broken[name] = explain(error)
            return False

    with _without_collector():
        going = [name for name, timed in everybody.items() if attempt(name, partial(clock.warm_up, timed))]
        while going:
            going.reverse()  # nobody always comes after the same neighbour
            going = [name for name in going if attempt(name, partial(sample, name))]
    return {name: summarise(samples[name]) for name in everybody if name not in broken}, broken


def back_to_back(clock: WallClock, timed: Timed, seconds: float, *, most: int = MOST) -> float:
    """Seconds per call when calls follow each other without waiting; the best of three series."""

    def series(count: int) -> float:
        timed.prepare()
        return clock.series(timed, count) / count

    count = int(min(max(seconds / 3 / max(series(1), 1e-9), 2), most))
    with _without_collector():
        return min(series(count) for _ in range(3))


def whole(run: Callable[[], object], seconds: float, clock: WallClock) -> tuple[int, float]:
    """Repeat something long, as a whole, until `seconds` have passed: how often, and how long that took."""
    clock.finish()
    begun = clock.now()
    count = 0
    while count == 0 or clock.now() - begun < seconds:
        run()
        count += 1
    clock.finish()
    return count, clock.now() - begun


def copy_rate(clock: WallClock, seconds: float = 0.3) -> float:
    """Bytes per second, read and written, of a large copy inside the device's memory."""
    device, size = clock.device, 1 << 26
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        size = min(1 << 31, free // 8)
    # Random, because some memories are faster with zeros; repeated, because drawing it all would take longer.
    source = torch.randn(1 << 16, device=device).repeat(size // (4 << 16))
    copied = torch.empty_like(source)
    timings, broken = interleave(clock, {"copy": Timed(lambda: copied.copy_(source))}, seconds)
    for reason in broken.values():
        raise SofttargetsError(f"cannot measure how fast {device} copies memory: {reason}")
    return 2 * source.nbytes / timings["copy"].median


def peak_memory(device: torch.device, run: Callable[[], object]) -> int | None:
    """The most bytes a GPU held during a call beyond those held before; None on a CPU, where nobody counts."""
    if device.type != "cuda":
        return None
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    run()
    torch.cuda.synchronize(device)
    return int(torch.cuda.max_memory_allocated(device) - before)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Python's garbage collector must not choose one contestant's turn to run in."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
