"""What is to be translated, checked and laid one behind the other; no loop over sentences, which a GPU waits for."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softtargets.exceptions import SofttargetsError
from softtargets.models import Transformer
from softtargets.translation.symbols import EOS, PAD

Numbers = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Packed:
    """Rows of tokens one behind the other, and how many each has.

    >>> rows = Packed.of([[5, 2], [6, 7, 2], [2]])
    >>> rows.take(np.array([1, 0])).rows()
    [[6, 7, 2], [5, 2]]
    """

    tokens: Numbers
    lengths: Numbers

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Packed:
        """Of lists."""
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        return cls(np.fromiter(chain.from_iterable(rows), np.int64, int(lengths.sum())), lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def starts(self) -> Numbers:
        """Where each row begins."""
        starts: Numbers = np.cumsum(self.lengths) - self.lengths
        return starts

    @property
    def places(self) -> Numbers:
        """Of each token within its row."""
        places: Numbers = np.arange(len(self.tokens)) - np.repeat(self.starts, self.lengths)
        return places

    def take(self, rows: Numbers) -> Packed:
        """Some of the rows, in this order."""
        if len(rows) == len(self) and (rows == np.arange(len(rows))).all():
            return self
        lengths = self.lengths[rows]
        ends = np.cumsum(lengths)
        index = np.arange(int(lengths.sum())) + np.repeat(self.starts[rows] - ends + lengths, lengths)
        return Packed(self.tokens[index], lengths)

    def and_blanks(self, count: int) -> Packed:
        """With so many rows more that have nothing but the end."""
        if not count:
            return self
        ends, ones = np.full(count, EOS), np.ones(count, np.int64)
        return Packed(np.concatenate((self.tokens, ends)), np.concatenate((self.lengths, ones)))

    def padded(self, length: int) -> Tensor:
        """Side by side (rows, length), filled up at their ends."""
        side_by_side = np.full((len(self), length), PAD)
        side_by_side[np.arange(length) < self.lengths[:, None]] = self.tokens
        return torch.from_numpy(side_by_side)

    def rows(self) -> list[list[int]]:
        """As lists."""
        tokens = self.tokens.tolist()
        return [
            tokens[start : start + length]
            for start, length in zip(self.starts.tolist(), self.lengths.tolist(), strict=True)
        ]


def packed_sources(model: Transformer, sources: Sequence[Sequence[int]], stacklevel: int = 3) -> Packed:
    """With the symbol at the end, and no longer than the model can take."""
    given = Packed.of(sources)
    check_tokens(model, given, "sources")
    ends = np.cumsum(given.lengths)
    last = np.append(given.tokens, PAD)[ends - 1]  # of a row in front of which there is none, the one added
    open_ended = (given.lengths == 0) | (last != EOS)
    if open_ended.any():
        given = Packed(np.insert(given.tokens, ends[open_ended], EOS), given.lengths + open_ended)
    too_long = given.lengths > model.longest
    if cut := int(too_long.sum()):
        warnings.warn(
            f"{cut} of {len(given)} sources have more than the {model.longest} tokens that the model can take; their "
            "ends were cut off",
            stacklevel=stacklevel,
        )
        lengths = np.minimum(given.lengths, model.longest)
        given = Packed(given.tokens[given.places < model.longest], lengths)
        given.tokens[np.cumsum(lengths)[too_long] - 1] = EOS
    return given


def checked_sources(model: Transformer, sources: Sequence[Sequence[int]]) -> list[list[int]]:
    """The same as lists."""
    return packed_sources(model, sources, stacklevel=4).rows()


def check_tokens(model: Transformer, given: Packed, what: str) -> None:
    """Refuse what is no token of the model."""
    tokens = given.tokens
    if not tokens.size or (tokens.min() > PAD and tokens.max() < model.vocabulary):
        return
    first = int(np.argmax((tokens <= PAD) | (tokens >= model.vocabulary)))
    place = int(np.searchsorted(np.cumsum(given.lengths), first, side="right"))
    raise SofttargetsError(
        f"must have tokens from 1 to {model.vocabulary - 1}, not {tokens[first]} (number {place})",
        argument=what,
    )
