"""Clocks: how long one thing takes, and how to compare several fairly."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import quantiles
from typing import Protocol

import torch

from softtargets.bench.failing import explain
from softtargets.bench.measurement import Timing
from softtargets.exceptions import SofttargetsError

FEWEST, MOST = 7, 2000
WARM_UP = 3
# A kernel that spins keeps the GPU busy while the host queues what is to be timed; never for longer than this.
LONGEST_HEAD_START = 5e-3
SPINS_PER_SECOND = 2e9


def _nothing() -> None:
    return


@dataclass
class Task:
    """Something to time. `prepare` comes before each repetition and is not timed."""

    run: Callable[[], object]
    prepare: Callable[[], None] = _nothing
    # How long the host takes to queue it; known after the warm-up.
    host: float = field(default=0.0, compare=False)


class Timer(Protocol):
    """One way to time a task."""

    def warm_up(self, task: Task) -> None:
        """Run it until compilers, caches and clocks have settled."""

    def sample(self, task: Task) -> float:
        """The seconds of one repetition."""

    def finish(self) -> None:
        """Wait until everything queued is done."""


class WallTimer:
    """The host's clock, for work that is done when the call returns."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock

    def warm_up(self, task: Task) -> None:
        """A few repetitions."""
        for _ in range(WARM_UP):
            task.prepare()
            task.run()

    def sample(self, task: Task) -> float:
        """One repetition between two looks at the clock."""
        task.prepare()
        begun = self._clock()
        task.run()
        return self._clock() - begun

    def finish(self) -> None:
        """Nothing is ever queued."""


class EventTimer:
    """Events on a CUDA stream: the time the device itself needs.

    Before each repetition the L2 cache is filled with something else. Then the device is kept busy for a moment,
    so that the host has queued the whole task before the first event is reached and its slowness is not measured;
    `back_to_back` measures that. A task that waits for the device midway pays for the wait, as it would anywhere.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        cache = getattr(torch.cuda.get_device_properties(device), "L2_cache_size", 0)
        self._scratch = torch.empty(max(4 * cache, 1 << 27), dtype=torch.uint8, device=device)
        self._spin: Callable[[int], None] | None = getattr(torch.cuda, "_sleep", None)

    def warm_up(self, task: Task) -> None:
        """A few repetitions, which also tell how long the host needs."""
        queued = []
        for _ in range(WARM_UP):
            task.prepare()
            self.finish()
            begun = time.perf_counter()
            task.run()
            queued.append(time.perf_counter() - begun)
        self.finish()
        task.host = min(queued)

    def sample(self, task: Task) -> float:
        """One repetition between two events."""
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        task.prepare()
        self._scratch.zero_()
        if self._spin is not None:
            self._spin(int(SPINS_PER_SECOND * min(2 * task.host, LONGEST_HEAD_START)))
        start.record()
        task.run()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / 1e3

    def finish(self) -> None:
        """Wait for the device."""
        torch.cuda.synchronize(self._device)


def timer_for(device: torch.device) -> Timer:
    """Events on a GPU, the clock on the wall elsewhere."""
    return EventTimer(device) if device.type == "cuda" else WallTimer()


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
    timer: Timer,
    tasks: Mapping[str, Task],
    seconds: float,
    *,
    clock: Callable[[], float] = time.perf_counter,
    fewest: int = FEWEST,
    most: int = MOST,
) -> tuple[dict[str, Timing], dict[str, str]]:
    """Time all tasks in turns, so that a drift of the machine meets all alike: timings, and why others broke.

    Each task gets `seconds`, preparation included, but at least `fewest` repetitions and at most `most`.
    """
    samples: dict[str, list[float]] = {name: [] for name in tasks}
    spent = dict.fromkeys(tasks, 0.0)
    broken: dict[str, str] = {}
    warm: set[str] = set()
    going = list(tasks)
    with _without_collector():
        while going:
            for name in list(going):
                task = tasks[name]
                try:
                    if name not in warm:
                        timer.warm_up(task)
                        warm.add(name)
                        continue
                    begun = clock()
                    samples[name].append(timer.sample(task))
                    spent[name] += clock() - begun
                except Exception as error:
                    broken[name] = explain(error)
                    going.remove(name)
                    continue
                count = len(samples[name])
                if count >= fewest and (spent[name] >= seconds or count >= most):
                    going.remove(name)
            going.reverse()  # nobody always comes after the same neighbour
    return {name: summarise(samples[name]) for name in tasks if name not in broken}, broken


def back_to_back(
    timer: Timer,
    task: Task,
    seconds: float,
    *,
    clock: Callable[[], float] = time.perf_counter,
    most: int = MOST,
) -> float:
    """Seconds per call when calls follow each other without waiting; the best of three series."""
    task.prepare()
    timer.finish()
    begun = clock()
    task.run()
    timer.finish()
    count = int(min(max(seconds / 3 / max(clock() - begun, 1e-9), 2), most))
    series = []
    with _without_collector():
        for _ in range(3):
            task.prepare()
            timer.finish()
            begun = clock()
            for _ in range(count):
                task.run()
            timer.finish()
            series.append((clock() - begun) / count)
    return min(series)


def whole(
    run: Callable[[], object],
    seconds: float,
    device: torch.device,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[int, float]:
    """Repeat something long, as a whole, until `seconds` have passed: how often, and how long that took."""
    wait_for(device)
    begun = clock()
    count = 0
    while count == 0 or clock() - begun < seconds:
        run()
        count += 1
    wait_for(device)
    return count, clock() - begun


def wait_for(device: torch.device) -> None:
    """Wait until the device has done everything it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def copy_rate(timer: Timer, device: torch.device, seconds: float = 0.3) -> float:
    """Bytes per second, read and written, of a large copy inside the device's memory."""
    size = 1 << 26
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        size = min(1 << 31, free // 8)
    # Random, because some memories are faster with zeros; repeated, because drawing it all would take longer.
    source = torch.randn(1 << 16, device=device).repeat(size // (4 << 16))
    copied = torch.empty_like(source)

    def copy() -> None:
        copied.copy_(source)

    timings, broken = interleave(timer, {"copy": Task(copy)}, seconds)
    for reason in broken.values():
        raise SofttargetsError(f"cannot measure how fast {device} copies memory: {reason}")
    return 2 * source.numel() * source.element_size() / timings["copy"].median


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
