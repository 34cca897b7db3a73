"""What packs of one shape share: how their nets are computed and their images made, compiled once on a GPU."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from softtargets.data.augment import View
from softtargets.models import Classifier
from softtargets.recipes import Recipe
from softtargets.training.nets import Forward
from softtargets.training.preparation import Prepared, view_of

Views = list[dict[str, Tensor]]


class Machinery:
    """The computations of one kind of run; `stacked` runs are computed as one.

    On a GPU whole steps are recorded once and replayed, which leaves the host nothing to do; `plain` turns that and
    compiling off, to compare with.
    """

    def __init__(
        self, recipe: Recipe, prepared: Prepared, device: torch.device, stacked: bool, plain: bool = False
    ) -> None:
        self.stacked = stacked
        self.recorded = device.type == "cuda" and not plain
        self.view: View = view_of(recipe, prepared)
        self._batch = recipe.batch
        self._standardise = prepared.standardise
        self._forward: Forward | None = None
        self._fused: Callable[[Tensor, Tensor, Views], tuple[Tensor, Tensor]] = self._inputs
        if self.recorded:
            self._fused = torch.compile(self._inputs, dynamic=False)

    def forward(self, model: Classifier) -> Forward | None:
        """How nets like this one are computed; None: by calling them."""
        if not self.recorded and not self.stacked:
            return None
        if self._forward is None:
            self._forward = Forward(model, self.stacked, self._batch if self.recorded else None)
        return self._forward

    def inputs(self, images: Tensor, chosen: Tensor, views: Views, size: int) -> tuple[Tensor, Tensor]:
        """(augmented, standardised) images of the chosen examples, in batches of this size."""
        # Compiling takes a while: the one smaller batch of an epoch is not worth it.
        return (self._fused if size == self._batch else self._inputs)(images, chosen, views)

    def _inputs(self, images: Tensor, chosen: Tensor, views: Views) -> tuple[Tensor, Tensor]:
        shown = self.view.apply(images[chosen], views)
        return shown, self._standardise(shown)
