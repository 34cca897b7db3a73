"""Whether contestants compute the same thing: the ECE in float64, and how far from it anybody may be."""

from __future__ import annotations

import math

import torch

from softtargets.bench.calibration.grid import BINS
from softtargets.bench.calibration.limits import OTHERS_WITHIN, OURS_WITHIN
from softtargets.bench.calibration.logits import PIECE, Examples
from softtargets.bench.calibration.results import ALL_OURS


def reference(examples: Examples) -> float:
    """The expected calibration error as the formula has it, in float64: sum of n/N |confidence - accuracy|.

    >>> logits = torch.log(torch.tensor([[0.9, 0.1], [0.9, 0.1]]))
    >>> round(reference(Examples(logits, torch.tensor([0, 0]))), 6)
    0.1
    """
    count, classes = examples.logits.shape
    gaps = torch.zeros(BINS, dtype=torch.float64, device=examples.logits.device)
    step = max(1, PIECE // classes)
    for start in range(0, count, step):
        p = examples.logits[start : start + step].double().softmax(1)
        confidence, top = p.max(1)
        which = (confidence * BINS).long().clamp_(max=BINS - 1)
        right = (top == examples.labels[start : start + step]).double()
        gaps += torch.bincount(which, confidence - right, minlength=BINS)
    return float(gaps.abs().sum()) / count


def complaint(name: str, ece: float, wanted: float) -> str:
    """What is wrong with an ECE, in words; empty where nothing is.

    >>> complaint("netcal", 0.25, 0.2)
    'its ECE is 0.25, in float64 it is 0.2: off by 5.0e-02 (allowed 2e-03)'
    """
    allowed = OURS_WITHIN if name in ALL_OURS else OTHERS_WITHIN
    off = abs(ece - wanted)
    if off <= allowed:
        return ""
    if not math.isfinite(off):
        return f"its ECE is {ece}"
    return f"its ECE is {ece:.7g}, in float64 it is {wanted:.7g}: off by {off:.1e} (allowed {allowed:.0e})"
