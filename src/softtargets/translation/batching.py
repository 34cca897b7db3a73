"""Sentences of different lengths as tensors: padded, a few at a time, and what a decoder has read of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
import torch
from torch import Tensor

from softtargets.models import Transformer
from softtargets.translation.sources import Numbers
from softtargets.translation.symbols import BOS, IGNORED, PAD


def padded(rows: Sequence[Sequence[int]], fill: int = PAD, shape: tuple[int, int] | None = None) -> Tensor:
    """Rows of tokens side by side (rows, longest), filled up at their ends, or as much of a larger shape.

    >>> padded([[5, 2], [6, 7, 2]])
    tensor([[5, 2, 0], [6, 7, 2]])
    """
    lengths = np.fromiter(map(len, rows), np.int64, len(rows))
    side_by_side = np.full(shape or (len(rows), lengths.max()), fill, np.int64)
    there = np.arange(side_by_side.shape[1]) < lengths[:, None]
    side_by_side[: len(rows)][there] = np.fromiter(chain.from_iterable(rows), np.int64, int(lengths.sum()))
    return torch.from_numpy(side_by_side)


def prefixes(labels: Tensor) -> Tensor:
    """What the decoder has read when it is to predict each label (..., T): the beginning, then the labels before it.

    >>> prefixes(torch.tensor([[7, 8, 2, -100]]))
    tensor([[1, 7, 8, 2]])
    """
    read = torch.where(labels == IGNORED, PAD, labels)
    return torch.cat((torch.full_like(read[..., :1], BOS), read[..., :-1]), -1)


def longest_first(lengths: Mapping[int, int], room: int) -> Iterator[list[int]]:
    """Places of sentences with their lengths, longest first, as many at a time as fit into so many positions at the
    length of the first of them; at least one.

    >>> list(longest_first({0: 2, 1: 5, 2: 3}, room=6))
    [[1], [2, 0]]
    """
    places = np.fromiter(lengths, np.int64, len(lengths))
    for chosen in turns(np.fromiter(lengths.values(), np.int64, len(lengths)), room):
        yield places[chosen].tolist()


def turns(lengths: Numbers, room: int) -> Iterator[Numbers]:
    """The same for lengths of places 0, 1 and so on."""
    waiting = np.argsort(-lengths, kind="stable")
    begin = 0
    while begin < len(waiting):
        count = max(1, room // int(lengths[waiting[begin]]))
        yield waiting[begin : begin + count]
        begin += count


def room_for(model: Transformer, sizes: Mapping[str, int]) -> int:
    """The size for the kind of device that a model is on; that of a CPU where none is known."""
    return sizes.get(model.head.weight.device.type, sizes["cpu"])
