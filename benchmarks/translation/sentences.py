"""Sentence pairs on a device, as the engine's task holds them: Multi30k, or made up with lengths like its."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch

from softtargets.data import Pairs
from softtargets.recipes import Multi30k
from softtargets.training.tasks.translation import Sentences, TranslationTask

# Multi30k in 8,000 joint pieces, English to German: pairs that cleaning leaves, and of the logarithms of their lengths
# with the end the means, standard deviations and correlation.
PAIRS, TEST, PIECES, LONGEST = 28_189, 1_000, 8_000, 56
_MEANS, _DEVIATIONS, _CORRELATION = (2.686, 2.702), (0.294, 0.325), 0.885
# Pieces are as frequent as one over their rank and this more.
_OFFSET = 8.0
# Measured at the end of every epoch, so that a run that diverges is noticed: too few to take time, all of one shape.
HELD_OUT = 8


@dataclass(frozen=True)
class Text:
    """The task, and the sources of its test set as lists of tokens without the end."""

    task: TranslationTask
    sources: Sequence[Sequence[int]]

    @property
    def pieces(self) -> int:
        """Of the vocabulary."""
        return len(self.task.tokeniser)


class Pieces:
    """A tokeniser of made-up sentences: it has pieces and a digest, and is asked for nothing else."""

    digest = "made up"

    def __init__(self, count: int) -> None:
        self.pieces = tuple(f"piece {number}" for number in range(count))

    def __len__(self) -> int:
        return len(self.pieces)


def read_text(data: str, device: torch.device, data_dir: Path | None = None) -> Text:
    """By its name in a case: ``multi30k`` or ``synthetic``, perhaps with a number of pairs."""
    name, *rest = data.split()
    pairs = int(rest[0]) if rest else None
    if name == "synthetic":
        return made_up(pairs or PAIRS, TEST, device)
    task = TranslationTask.prepare(Multi30k(limit=pairs), device, data_dir)
    test = task.splits["test"].sources
    return Text(_fewer(task), [test[row][:-1] for row in range(len(test))])


def made_up(pairs: int, test: int, device: torch.device, pieces: int = PIECES) -> Text:
    """The same every time.

    >>> text = made_up(50, 3, torch.device("cpu"), pieces=30)
    >>> len(text.task.splits["train"]), len(text.sources), text.pieces
    (50, 3, 30)
    """
    generator = np.random.default_rng(0)
    order = np.arange(4, pieces)
    frequencies = 1 / (order - 4 + _OFFSET)
    frequencies /= frequencies.sum()

    def rows(count: int) -> tuple[list[list[int]], list[list[int]]]:
        drawn = generator.multivariate_normal((0, 0), ((1, _CORRELATION), (_CORRELATION, 1)), count)
        lengths = np.exp(drawn * _DEVIATIONS + _MEANS).round().astype(int).clip(3, LONGEST) - 1  # the end
        return tuple(  # type: ignore[return-value]
            [generator.choice(order, length, p=frequencies).tolist() for length in side] for side in lengths.T
        )

    def split(sides: tuple[list[list[int]], list[list[int]]]) -> Sentences:
        nothing = ("",) * len(sides[0])
        return Sentences.of(*sides, Pairs(nothing, nothing), {}, device)

    train, held_out = rows(pairs), rows(test)
    splits = {"train": split(train), "validation": split(held_out), "test": split(held_out)}
    task = TranslationTask(splits, cast(Any, Pieces(pieces)), cast(Any, "made up"))
    return Text(_fewer(task), held_out[0])


def _fewer(task: TranslationTask) -> TranslationTask:
    """With one held-out sentence, a few times."""
    splits = {name: split if name == "train" else _first(split) for name, split in task.splits.items()}
    return replace(task, splits=splits)


def _first(split: Sentences) -> Sentences:
    source, target = ([side[0][:-1]] * HELD_OUT for side in (split.sources, split.targets))
    nothing = ("",) * HELD_OUT
    return Sentences.of(source, target, Pairs(nothing, nothing), {}, split.device)
