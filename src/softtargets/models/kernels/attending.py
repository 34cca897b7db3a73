"""From tensors to launches: attention over short sentences and its gradient."""

from __future__ import annotations

from functools import lru_cache
from math import sqrt
from typing import Any, NamedTuple

import torch
from torch import Tensor

from softtargets.models.kernels.attention import attention_gradient_kernel, attention_kernel
from softtargets.models.kernels.launch import on_device, power_of_2


class Parts(NamedTuple):
    """What attention reads, or its gradients: (sentences, places, heads * d) each, keys and values lying alike."""

    queries: Tensor
    keys: Tensor
    values: Tensor

    @classmethod
    def of(cls, projected: Tensor) -> Parts:
        """Of (sentences, places, 3 * heads * d), where each place has a query, a key and a value."""
        return cls(*projected.chunk(3, -1))

    @classmethod
    def of_two(cls, queries: Tensor, remembered: Tensor) -> Parts:
        """Of queries and, for another sentence, keys and values side by side, (sentences, places, 2 * heads * d)."""
        return cls(queries, *remembered.chunk(2, -1))

    def apart(self) -> tuple[int, ...]:
        """How far sentences and places of queries, and those of keys and values, lie apart in memory."""
        return *self.queries.stride()[:2], *self.keys.stride()[:2]


class Blocks(NamedTuple):
    """How the work for one head of one sentence is cut up."""

    queries: int  # at a time
    keys: int  # all of them
    warps: int


# What the assembler has registers for; a program of four warps at most where it keeps no sums.
@lru_cache(maxsize=1024)
def blocks(queries: int, keys: int, size: int, itemsize: int, backwards: bool) -> Blocks:
    """For so many queries and keys, with heads of `size` numbers of so many bytes."""
    wide = max(16, power_of_2(keys))
    at_once = 16 if itemsize > 2 else 32 if backwards and wide > 64 else 64
    tall = max(16, min(at_once, power_of_2(queries)))
    most = 8 if backwards or itemsize > 2 else 4
    warps = max(tall, wide) * max(size, 64) * itemsize // 2048
    return Blocks(tall, wide, max(1, min(most, warps)))


def attend(parts: Parts, seen: Tensor | None, heads: int, causal: bool) -> Tensor:
    """softmax(Q K^T / sqrt(d)) V of every head, (sentences, queries, heads * d), dense.

    Where `seen` (sentences, 1, 1, keys) is False keys are not looked at; `causal`: none after the query's own place.
    """
    results = parts.queries.new_empty(parts.queries.shape)
    seen = _dense(seen)
    chosen, numbers = _numbers(parts, heads, causal, backwards=False)
    sentences, count, _ = results.shape
    with on_device(results):
        attention_kernel[(sentences * heads, -(-count // chosen.queries))](
            *parts,
            seen,
            results,
            count,
            parts.keys.shape[1],
            heads,
            *parts.apart(),
            0 if seen is None else seen.stride(0),
            **numbers,
        )
    return results


def gradients_of_attention(
    upstream: Tensor, parts: Parts, seen: Tensor | None, heads: int, causal: bool, into: Parts
) -> None:
    """Write the gradients with respect to queries, keys and values `into` tensors."""
    seen, upstream = _dense(seen), readable(upstream)
    chosen, numbers = _numbers(parts, heads, causal, backwards=True)
    sentences, count, _ = parts.queries.shape
    with on_device(upstream):
        attention_gradient_kernel[(sentences * heads,)](
            *parts,
            seen,
            upstream,
            *into,
            count,
            parts.keys.shape[1],
            heads,
            *parts.apart(),
            0 if seen is None else seen.stride(0),
            *upstream.stride()[:2],
            *into.apart(),
            ONCE=count <= chosen.queries,
            **numbers,
        )


def readable(values: Tensor) -> Tensor:
    """As it is, if the numbers of a place lie side by side; else a copy."""
    return values if values.stride(-1) == 1 else values.contiguous()


def _dense(seen: Tensor | None) -> Tensor | None:
    """(sentences, keys), with those of a sentence side by side."""
    return None if seen is None else readable(seen.flatten(1))


def _numbers(parts: Parts, heads: int, causal: bool, backwards: bool) -> tuple[Blocks, dict[str, Any]]:
    """What both kernels are told and compiled for."""
    size, itemsize = parts.queries.shape[-1] // heads, parts.queries.element_size()
    chosen = blocks(parts.queries.shape[1], parts.keys.shape[1], size, itemsize, backwards)
    return chosen, {
        "scale": 1 / sqrt(size),
        "D": size,
        "QUERIES": chosen.queries,
        "KEYS": chosen.keys,
        "CAUSAL": causal,
        "PRECISION": "ieee" if parts.queries.dtype == torch.float32 else "tf32",
        "num_warps": chosen.warps,
        "num_stages": 1,  # nothing is read ahead
    }
