"""Logits like those of a net: made from a seed, in pieces, on the device where they are needed."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

SEED = 0
PIECE = 1 << 24  # numbers that are drawn at a time
# The label's logit stands out by 0 to EVIDENCE standard deviations of the others, which is right for three examples
# of four if there are 1000 classes. With this sharpness confidence and accuracy are about the same, but not quite.
EVIDENCE, SHARPNESS = 14.0, 2.5


class Examples(NamedTuple):
    """Float32 logits (N, K) and labels (N,)."""

    logits: Tensor
    labels: Tensor

    def first(self, count: int) -> Examples:
        """The first so many."""
        return Examples(self.logits[:count], self.labels[:count])


def made_up(examples: int, classes: int, device: torch.device) -> Examples:
    """The same examples for the same arguments; nothing else of their size is made on the way."""
    generator = torch.Generator(device).manual_seed(SEED)
    labels = torch.randint(classes, (examples,), generator=generator, device=device)
    logits = torch.empty(examples, classes, device=device)
    evidence = EVIDENCE * torch.rand(examples, 1, generator=generator, device=device)
    step = max(1, PIECE // classes)
    for start in range(0, examples, step):
        part = logits[start : start + step]
        part.normal_(generator=generator)
        part.scatter_add_(1, labels[start : start + step, None], evidence[start : start + step])
        part.mul_(SHARPNESS)
    return Examples(logits, labels)
