"""How much memory a contestant takes besides its input: counted by the GPU, or by the kernel in a fresh process."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from benchmarks.bench import Contestant
from benchmarks.calibration.contestants import contestant
from benchmarks.calibration.logits import Examples, made_up
from benchmarks.calibration.results import CalibrationCase, Memory
from benchmarks.clocks import peak_memory
from benchmarks.failures import Stated
from benchmarks.resident import CLEAR, resident_peak

WARM_UP = 64  # examples, on which everything that is loaded late is loaded


class Unweighed(Stated):
    """A contestant broke where it was weighed."""


def sizes(examples: int) -> tuple[int, int]:
    """A quarter of the examples, and all: whoever needs memory for each example takes four times as much."""
    return examples // 4, examples


def weigh_on_gpu(run: Contestant, examples: Examples, device: torch.device) -> tuple[Memory, ...]:
    """The peak beyond what was there before, as the allocator of the GPU counts it."""
    found = []
    for count in sizes(len(examples.labels)):
        part = examples.first(count)
        peak = peak_memory(device, lambda part=part: run.call(part))  # type: ignore[misc]
        found += [] if peak is None else [Memory(count, peak)]
    return tuple(found)


def weigh_apart(name: str, case: CalibrationCase, batch: int, threads: int) -> tuple[Memory, ...]:
    """The same on a CPU: the growth of a process that does nothing else, a fresh one for each number of examples.

    What one run leaves to the allocator, the next would reuse and seem to need less. Nothing where the kernel does not
    tell (other than Linux).
    """
    if not CLEAR.exists():
        return ()
    found: list[Memory] = []
    for count in sizes(case.examples):
        if found:
            size = 4 * count * case.classes  # bytes of the logits
            refuse_to_starve(found[-1].peak * count // found[-1].examples + size)
        found.append(Memory(count, _weigh_in_process(name, count, case.classes, batch, threads)))
    return tuple(found)


def _weigh_in_process(name: str, examples: int, classes: int, batch: int, threads: int) -> int:
    asked = json.dumps([name, examples, classes, batch, threads])
    command = [sys.executable, "-W", "ignore", "-m", __name__, asked]
    # This package is not installed: the fresh process finds it where this one did.
    there = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    done = subprocess.run(command, capture_output=True, text=True, env=there, check=False)
    if done.returncode < 0:
        raise Unweighed(f"its process was ended by signal {-done.returncode}: perhaps out of memory")
    if done.returncode:
        raise Unweighed((done.stderr.strip().splitlines() or ["it broke without a word"])[-1])
    return int(done.stdout.splitlines()[-1])


def available() -> float:
    """Bytes that can be had without taking them from others; without end where the kernel does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return math.inf
    return next(
        (1024.0 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")), math.inf
    )


def refuse_to_starve(peak: int) -> None:
    """Raise where so many bytes more would leave nothing for anybody else: the kernel would end some process."""
    if peak > 0.9 * available():
        raise MemoryError(f"needs {peak / 1e9:.1f} GB beyond its input, which are not there")


def weigh_here(name: str, examples: int, classes: int, batch: int, threads: int) -> int:
    """In the fresh process: how many bytes it grows by."""
    torch.set_num_threads(threads)
    cpu = torch.device("cpu")
    given = made_up(examples, classes, cpu)
    run = contestant(name, cpu, batch).call
    run(given.first(WARM_UP))
    return resident_peak(lambda: run(given))


def main(arguments: Sequence[str]) -> None:
    """What `weigh_apart` starts."""
    sys.stdout.write(f"{weigh_here(*json.loads(arguments[0]))}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
