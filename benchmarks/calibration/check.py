"""Whether contestants compute the same thing: the ECE in float64, and how far from it anybody may be."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.calibration.grid import BINS
from benchmarks.calibration.logits import PIECE, Examples
from benchmarks.calibration.results import ALL_OURS, OTHERS_WITHIN, OURS_WITHIN


class Reference(NamedTuple):
    """The ECE in float64, and by how much it may move because of examples at the edge of a bin.

    Single precision puts a few of a million examples on the other side of an edge. Each takes its residual, at most 1,
    from one bin to the next, so it moves the ECE by at most 2/N.
    """

    ece: float
    rounding: float


def reference(examples: Examples) -> Reference:
    """The expected calibration error as the formula has it, in float64: sum of n/N |confidence - accuracy|.

    >>> logits = torch.log(torch.tensor([[0.9, 0.1], [0.9, 0.1]]))
    >>> found = reference(Examples(logits, torch.tensor([0, 0])))
    >>> round(found.ece, 6), found.rounding
    (0.1, 0.0)
    """
    count, classes = examples.logits.shape
    gaps = torch.zeros(BINS, dtype=torch.float64, device=examples.logits.device)
    moved = 0
    step = max(1, PIECE // classes)
    for start in range(0, count, step):
        logits = examples.logits[start : start + step]
        confidence, top = logits.double().softmax(1).max(1)
        which = _bin(confidence)
        right = (top == examples.labels[start : start + step]).double()
        gaps += torch.bincount(which, confidence - right, minlength=BINS)
        moved += int((_bin(logits.softmax(1).amax(1).double()) != which).sum())
    return Reference(float(gaps.abs().sum()) / count, 2 * moved / count)


def _bin(confidence: Tensor) -> Tensor:
    return (confidence * BINS).long().clamp_(max=BINS - 1)


def complaint(name: str, ece: float, wanted: Reference) -> str:
    """What is wrong with an ECE, in words; empty where nothing is.

    >>> complaint("netcal", 0.25, Reference(0.2, 0.0))
    'its ECE is 0.25, in float64 it is 0.2: off by 5.0e-02 (allowed 2.0e-03)'
    """
    allowed = (OURS_WITHIN if name in ALL_OURS else OTHERS_WITHIN) + wanted.rounding
    off = abs(ece - wanted.ece)
    if off <= allowed:
        return ""
    if not math.isfinite(off):
        return f"its ECE is {ece}"
    return (
        f"its ECE is {ece:.7g}, in float64 it is {wanted.ece:.7g}: off by {off:.1e} (allowed {allowed:.1e})"
    )
