"""What packs of one kind share: how their nets are computed and their batches made, compiled once on a GPU."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from softtargets.models import Classifier
from softtargets.recipes import Recipe
from softtargets.training.distributed.crew import Crew
from softtargets.training.nets import Forward
from softtargets.training.share import Share


class Machinery:
    """The computations of one kind of run; `stacked` runs are computed as one.

    On a GPU whole steps are recorded once and replayed, which leaves the host nothing to do; `plain` turns that and
    compiling off, to compare with. Feeds make only the rows of a batch that are this process's `share`: all of them,
    unless several processes (`crew`) train the run together.
    """

    def __init__(
        self,
        recipe: Recipe,
        task: Any,
        device: torch.device,
        stacked: bool,
        plain: bool = False,
        share: Share | None = None,
        crew: Crew | None = None,
    ) -> None:
        self.device, self.stacked = device, stacked
        self.crew = crew
        self.share = share or (Share() if crew is None else crew.share)
        self.recorded = device.type == "cuda" and not plain
        self._batch = recipe.batch
        self._compiles: Callable[[torch.Size], bool] = partial(task.compiles, recipe)
        self._worth = self._is_worth if self.recorded else None
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

    def _is_worth(self, shape: torch.Size) -> bool:
        """Whether the task says so of the batch that these rows are a share of."""
        own = self.share.rows(self._batch)
        whole = shape[0] == own.stop - own.start
        return self._compiles(torch.Size((self._batch, *shape[1:])) if whole else shape)

    def added_up(self, sums: Tensor) -> Tensor:
        """What all processes that train the run have summed up together, where there are several."""
        return sums if self.crew is None else self.crew.added_up_(sums)

    def compiled(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function, on a GPU compiled: the first of its name for all packs, so it must not hold on to one of them."""
        if not self.recorded:
            return function
        return self._compiled.setdefault(function.__qualname__, torch.compile(function, dynamic=False))
