"""A split of a corpus as tokens: on the host as they are, on the device in buckets, padded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softtargets.data import Pairs
from softtargets.training.tasks.translation.buckets import Bucket, into_buckets, padding
from softtargets.translation import EOS, IGNORED, PAD, prefixes


@dataclass(frozen=True)
class Ragged:
    """Rows of tokens of different lengths, one after another: row i is ``flat[begins[i] : begins[i + 1]]``."""

    flat: NDArray[np.int32]
    begins: NDArray[np.int64]

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Ragged:
        """From lists."""
        begins = np.zeros(len(rows) + 1, np.int64)
        np.cumsum([len(row) for row in rows], out=begins[1:])
        flat = np.fromiter((token for row in rows for token in row), np.int32, int(begins[-1]))
        return cls(flat, begins)

    def __len__(self) -> int:
        return len(self.begins) - 1

    def __getitem__(self, row: int) -> list[int]:
        found: list[int] = self.flat[self.begins[row] : self.begins[row + 1]].tolist()
        return found

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Of each row."""
        return np.diff(self.begins)

    def padded(self, rows: NDArray[np.int64], width: int, fill: int) -> NDArray[np.int32]:
        """Some rows side by side, (rows, width)."""
        columns = np.arange(width)
        there = columns < self.lengths[rows][:, None]
        table = np.full((len(rows), width), fill, np.int32)
        table[there] = self.flat[(self.begins[rows][:, None] + columns)[there]]
        return table


@dataclass(frozen=True)
class Table:
    """The sentences of a bucket on a device: sources (n + 1, S) and labels (n + 1, T).

    The last row is an empty sentence, with which batches are filled up: none of its labels counts, and its source has
    one token, since attention must have something to look at.
    """

    sources: Tensor
    labels: Tensor
    bucket: Bucket

    def __len__(self) -> int:
        return len(self.bucket)

    def shown(self, chosen: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Sources (..., S), prefixes (..., T) and labels (..., T) of chosen rows (...)."""
        labels = self.labels[chosen].long()
        return self.sources[chosen].long(), prefixes(labels), labels

    def batches(self, tokens: int) -> Iterator[Tensor]:
        """All rows in order, as many at a time as hold so many tokens; the last batch is filled up."""
        rows, device = self.bucket.rows(tokens), self.sources.device
        for begin in range(0, len(self), rows):
            yield torch.arange(begin, begin + rows, device=device).clamp_(max=len(self))


@dataclass(frozen=True, eq=False)
class Sentences:
    """Sentence pairs as tokens; both sides end with the symbol for the end.

    texts:  the pairs as they were read, where they are needed: references of held-out sentences.
    parts:  where several directions are translated, which sentences belong to each.
    """

    sources: Ragged
    targets: Ragged
    texts: Pairs
    parts: Mapping[str, slice]
    device: torch.device

    @classmethod
    def of(
        cls,
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
        texts: Pairs,
        parts: Mapping[str, slice],
        device: torch.device,
    ) -> Sentences:
        """From pieces, without symbols."""
        source, target = (Ragged.of([(*row, EOS) for row in side]) for side in (sources, targets))
        return cls(source, target, texts, parts, device)

    def __len__(self) -> int:
        return len(self.sources)

    @cached_property
    def buckets(self) -> list[Bucket]:
        """Sentences of similar length."""
        return into_buckets(self.sources.lengths, self.targets.lengths)

    @cached_property
    def tables(self) -> list[Table]:
        """The buckets on the device."""
        return [self._table(bucket) for bucket in self.buckets]

    @property
    def padding(self) -> float:
        """The share of target positions that hold no token, apart from what fills up batches (`Layout.padding`)."""
        return padding(self.buckets, self.targets.lengths)

    def _table(self, bucket: Bucket) -> Table:
        empty = np.full((1, bucket.source), PAD, np.int32)
        empty[0, 0] = EOS
        sources = np.concatenate((self.sources.padded(bucket.members, bucket.source, PAD), empty))
        nothing = np.full((1, bucket.target), IGNORED, np.int32)
        labels = np.concatenate((self.targets.padded(bucket.members, bucket.target, IGNORED), nothing))
        return Table(
            torch.from_numpy(sources).to(self.device), torch.from_numpy(labels).to(self.device), bucket
        )
