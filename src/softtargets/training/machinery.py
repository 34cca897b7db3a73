"""What packs of one kind share: how their nets are computed and their batches made, compiled once on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from softtargets.models import Classifier
from softtargets.recipes import Recipe
from softtargets.training.nets import Forward
from softtargets.training.share import Share


class Machinery:
    """The computations of one kind of run; `stacked` runs are computed as one.

    On a GPU whole steps are recorded once and replayed, which leaves the host nothing to do; `plain` turns that and
    compiling off, to compare with. Feeds make only the rows of a batch that are this process's `share`.
    """

    def __init__(
        self,
        recipe: Recipe,
        task: Any,
        device: torch.device,
        stacked: bool,
        plain: bool = False,
        share: Share | None = None,
    ) -> None:
        self.device, self.stacked = device, stacked
        self.share = share or Share()
        self.recorded = device.type == "cuda" and not plain
        self._worth = partial(task.compiles, recipe) if self.recorded else None
        self._dynamic = task.shapes_vary
        self._forward: Forward | None = None
        self._compiled: dict[str, Callable[..., Any]] = {}

    def forward(self, model: Classifier) -> Forward | None:
        """How nets like this one are computed; None: as each is."""
        if not self.recorded and not self.stacked:
            return None
        if self._forward is None:
            self._forward = Forward(model, self.stacked, self._worth, self._dynamic)
        return self._forward

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function, on a GPU compiled: the first of its name for all packs, so it must not hold on to one of them."""
        if not self.recorded:
            return function
        return self._compiled.setdefault(function.__qualname__, torch.compile(function, dynamic=False))
