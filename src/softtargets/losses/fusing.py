"""The seam between losses and kernels: what a kernel must know, and when one is used."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from softtargets.losses.batch import Batch


class Rule(NamedTuple):
    """How a kernel computes a loss from a row of logits.

    `numbers` are the hyper-parameters of that kind of rule, each a number, a tensor with one value, or one per row.
    """

    kind: str
    numbers: tuple[float | Tensor, ...]
    table: Tensor | None = None
    teacher: Tensor | None = None


def fused_loss(batch: Batch, rule: Rule, weight: Tensor | None, reduction: str) -> Tensor | None:
    """The loss by a kernel, or None where plain PyTorch must do it."""
    return None
