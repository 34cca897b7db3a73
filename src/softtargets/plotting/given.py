"""From what somebody gives a figure to the data it draws: measured already, or scores and labels."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeVar

import numpy as np
from torch import Tensor

from softtargets.arrays import as_tensor
from softtargets.plotting.look import plain
from softtargets.predictions import checked_scores, kind_of_scores

Kind = Literal["auto", "logits", "probabilities"]
Scores = tuple[Tensor, Tensor, bool]  # scores (N, K), labels (N,), whether they are logits
T = TypeVar("T")


def named(
    given: Any,
    labels: Any,
    measured: tuple[type, ...],
    make: Callable[[Any, Any], T],
    take: Callable[[Any], T],
) -> dict[str, T]:
    """Data by name; what is given without a name has the name ``""``.

    `given` is something `measured`, scores to go with `labels`, or a mapping from names to either; scores with labels
    of their own are pairs.
    """
    if not isinstance(given, Mapping):
        return {"": _one(given, labels, measured, make, take)}
    if not given:
        raise ValueError("there is nothing to draw: the mapping of names to data is empty")
    return {plain(str(name)): _one(one, labels, measured, make, take) for name, one in given.items()}


def _one(
    given: Any,
    labels: Any,
    measured: tuple[type, ...],
    make: Callable[[Any, Any], T],
    take: Callable[[Any], T],
) -> T:
    if isinstance(given, measured):
        return take(given)
    if isinstance(given, tuple) and len(given) == 2:
        given, labels = given
    if labels is None:
        known = " or ".join(f"a {kind.__name__}" for kind in measured)
        raise ValueError(
            f"labels are missing: give scores and labels, or {known}, or a mapping from names to those"
        )
    return make(given, labels)


def scores_of(scores: Any, labels: Any, kind: Kind, ignore_index: int | None = None) -> Scores:
    """Scores with a column for each class, checked; those of one column are of the second of two classes.

    Rows whose label is `ignore_index` are left out.
    """
    found = as_tensor(np.asarray(scores) if not isinstance(scores, Tensor) else scores).detach()
    found = found.squeeze(1) if found.ndim == 2 and found.shape[1] == 1 else found
    judged = kind_of_scores(
        found.reshape(-1, found.shape[-1]) if found.ndim > 1 else found, None if kind == "auto" else kind
    )
    from_logits = judged.kind == "logits"
    if found.ndim == 1:
        import torch

        found = torch.stack([torch.zeros_like(found) if from_logits else 1 - found, found], -1)
    rows = found.reshape(-1, found.shape[-1])
    true = as_tensor(np.asarray(labels) if not isinstance(labels, Tensor) else labels).detach().reshape(-1)
    if ignore_index is not None and len(true) == len(rows):
        counted = true != ignore_index
        if len(true) and not counted.any():
            raise ValueError(f"there is nothing to draw: every label is {ignore_index}")
        rows, true = rows[counted.to(rows.device)], true[counted]
    return checked_scores(rows, judged), true, from_logits
