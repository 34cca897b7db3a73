"""Whether contestants compute the same thing, and how far each is from float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

# How far loss (relative) and gradient (relative to the largest of its row) may lie apart. What each really is off
# by is recorded; this only tells a rounding from a mistake.
TOLERANCE = {"bf16": 5e-2, "fp16": 2e-2, "fp32": 1e-4}
SAMPLED_ROWS = 16
# Values that fit into one float64 block of the reference.
BLOCK = 1 << 26


class Outcome(NamedTuple):
    """A loss, and the gradient of a few rows in float64."""

    loss: float
    gradient: Tensor


class Errors(NamedTuple):
    """Of the loss relative to it, and of the gradient relative to the largest of its row."""

    loss: float
    gradient: float

    def beyond(self, tolerance: float, whose: str) -> str:
        """What is wrong, in words; empty where nothing is."""
        for name, error in zip(("loss", "gradient"), self, strict=True):
            if not error <= tolerance:  # NaN too
                if not math.isfinite(error):
                    return f"its {name} is not finite"
                return f"its {name} differs from {whose} by {error:.1e} (allowed {tolerance:.0e})"
        return ""


def sampled(rows: int, device: torch.device) -> Tensor:
    """Which rows are looked at: a few from the first to the last."""
    count = min(rows, SAMPLED_ROWS)
    return torch.tensor([index * (rows - 1) // max(count - 1, 1) for index in range(count)], device=device)


def compare(found: Outcome, wanted: Outcome, smallest: float = 0.0) -> Errors:
    """How far one outcome is from another; `smallest` is a step of the precision that is nobody's fault."""
    scale = wanted.gradient.abs().amax(-1).clamp_min(torch.finfo(torch.float64).tiny)
    off = ((found.gradient - wanted.gradient).abs() - smallest).clamp_min(0).amax(-1) / scale
    return Errors(abs(found.loss - wanted.loss) / max(abs(wanted.loss), 1e-3), float(off.max()))


def worst(found: Sequence[Outcome], wanted: Sequence[Outcome], smallest: float = 0.0) -> Errors:
    """The largest errors of several; NaN where one is."""
    errors = [compare(one, other, smallest) for one, other in zip(found, wanted, strict=True)]
    return Errors(
        *(max(column, key=lambda error: (math.isnan(error), error)) for column in zip(*errors, strict=True))
    )


def reference(
    textbook: Callable[..., Tensor],
    logits: Tensor,
    target: Tensor,
    given: Tensor | None,
    given_per_row: bool,
) -> Outcome:
    """The loss of all rows and the gradient of a few, in float64 and in blocks.

    Rows do not influence each other and the loss is their mean, so blocks and single rows give the same.
    """
    rows = logits.shape[0]
    if given is not None and not given_per_row:
        given = given.double()

    def extras(which: Tensor | slice) -> list[Tensor]:
        if given is None:
            return []
        return [given[which].double() if given_per_row else given]

    total = 0.0
    step = max(1, BLOCK // logits.shape[1])
    with torch.no_grad():
        for start in range(0, rows, step):
            part = slice(start, start + step)
            block = logits[part].double()
            total += float(textbook(block, target[part], *extras(part))) * len(block)
    chosen = sampled(rows, logits.device)
    few = logits[chosen].detach().double().requires_grad_()
    textbook(few, target[chosen], *extras(chosen)).backward()
    assert few.grad is not None
    return Outcome(total / rows, few.grad * (len(chosen) / rows))
