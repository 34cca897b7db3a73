"""How long steps take, and the kernels that they consist of, from a trace of torch's profiler."""

from __future__ import annotations

import json
import re
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from benchmarks.kernels.packs import step_within_an_epoch, wait_for
from softtargets.exceptions import SofttargetsError
from softtargets.training.pack import Fleet, Pack

# Of events in a trace: what a GPU does.
_ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")


@dataclass(frozen=True)
class Speed:
    """Images or tokens per second of all runs together, and seconds of a step of all of them."""

    units_per_second: float
    step_seconds: float


@dataclass(frozen=True)
class Kernel:
    """All launches of one name in a step on average: their microseconds, and how many they are."""

    name: str
    microseconds: float
    launches: float

    @property
    def each(self) -> float:
        """Microseconds of a launch."""
        return self.microseconds / self.launches


@dataclass(frozen=True)
class Profile:
    """An average step: microseconds by the clock, and its kernels, those with the most time first.

    On a GPU that is from the beginning of the first kernel to the end of the last. On several streams kernels overlap.
    """

    wall: float
    kernels: tuple[Kernel, ...]

    @property
    def busy(self) -> float:
        """Microseconds of all kernels."""
        return sum(kernel.microseconds for kernel in self.kernels)

    @property
    def launches(self) -> float:
        """How many kernels."""
        return sum(kernel.launches for kernel in self.kernels)


def timed(pack: Pack | Fleet, steps: int, device: torch.device) -> Speed:
    """So many steps by the clock."""
    step_within_an_epoch(pack, steps)
    wait_for(device)
    units, began = _units(pack), time.perf_counter()
    for _ in range(steps):
        pack.advance()
    wait_for(device)
    seconds = time.perf_counter() - began
    return Speed((_units(pack) - units) / seconds, seconds / steps)


def _units(pack: Pack | Fleet) -> int:
    return sum(slot.units for slot in pack.slots)


def profiled(pack: Pack | Fleet, steps: int, device: torch.device) -> Profile:
    """So many further steps under the profiler; on a CPU torch's operators, without those that each of them calls."""
    step_within_an_epoch(pack, steps)
    wait_for(device)
    on_gpu = device.type == "cuda"
    with profile(activities=[ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU]) as profiler:
        began = time.perf_counter()
        for _ in range(steps):
            pack.advance()
        wait_for(device)
        microseconds = 1e6 * (time.perf_counter() - began)
    if not on_gpu:
        found = {each.key: (each.self_cpu_time_total, each.count) for each in profiler.key_averages()}
        return _average(found, microseconds, steps)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "trace.json"
        profiler.export_chrome_trace(str(path))
        return from_trace(json.loads(path.read_text(encoding="utf-8", errors="replace")), steps)


def from_trace(trace: Mapping[str, Any], steps: int) -> Profile:
    """What the profiler wrote of so many steps on a GPU.

    >>> step = [{"cat": "kernel", "name": name, "ts": begin, "dur": 4.0} for name, begin in (("a", 0.0), ("b", 6.0))]
    >>> from_trace({"traceEvents": step}, 1)
    Profile(wall=10.0, kernels=(Kernel(name='a', microseconds=4.0, launches=1.0),
    Kernel(name='b', microseconds=4.0, launches=1.0)))
    """
    events = [event for event in trace["traceEvents"] if event.get("cat") in _ON_GPU and "dur" in event]
    if not events:
        raise SofttargetsError("the profiler saw no kernels: another program may be using the GPU's counters")
    found: dict[str, tuple[float, int]] = {}
    for event in events:
        sum_, count = found.get(event["name"], (0.0, 0))
        found[event["name"]] = sum_ + event["dur"], count + 1
    end = max(event["ts"] + event["dur"] for event in events)
    return _average(found, end - min(event["ts"] for event in events), steps)


def _average(found: Mapping[str, tuple[float, int]], wall: float, steps: int) -> Profile:
    kernels = [Kernel(name, sum_ / steps, count / steps) for name, (sum_, count) in found.items()]
    return Profile(wall / steps, tuple(sorted(kernels, key=lambda kernel: -kernel.microseconds)))


def short(name: str, width: int = 90) -> str:
    """The name of a kernel without what says little: types of parameters, namespaces, and the middle of what is long.

    >>> short("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>, std::array<char*, 1ul> >"
    ...       "(int, at::native::FillFunctor<int>, std::array<char*, 1ul>)")
    'vectorized_elementwise_kernel<4, FillFunctor<int>, array<char*, 1ul>>'
    >>> short("void (anonymous namespace)::softmax<(int)8>(float*, int)"), short("triton_poi_fused_add_0")
    ('softmax<8>', 'triton_poi_fused_add_0')
    >>> short("triton_red_fused_" + "add_" * 30 + "7", 40)
    'triton_red_fused_add_add_a…add_add_add_7'
    """
    name = name.removeprefix("void ").replace("(anonymous namespace)::", "")
    while name != (without := re.sub(r"\([^()]*\)", "", name)):
        name = without
    name = re.sub(r"( const)?::\{lambda[^{}]*\}(::operator)?", "", name)
    name = re.sub(r"\b(\w+::)+", "", name).replace(" >", ">").strip()
    if len(name) <= width:
        return name
    # What tells kernels apart is often at the end: sizes of tiles, numbers of compiled functions.
    end = width // 3
    return f"{name[: width - end - 1]}…{name[-end:]}"
