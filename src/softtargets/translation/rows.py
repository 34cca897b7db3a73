"""Logits of many tokens a few rows at a time: from logits, or from penultimate states and the output layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

AT_ONCE = 1 << 26  # logits that exist at a time: 256 MiB in single precision

Head = Callable[[Tensor], Tensor]


def rows_of(values: Tensor, labels: Tensor, head: Head | None = None) -> Iterator[tuple[Tensor, Tensor]]:
    """Pieces of logits (n, V) and labels (n,).

    `values` are logits (..., V), or, with a `head` such as the model's last layer, penultimate states (..., D) of which
    the head makes logits: then never more than 2^26 of them exist, whatever the batch. `labels` are (...).

    >>> pieces = rows_of(torch.zeros(2, 3, 5), torch.zeros(2, 3, dtype=torch.int64))
    >>> [(tuple(z.shape), tuple(y.shape)) for z, y in pieces]
    [((6, 5), (6,))]
    """
    if values.ndim < 2 or values.shape[:-1] != labels.shape or labels.numel() == 0:
        kind = "logits (..., vocabulary)" if head is None else "states (..., width)"
        raise ValueError(
            f"need {kind} and labels (...), at least one token, not {tuple(values.shape)} and {tuple(labels.shape)}"
        )
    flat, y = values.detach().reshape(-1, values.shape[-1]), labels.detach().reshape(-1).to(values.device)
    if head is None:
        yield from _cut(flat, y)
        return
    step = max(1, AT_ONCE // max(1, _outputs(head, flat)))
    with torch.no_grad():
        for start in range(0, len(flat), step):
            yield head(flat[start : start + step]), y[start : start + step]


def divided(head: Head, temperature: float) -> Head:
    """A head whose logits are divided by a temperature.

    >>> divided(lambda states: 2 * states, 4.0)(torch.ones(2))
    tensor([0.5000, 0.5000])
    """
    return head if temperature == 1 else lambda states: head(states) / temperature


def _cut(logits: Tensor, labels: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    step = max(1, AT_ONCE // logits.shape[1])
    yield from zip(logits.split(step), labels.split(step), strict=True)


def _outputs(head: Head, states: Tensor) -> int:
    known = getattr(head, "out_features", None)
    if isinstance(known, int):
        return known
    with torch.no_grad():
        return int(head(states[:1]).shape[-1])
