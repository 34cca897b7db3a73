"""Are the rare classes the ones that are got wrong?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from softtargets.arrays import ArrayLike, counts_of_classes, labels_of, predicted_classes


@dataclass(frozen=True)
class FrequencyGroup:
    """Classes that occur from `fewest` to `most` times in training (None: no limit), and how they do.

    `examples` are the evaluated ones of these classes, `right` those of them that were predicted rightly.
    """

    fewest: int
    most: int | None
    classes: int
    examples: int
    right: int

    @property
    def accuracy(self) -> float:
        """The share of the group's examples that is right; NaN without examples."""
        return self.right / self.examples if self.examples else math.nan

    @property
    def unseen(self) -> bool:
        """Whether these classes never occur in training."""
        return self.most == 0


def accuracy_by_frequency(
    predicted: ArrayLike, labels: ArrayLike, training_counts: ArrayLike, groups: int | Sequence[int] = 4
) -> tuple[FrequencyGroup, ...]:
    """Accuracy of classes grouped by how often they occur in training, the rarest first.

    `predicted` are classes (N,), or logits or probabilities (N, K); `training_counts` (K,) says how often each class
    occurs in training. Classes that never do are a group of their own, in front, where there are any.

    A number makes that many groups, with numbers of classes as nearly equal as can be (quantiles). Classes with
    equal counts stay together, so there may be fewer groups; `fewest` and `most` are the counts that occur. Edges, in
    rising order, are the counts at which a new group begins, and also groups without classes are given: [20, 100]
    means 1 to 19, 20 to 99, and 100 or more.

    >>> labels, counts = torch.tensor([0, 1, 1, 2, 3]), torch.tensor([900, 50, 3, 0])
    >>> for group in accuracy_by_frequency(torch.tensor([0, 1, 0, 0, 0]), labels, counts, groups=[20, 100]):
    ...     print(group.fewest, group.most, group.classes, group.accuracy)
    0 0 1 0.0
    1 19 1 0.0
    20 99 1 0.5
    100 None 1 1.0
    """
    counts = counts_of_classes(training_counts, "training_counts")
    said = predicted_classes(predicted, len(counts))
    true = labels_of(labels, len(said), len(counts))
    ranges = _quantiles(counts, groups) if isinstance(groups, int | np.integer) else _between(groups)
    if bool((counts == 0).any()):
        ranges = [(0, 0), *ranges]
    found = []
    for fewest, most in ranges:
        inside = (counts >= fewest) & (counts <= (math.inf if most is None else most))
        of_group = inside[true]
        classes, examples, right = (int(one.sum()) for one in (inside, of_group, of_group & (said == true)))
        found.append(FrequencyGroup(fewest, most, classes, examples, right))
    return tuple(found)


def _quantiles(counts: Tensor, groups: int) -> list[tuple[int, int | None]]:
    if isinstance(groups, bool) or groups < 1:
        raise ValueError(f"groups must be a number of at least 1 or the edges between groups, not {groups}")
    seen = counts[counts > 0].sort().values
    # A count belongs where the middle of the classes that have it lies, so that ties fall to the nearer side.
    below, upto = torch.searchsorted(seen, seen), torch.searchsorted(seen, seen, right=True)
    which = groups * (below + upto) // (2 * max(len(seen), 1))
    return [(int(seen[which == g].min()), int(seen[which == g].max())) for g in which.unique()]


def _between(edges: Sequence[int]) -> list[tuple[int, int | None]]:
    given = list(edges)
    whole = all(math.isfinite(edge) and edge == int(edge) for edge in given)
    if not given or not whole or given[0] < 2 or any(a >= b for a, b in pairwise(given)):
        raise ValueError(
            f"edges between groups must be whole numbers from 2, each above the last, not {given}"
        )
    starts = [1, *map(int, given)]
    return [*((a, b - 1) for a, b in pairwise(starts)), (starts[-1], None)]
