"""A second task, small and real: the next character of clauses of the licence of this repository.

Clauses differ in length. They are sorted into buckets and trained on in batches of about so many characters, each as
many rows as fit at the length of its bucket; what is shorter is padded. Everything a task has to say is said here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from softtargets.exceptions import RecipeError
from softtargets.models import MODELS, Classifier, Dropout
from softtargets.randomness import key_words, permutation, stacked_keys
from softtargets.recipes import Dataset, Model, Recipe
from softtargets.recipes.schema import Count, ProperFraction
from softtargets.training.precision import autocast
from softtargets.training.tasks import TASKS, Epoch, Feed, Shown, Task

TEXT = Path(__file__).parents[3] / "LICENSE"
BUCKETS = (12, 28, 60)
PADDING = -100  # no label
BLANK = 0  # before the first character, and after the last


class Characters(Dataset):
    """Nameless until `registered`: no other test shall find it among the datasets."""

    task: ClassVar[str] = "characters"
    unit: ClassVar[str] = "characters"


class Window(Model):
    """Sees the last few characters; `fused`, its last layer is computed together with the loss."""

    width: Count = 32
    sees: Count = 4
    dropout: ProperFraction = 0.0
    fused: bool = False


class WindowNet(Classifier):
    def __init__(self, classes: int, width: int, sees: int, dropout: float, fused: bool) -> None:
        super().__init__()
        self.sees, self.fused = sees, fused
        self.embedding = nn.Embedding(classes, 16)
        self.body = nn.Sequential(nn.Linear(16 * sees, width), nn.ReLU(), Dropout(dropout))
        self.head = nn.Linear(width, classes)
        self.number_dropouts()

    def features(self, tokens: Tensor) -> Tensor:
        # As a product: compiled for a GPU, the gradient of a look-up is added up in whatever order threads come.
        table = self.embedding.weight
        known = F.one_hot(tokens, len(table)).to(table.dtype) @ table
        seen = F.pad(known, (0, 0, self.sees - 1, 0))
        windows = [seen[:, place : place + tokens.shape[1]] for place in range(self.sees)]
        return self.body(torch.cat(windows, -1))

    def forward(self, tokens: Tensor) -> Tensor:
        activations = self.features(tokens)
        return activations if self.fused and self.training else self.head(activations)


@contextmanager
def registered() -> Iterator[None]:
    Characters.name, Window.name = "characters", "window"
    TASKS["characters"], MODELS["window"] = CharacterTask, WindowNet
    try:
        yield
    finally:
        Characters.name = Window.name = ""
        del TASKS["characters"], MODELS["window"]


@dataclass(frozen=True)
class Clauses:
    """What is read and what comes next (N + 1, longest), padded; the last row is nothing but padding."""

    tokens: Tensor
    labels: Tensor
    lengths: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.lengths)


@dataclass(frozen=True)
class Layout:
    """Where the batches of an epoch lie: bucket by bucket in a table of rows, and in which order they come."""

    members: tuple[Tensor, ...]  # of each bucket
    rows: tuple[int, ...]  # in a batch of each bucket
    order: tuple[tuple[int, int], ...]  # of batches: a bucket, and a number within it

    @property
    def starts(self) -> list[int]:
        steps = [-(-len(members) // rows) for members, rows in zip(self.members, self.rows, strict=True)]
        return [sum(a * b for a, b in zip(steps[:place], self.rows, strict=False)) for place in range(4)]

    def table(self, keys: Tensor, epochs: Tensor, blank: int) -> Tensor:
        """The rows of all batches of an epoch, (runs, rows): each bucket in its own order, filled up with blanks."""
        parts, starts = [], self.starts
        for bucket, members in enumerate(self.members):
            drawn = members.to(keys.device)[permutation(keys, len(members), epochs, bucket)]
            parts.append(F.pad(drawn, (0, starts[bucket + 1] - starts[bucket] - len(members)), value=blank))
        return torch.cat(parts, 1)


class CharacterTask(Task):
    def __init__(self, splits: dict[str, Clauses], classes: tuple[str, ...]) -> None:
        self.splits, self.classes = splits, classes

    @classmethod
    def prepare(cls, data: Dataset, device: torch.device, data_dir: Path | None = None) -> CharacterTask:
        text = " ".join(TEXT.read_text(encoding="utf-8").split())
        clauses = [c[:59] for c in re.split(r"(?<=[,;.:)])\s", text) if c]
        alphabet = ("", "\n", *sorted(set(text)))
        train = [clause for place, clause in enumerate(clauses) if place % 8]
        cut = len(train) - data.validation
        parts = {"train": train[:cut][: data.limit], "validation": train[cut:], "test": clauses[::8]}
        return cls({name: _clauses(parts[name], alphabet, device) for name in data.splits}, alphabet)

    def net_arguments(self, recipe: Recipe) -> dict[str, Any]:
        return {"classes": len(self.classes)}

    def check(self, recipe: Recipe, taught: Task | None) -> None:
        super().check(recipe, taught)
        if recipe.batch < BUCKETS[-1]:
            raise RecipeError(f"{recipe.batch} characters hold no clause of {BUCKETS[-1]}", "batch")

    def layout(self, recipe: Recipe) -> Layout:
        return _layout(self.splits["train"].lengths, recipe.batch)

    def epoch(self, recipe: Recipe, epoch: int) -> Epoch:
        return _epoch(self.splits["train"].lengths, recipe.batch, recipe.seed, epoch)

    def feed(self, recipes: Sequence[Recipe], tasks: Sequence[Any], machinery: Any) -> Feed:
        return CharacterFeed(recipes, self)

    def fuses_head(self, recipe: Recipe) -> bool:
        return recipe.model.fused

    @torch.no_grad()
    def predict(self, recipe: Recipe, model: Classifier, split: str) -> dict[str, Tensor]:
        """Of each character: the log-probability of the one that came, and whether the likeliest one was it."""
        clauses = self.splits[split]
        with autocast(recipe.precision, clauses.tokens.device):
            said = model.eval()(clauses.tokens).float().log_softmax(-1)
        counts = clauses.labels != PADDING
        said, labels = said[counts], clauses.labels[counts]
        confidence, choice = said.max(-1)
        return {
            "log_probability": said.gather(1, labels[:, None])[:, 0],
            "confidence": confidence.exp(),
            "correct": choice == labels,
            "lengths": torch.tensor(clauses.lengths),
        }

    def provenance(self) -> dict[str, Any]:
        return {
            "examples": {name: len(split) for name, split in self.splits.items()},
            "alphabet": len(self.classes),
        }

    def rows(self, shape: tuple[int, int]) -> int:
        return shape[0] * shape[1]

    def blank(self, recipe: Recipe, shape: tuple[int, int], device: torch.device) -> tuple[Tensor, ...]:
        return (torch.zeros(shape, dtype=torch.int64, device=device),)

    def measured_at_a_time(self, runs: int, on_gpu: bool) -> int:
        return max(len(split) + 1 for split in self.splits.values())

    def table_bytes(self, recipe: Recipe) -> int:
        return 8 * 14 * self.layout(recipe).starts[-1]


class CharacterFeed(Feed):
    def __init__(self, recipes: Sequence[Recipe], task: CharacterTask) -> None:
        self._recipe, self._task, self._layout = recipes[0], task, task.layout(recipes[0])
        self._train = task.splits["train"]
        device = self._train.tokens.device
        starts = self._layout.starts
        begins = [
            starts[bucket] + number * self._layout.rows[bucket] for bucket, number in self._layout.order
        ]
        self._begins = torch.tensor(begins, device=device)
        self._keys = stacked_keys([recipe.seed for recipe in recipes], "order", device)
        self._rows = torch.zeros(len(recipes), starts[-1], dtype=torch.int64, device=device)
        self._within = torch.arange(max(self._layout.rows), device=device)

    def open(self, epochs: Tensor) -> None:
        self._rows.copy_(self._layout.table(self._keys, epochs, blank=len(self._train)))

    def batch(self, place: Tensor, shape: tuple[int, int]) -> Shown:
        rows, length = shape
        where = self._begins.index_select(0, place) + self._within[:rows]
        chosen = self._rows.index_select(1, where)
        tokens, labels = self._train.tokens[:, :length], self._train.labels[:, :length]
        return Shown((tokens[chosen],), labels[chosen].flatten(1))

    @torch.no_grad()
    def score(self, nets: Any) -> dict[str, Tensor]:
        found = {}
        for name, split in self._task.splits.items():
            if name != "train":
                with autocast(self._recipe.precision, split.tokens.device):
                    said = nets.look((split.tokens,), shared=True).float()
                labels = split.labels.expand(nets.runs, -1, -1)
                lost = F.cross_entropy(
                    said.flatten(0, 2), labels.flatten(), ignore_index=PADDING, reduction="none"
                )
                found[f"{name}_loss"] = lost.view(nets.runs, -1).double().sum(1) / sum(split.lengths)
        return found


def _clauses(texts: Sequence[str], alphabet: Sequence[str], device: torch.device) -> Clauses:
    """Each character is to be said after those before it; after the last comes the end of the line."""
    lengths = tuple(len(text) + 1 for text in texts)
    tokens = torch.full((len(texts) + 1, BUCKETS[-1]), BLANK)
    labels = torch.full_like(tokens, PADDING)
    for row, text in enumerate(texts):
        characters = torch.tensor([alphabet.index(each) for each in (*text, "\n")])
        labels[row, : lengths[row]] = characters
        tokens[row, 1 : lengths[row]] = characters[:-1]
    return Clauses(tokens.to(device), labels.to(device), lengths)


@lru_cache
def _layout(lengths: tuple[int, ...], batch: int) -> Layout:
    bucket_of = torch.bucketize(torch.tensor(lengths), torch.tensor(BUCKETS))
    members = tuple((bucket_of == bucket).nonzero()[:, 0] for bucket in range(len(BUCKETS)))
    rows = tuple(batch // length for length in BUCKETS)
    batches = [
        (bucket, number)
        for bucket in range(len(BUCKETS))
        for number in range(-(-len(members[bucket]) // rows[bucket]))
    ]
    # Mixed, but in the same way for every seed and epoch: so runs can be stacked.
    order = permutation(key_words(0, "buckets"), len(batches)).tolist()
    return Layout(members, rows, tuple(batches[place] for place in order))


@lru_cache
def _epoch(lengths: tuple[int, ...], batch: int, seed: int, epoch: int) -> Epoch:
    """By the same draws as on the device, which are the same everywhere: so the host knows what each step holds."""
    layout = _layout(lengths, batch)
    table = layout.table(stacked_keys([seed], "order"), torch.tensor([epoch]), blank=len(lengths))[0]
    held = torch.tensor([*lengths, 0])[table]
    shapes, units = [], []
    for bucket, number in layout.order:
        rows = layout.rows[bucket]
        begin = layout.starts[bucket] + number * rows
        shapes.append((rows, BUCKETS[bucket]))
        units.append(int(held[begin : begin + rows].sum()))
    return Epoch(tuple(shapes), tuple(units))
