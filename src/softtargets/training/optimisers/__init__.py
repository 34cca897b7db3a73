"""Optimisers as updates in place of plain tensors: of one net, or of a stack of nets that are trained together.

An `Update` holds what stays the same from step to step. The learning rate and the number of the step are tensors, and
nothing here asks the device for a value, so a step can be compiled, or recorded once and replayed.
"""

from collections.abc import Callable, Sequence

import torch

from softtargets.recipes import Optimiser
from softtargets.training.optimisers.adam import AdamUpdate
from softtargets.training.optimisers.sgd import SGDUpdate
from softtargets.training.optimisers.update import Update
from softtargets.training.optimisers.weight_update import WeightUpdate, average_, clip_by_norm_

# By the names that recipes call optimisers.
UPDATES: dict[str, Callable[..., Update]] = {"sgd": SGDUpdate, "adam": AdamUpdate, "adamw": AdamUpdate}


def make_update(
    recipes: Sequence[Optimiser],
    names: Sequence[str],
    lead: int,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
) -> Update:
    """The update for the parameters of these names: of one net (``lead=0``), or of a stack of runs (``lead=1``).

    The runs of a stack may differ in all numbers, but in nothing that decides what is computed. Their learning rates
    are not used: they reach `Update.apply_` as a tensor, already scaled by the schedule. `dtype` is that of the
    parameters.

    >>> from softtargets.recipes import SGD
    >>> weights, gradients = [torch.ones(2, 3)], [torch.ones(2, 3)]  # two runs with three weights each
    >>> update = make_update([SGD(), SGD(weight_decay=1)], ["weight"], lead=1)
    >>> rates, steps = torch.tensor([0.5, 0.25]), torch.tensor([0, 0])
    >>> update.apply_(weights, gradients, update.initial(weights), rates, steps)
    >>> weights[0]
    tensor([[0.5000, 0.5000, 0.5000],
            [0.5000, 0.5000, 0.5000]])
    """
    if lead not in (0, 1):
        raise ValueError(f"lead is 0 for one net or 1 for a stack of runs, not {lead!r}")
    if not recipes or (lead == 0 and len(recipes) > 1):
        raise ValueError(
            f"one net (lead=0) has one optimiser, a stack one for each run; {len(recipes)} given"
        )
    kinds = {recipe.name for recipe in recipes}
    if len(kinds) > 1:
        listed = ", ".join(sorted(kinds))
        raise ValueError(f"the runs of a stack have one kind of optimiser, not {listed}; train them apart")
    kind = UPDATES.get(recipes[0].name)
    if kind is None:
        raise TypeError(f"no rule for the optimiser {recipes[0]!r}")
    return kind(recipes, names, lead, device, dtype)


__all__ = ["Update", "WeightUpdate", "average_", "clip_by_norm_", "make_update"]
