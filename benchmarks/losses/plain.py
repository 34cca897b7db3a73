"""Plain losses on one thread of a CPU against ``torch.nn.functional.cross_entropy(label_smoothing=)``.

``python benchmarks/losses/plain.py --json benchmarks/losses/cpu/plain.json``: forward and backward in single precision,
mean reduction. The contestants take turns in one process. A ratio is that of the fastest turns, which on a busy machine
are those that nobody disturbed; the median of the ratios of neighbouring turns is written beside it.
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

import torch
from torch import Tensor
from torch.nn import functional as F

from softtargets.losses import LABO, ConfidencePenalty, CrossEntropy, FocalLoss, LabelSmoothing

# Rows, classes, and calls in a turn.
SIZES = ((32, 10, 10), (128, 1000, 4), (512, 32_000, 1))
# At most so many times torch's label smoothing.
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
    """Seconds for a call forward and backward."""
    begin = time.perf_counter()
    for _ in range(calls):
        logits.grad = None
        loss(logits, target).backward()
    return (time.perf_counter() - begin) / calls


def measure(rows: int, classes: int, calls: int, rounds: int) -> dict[str, dict[str, float]]:
    """Each contestant's fastest turn, and its ratio to torch's."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(rows, classes, generator=generator).requires_grad_()
    target = torch.randint(classes, (rows,), generator=generator)
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
    parser.add_argument("--json", type=Path, help="write the results there")
    options = parser.parse_args()
    torch.set_num_threads(1)
    sizes = {}
    line(f"{'':24}" + "".join(f"{f'{rows} x {classes}':>14}" for rows, classes, _ in SIZES))
    for rows, classes, calls in SIZES:
        rounds = options.rounds if classes < 10_000 else max(5, options.rounds // 20)
        sizes[f"{rows} x {classes}"] = measure(rows, classes, calls, rounds)
    for name in CONTESTANTS:
        limit = f"   at most {LIMITS[name]}" if name in LIMITS else ""
        line(f"{name:24}" + "".join(f"{found[name]['ratio']:>14.2f}" for found in sizes.values()) + limit)
    if options.json:
        about = {"torch": torch.__version__, "machine": platform.machine(), "threads": 1, "dtype": "float32"}
        options.json.write_text(json.dumps({"about": about, "sizes": sizes}, indent=2) + "\n")


if __name__ == "__main__":
    main()
