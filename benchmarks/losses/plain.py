"""What a call of a loss costs the host, against ``torch.nn.functional.cross_entropy(label_smoothing=)``.

``python -m benchmarks.losses.plain --json benchmarks/losses/cpu/plain.json``: forward and backward, mean reduction,
on one thread of a CPU. With ``--device cuda`` a turn ends when the last kernel is launched, not when it is done: that
is the time that decides for small batches. The contestants take turns in one process. A ratio is that of the fastest
turns, which on a busy machine are those that nobody disturbed; the median of the ratios of neighbouring turns is
written beside it.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from softtargets.losses import LABO, ConfidencePenalty, CrossEntropy, FocalLoss, LabelSmoothing

# Rows, classes, and calls in a turn. On a GPU none so large that kernels take longer than launching them.
SIZES = {
    "cpu": ((32, 10, 10), (128, 1000, 4), (512, 32_000, 1)),
    "cuda": ((32, 10, 20), (128, 1000, 20), (256, 10_000, 20)),
}
# At most so many times torch's label smoothing, on a CPU.
LIMITS = {"LabelSmoothing": 1.1, "LABO": 1.5, "ConfidencePenalty": 1.5}


def torchs(logits: Tensor, target: Tensor) -> Tensor:
    """What all are compared with."""
    return F.cross_entropy(logits, target, label_smoothing=0.1)


CONTESTANTS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "torch": torchs,
    "LabelSmoothing": LabelSmoothing(0.1),
    "LabelSmoothing, others": LabelSmoothing(0.1, "others"),
    "ConfidencePenalty": ConfidencePenalty(0.1),
    "LABO": LABO(),
    "FocalLoss": FocalLoss(),
    "CrossEntropy": CrossEntropy(),
}


def line(text: str) -> None:
    """Show a line."""
    sys.stdout.write(text + "\n")


def turn(loss: Callable[[Tensor, Tensor], Tensor], logits: Tensor, target: Tensor, calls: int) -> float:
    """Seconds of the host for a call forward and backward."""
    if logits.is_cuda:
        torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(calls):
        logits.grad = None
        loss(logits, target).backward()
    return (time.perf_counter() - begin) / calls


def measure(size: tuple[int, int, int], where: dict[str, Any], rounds: int) -> dict[str, dict[str, float]]:
    """Each contestant's fastest turn, and its ratio to torch's."""
    rows, classes, calls = size
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(rows, classes, generator=generator).to(**where).requires_grad_()
    target = torch.randint(classes, (rows,), generator=generator).to(where["device"])
    for loss in CONTESTANTS.values():
        turn(loss, logits, target, calls)
    times: dict[str, list[float]] = {name: [] for name in CONTESTANTS}
    for _ in range(rounds):
        for name, loss in CONTESTANTS.items():
            times[name].append(turn(loss, logits, target, calls))
    return {
        name: {
            "fastest_seconds": min(found),
            "ratio": min(found) / min(times["torch"]),
            "median_ratio": statistics.median(a / b for a, b in zip(found, times["torch"], strict=True)),
        }
        for name, found in times.items()
    }


def main() -> None:
    """Measure, show and, if asked to, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--rounds", type=int, default=200, help="turns of each contestant (a twentieth for the largest size)"
    )
    parser.add_argument("--device", choices=tuple(SIZES), default="cpu", help="where the logits are")
    parser.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32", help="of the logits")
    parser.add_argument("--json", type=Path, help="write the results there")
    options = parser.parse_args()
    torch.set_num_threads(1)
    where = {"device": options.device, "dtype": getattr(torch, options.dtype)}
    sizes = {}
    line(f"{'':24}" + "".join(f"{f'{rows} x {classes}':>14}" for rows, classes, _ in SIZES[options.device]))
    for size in SIZES[options.device]:
        rounds = max(5, options.rounds // 20) if size[1] > 10_000 else options.rounds
        sizes[f"{size[0]} x {size[1]}"] = measure(size, where, rounds)
    for name in CONTESTANTS:
        limit = f"   at most {LIMITS[name]}" if name in LIMITS and options.device == "cpu" else ""
        line(f"{name:24}" + "".join(f"{found[name]['ratio']:>14.2f}" for found in sizes.values()) + limit)
    if options.json:
        machine = platform.machine() if options.device == "cpu" else torch.cuda.get_device_name()
        about = {"torch": torch.__version__, "machine": machine, "threads": 1, "dtype": options.dtype}
        options.json.write_text(json.dumps({"about": about, "sizes": sizes}, indent=2) + "\n")


if __name__ == "__main__":
    main()
