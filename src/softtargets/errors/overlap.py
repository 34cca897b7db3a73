"""Do two models fail on the same examples?"""

from __future__ import annotations

import math
from dataclasses import dataclass

from softtargets.arrays import ArrayLike, as_tensor, labels_of, predicted_classes


@dataclass(frozen=True)
class ErrorOverlap:
    """How many examples both models get right, only one gets wrong, both get wrong; `same_mistake` are those of the
    last for which both predict the same class.
    """

    both_right: int
    only_first_wrong: int
    only_second_wrong: int
    both_wrong: int
    same_mistake: int

    @property
    def examples(self) -> int:
        """All examples."""
        return self.both_right + self.only_first_wrong + self.only_second_wrong + self.both_wrong

    @property
    def first_errors(self) -> int:
        """The errors of the first model."""
        return self.only_first_wrong + self.both_wrong

    @property
    def second_errors(self) -> int:
        """The errors of the second model."""
        return self.only_second_wrong + self.both_wrong

    @property
    def jaccard(self) -> float:
        """The examples both get wrong, as a share of those that either gets wrong; NaN without errors."""
        either = self.examples - self.both_right
        return self.both_wrong / either if either else math.nan

    @property
    def same_mistake_share(self) -> float:
        """How often both predict the same class where both are wrong; NaN if that never happens."""
        return self.same_mistake / self.both_wrong if self.both_wrong else math.nan

    @property
    def expected_both_wrong(self) -> float:
        """How many examples both would get wrong if their errors were independent: N e1 e2."""
        return self.first_errors * self.second_errors / self.examples

    @property
    def expected_jaccard(self) -> float:
        """The Jaccard index of as many errors with `expected_both_wrong` in common; NaN without errors."""
        either = self.first_errors + self.second_errors - self.expected_both_wrong
        return self.expected_both_wrong / either if either else math.nan


def error_overlap(first_predicted: ArrayLike, second_predicted: ArrayLike, labels: ArrayLike) -> ErrorOverlap:
    r"""Compare the sets of examples A and B that two models get wrong.

    .. math:: J = \frac{|A \cap B|}{|A \cup B|}, \quad
              \mathrm{expected} \ |A \cap B| = \frac{|A| \, |B|}{N} \ \text{for independent errors}

    Predictions are classes (N,), or logits or probabilities (N, K).

    >>> import torch
    >>> found = error_overlap(torch.tensor([0, 1, 1, 2]), torch.tensor([0, 1, 2, 0]), torch.tensor([0, 0, 0, 0]))
    >>> found
    ErrorOverlap(both_right=1, only_first_wrong=1, only_second_wrong=0, both_wrong=2, same_mistake=1)
    >>> round(found.jaccard, 4), found.expected_both_wrong
    (0.6667, 1.5)
    """
    given = as_tensor(first_predicted), as_tensor(second_predicted)
    widths = sorted({values.shape[1] for values in given if values.ndim == 2})
    if len(widths) > 1:
        raise ValueError(f"both models must have the same classes, not {widths[0]} and {widths[1]}")
    classes = widths[0] if widths else None
    first = predicted_classes(given[0], classes, "first_predicted")
    second = predicted_classes(given[1], classes, "second_predicted")
    if len(first) != len(second):
        raise ValueError(f"both models must predict the same examples, not {len(first)} and {len(second)}")
    true = labels_of(labels, len(first), classes)
    wrong, also = first != true, second != true
    return ErrorOverlap(
        both_right=int((~wrong & ~also).sum()),
        only_first_wrong=int((wrong & ~also).sum()),
        only_second_wrong=int((~wrong & also).sum()),
        both_wrong=int((wrong & also).sum()),
        same_mistake=int((wrong & also & (first == second)).sum()),
    )
