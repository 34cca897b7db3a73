"""The sentences of a pack: which batch holds what, and how models do on the other splits."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from softtargets.recipes import Recipe
from softtargets.training.machinery import Machinery
from softtargets.training.nets import Nets
from softtargets.training.precision import autocast
from softtargets.training.tasks.task import Feed, Shown
from softtargets.training.tasks.translation.layout import Layout, Shape
from softtargets.training.tasks.translation.sentences import Sentences
from softtargets.translation import IGNORED


class TranslationFeed(Feed):
    """Draws the order of each run by its seed, and gathers sentences that all runs share.

    measured:  how many tokens on either side a model is shown at a time when it is measured.
    """

    def __init__(
        self,
        recipes: Sequence[Recipe],
        splits: dict[str, Sentences],
        layout: Layout,
        measured: int,
        machinery: Machinery,
    ) -> None:
        self._recipe, self._layout, self._measured = recipes[0], layout, measured
        self._machinery, self._share = machinery, machinery.share
        self._tables = splits["train"].tables
        self._held_out = {name: split for name, split in splits.items() if name != "train"}
        device = splits["train"].device
        self._keys = layout.keys([recipe.seed for recipe in recipes], device)
        self._starts = torch.tensor([begin for _, begin in layout.batches], device=device)
        self._begins = torch.zeros(len(recipes), len(layout.batches), dtype=torch.int64, device=device)
        self._rows = torch.zeros(len(recipes), layout.size, dtype=torch.int64, device=device)
        self._within = torch.arange(max(shape.rows for shape in layout.shapes), device=device)

    def open(self, epochs: Tensor) -> None:
        """The order of sentences, and that of batches."""
        of_rows, of_batches = self._keys
        self._rows.copy_(self._layout.table(of_rows, epochs))
        self._begins.copy_(self._starts[self._layout.order(of_batches, epochs)])

    def batch(self, place: Tensor, shape: Shape) -> Shown:
        """Sources and prefixes, and a label for each token."""
        begins = self._begins.index_select(1, place)
        own = self._share.rows(shape.rows)
        table = self._tables[shape.bucket]
        if own.start == own.stop:  # more processes than sentences: the empty one, of which nothing counts
            chosen = torch.full_like(begins, len(table))
        else:
            chosen = self._rows.gather(1, begins + self._within[own])
        sources, prefixes, labels = table.shown(chosen)
        return Shown((sources, prefixes), labels.flatten(1))

    @torch.no_grad()
    def score(self, nets: Nets) -> dict[str, Tensor]:
        """Of each split the mean loss of a token, and the share of tokens that are predicted."""
        found = {}
        for name, split in self._held_out.items():
            device, runs = split.device, nets.runs
            lost = torch.zeros(runs, dtype=torch.float64, device=device)
            right = torch.zeros(runs, dtype=torch.int64, device=device)
            batches = [(table, chosen) for table in split.tables for chosen in table.batches(self._measured)]
            for table, chosen in batches[self._share.rank :: self._share.ranks]:
                sources, prefixes, labels = table.shown(chosen)
                with autocast(self._recipe.precision, device):
                    said = nets.look((sources, prefixes), shared=True).flatten(1, -2)
                every = labels.flatten().expand(runs, -1)
                losses = F.cross_entropy(
                    said.flatten(0, 1).float(), every.flatten(), ignore_index=IGNORED, reduction="none"
                )
                lost += losses.view(runs, -1).double().sum(1)
                right += (said.argmax(-1) == every).sum(1)
            tokens = int(split.targets.lengths.sum())
            found[f"{name}_loss"] = self._machinery.added_up(lost) / tokens
            found[f"{name}_accuracy"] = self._machinery.added_up(right).double() / tokens
        return found
