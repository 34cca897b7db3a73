"""Sources of a batch read by kernels, without padding, into what a search keeps of them: one copy, one recording."""

from __future__ import annotations

from math import sqrt
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from softtargets.models import Cache, Transformer, sinusoids
from softtargets.translation.beam import Beams
from softtargets.translation.kernel_step import Weights, add, norms_of, power_of_2, warps_for
from softtargets.translation.sources import Numbers, Packed
from softtargets.translation.symbols import EOS

# Queries that one program of attention has, and keys that it looks at at a time.
_QUERIES, _KEYS = 16, 32


def room(model: Transformer, dtype: torch.dtype, inputs: int, length: int, beam: int, capacity: int) -> Cache:
    """What `Transformer.start` makes, before anything is read."""
    weight = model.head.weight
    layers = cast("list[Any]", model.decoder)
    heads = layers[0].cross.heads
    size = weight.shape[1] // heads

    def made(*sizes: int) -> list[Tensor]:
        return [torch.zeros(sizes, dtype=dtype, device=weight.device) for _ in layers]

    def flags(*sizes: int) -> Tensor:
        return torch.zeros(sizes, dtype=torch.bool, device=weight.device)

    own, source = (inputs, heads, capacity, beam, size), (inputs, heads, length, size)
    return Cache(
        keys=made(*own),
        values=made(*own),
        source_keys=made(*source),
        source_values=made(*source),
        seen=flags(inputs, 1, 1, length),
        line=flags(inputs, beam, capacity, beam),
        place=torch.zeros(1, dtype=torch.int64, device=weight.device),
    )


class KernelReading:
    """The beginning of a search for one kind of batch: `put` brings sources there, `read` makes all ready for a step.

    `Transformer.encode` and `Transformer.start`, up to rounding; sums stay in single precision and are normed at once.
    """

    def __init__(self, model: Transformer, weights: Weights, cache: Cache, beams: Beams) -> None:
        self._model, self._weights, self._cache, self._beams = model, weights, cache, beams
        inputs, _, _, self._length = cache.seen.shape
        device = cache.seen.device
        most = 3 * inputs + 2 * rounded(inputs * self._length)
        # Sources, and limits with them, travel in one piece, which the device fetches by itself.
        self._host = torch.zeros(most, dtype=torch.int32, pin_memory=device.type == "cuda")
        self._there = torch.zeros(most, dtype=torch.int32, device=device)
        self._waves = sinusoids(torch.arange(self._length, device=device), model.head.weight.shape[1])
        self._columns = torch.arange(self._length, dtype=torch.int32, device=device)

    def put(self, sources: Packed, limits: Numbers) -> int:
        """Take as many sources as there is room for, none of them empty; as many positions are to be read."""
        inputs, count = len(sources), len(sources.tokens)
        positions = rounded(count)
        here = self._host.numpy()
        head, tokens, slots = np.split(
            here[: 3 * inputs + 2 * positions], (3 * inputs, 3 * inputs + positions)
        )
        starts = sources.starts
        head[:] = np.concatenate((limits, starts, sources.lengths))
        tokens[:count] = sources.tokens
        tokens[count:] = EOS
        slots[:count] = np.arange(count) + np.repeat(
            np.arange(inputs) * self._length - starts, sources.lengths
        )
        slots[count:] = -1
        used = 3 * inputs + 2 * positions
        self._there[:used].copy_(self._host[:used], non_blocking=True)
        return positions

    def read(self, positions: int) -> None:
        """What was put; nothing is asked of the device."""
        cache, beams = self._cache, self._beams
        inputs = len(cache.seen)
        limits, starts, lengths = self._there[: 3 * inputs].view(3, inputs)
        tokens, slots = self._there[3 * inputs : 3 * inputs + 2 * positions].view(2, positions)
        beams.limits.copy_(limits[:, None])
        beams.clear()
        cache.place.zero_()
        torch.lt(self._columns, lengths[:, None], out=cache.seen.view(inputs, self._length))
        with torch.autocast(self._there.device.type, enabled=False):
            low = self._encoded(tokens, slots, starts, lengths)
            for number, remember in enumerate(self._weights.remembering):
                self._remember(number, remember(low), slots)

    def _encoded(self, tokens: Tensor, slots: Tensor, starts: Tensor, lengths: Tensor) -> Tensor:
        from softtargets.translation.kernels.reading import embed_sources_kernel, source_attention_kernel

        model, weights = self._model, self._weights
        table = model.embed.source.weight.detach()
        width = table.shape[1]
        states = torch.empty(len(tokens), width, device=table.device)
        low = torch.empty_like(states, dtype=weights.dtype)
        embed_sources_kernel[(len(tokens),)](
            table,
            self._waves,
            tokens,
            slots,
            states,
            low,
            self._length,
            sqrt(width),
            WIDTH=width,
            BLOCK=power_of_2(width),
            num_warps=warps_for(width),
        )
        post = model.middle is None
        norms = iter(norms_of(model.encoder, model.middle and model.middle.norm))
        if not post:
            add(states, None, next(norms), low, post)
        heads = cast("Any", model.encoder)[0].own.heads if weights.reading else 1
        size, single = width // heads, weights.dtype == torch.float32
        found = torch.zeros_like(low)  # of what fills up nothing is ever looked at, but it should be finite
        for project, merge, widen, narrow in weights.reading:
            source_attention_kernel[(len(lengths), heads, -(-self._length // _QUERIES))](
                project(low),
                starts,
                lengths,
                found,
                size**-0.5,
                HEADS=heads,
                SIZE=size,
                ROWS=_QUERIES,
                COLUMNS=max(16, power_of_2(size)),
                BLOCK=min(_KEYS, max(16, power_of_2(self._length))),
                PRECISION="ieee",
                num_warps=(4 if single else 1) * max(1, power_of_2(size) // 64),
                num_stages=1,  # few need a second turn, and what is read ahead takes room from others
            )
            add(states, merge(found), next(norms), low, post)
            add(states, narrow(widen.relu(low)), next(norms), low, post)
        return low

    def _remember(self, number: int, remembered: Tensor, slots: Tensor) -> None:
        from softtargets.translation.kernels.reading import remember_kernel

        keys, values = self._cache.source_keys[number], self._cache.source_values[number]
        _, heads, length, size = keys.shape
        remember_kernel[(len(slots),)](
            remembered,
            slots,
            keys,
            values,
            length,
            HEADS=heads,
            SIZE=size,
            BLOCK=power_of_2(heads * size),
            num_warps=warps_for(heads * size),
        )


def rounded(count: int) -> int:
    """Up to one of few numbers, each of which is recorded: at most an eighth more, beyond 512.

    >>> [rounded(count) for count in (1, 65, 513, 15_449)]
    [64, 128, 576, 16384]
    """
    step = max(64, 1 << max(0, count.bit_length() - 4))
    return -(-count // step) * step
