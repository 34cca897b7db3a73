"""The recall of each class by two predictions of the same examples: before and after a correction, or by two models.

Biases change which class is predicted. A model that was trained to find a rare class predicts it more often than it
occurs. A bias that makes the probabilities right takes these predictions away: the accuracy rises, and most of the rare
class is no longer found. The rule of `softtargets.inspection.calibrate.corrections` looks at the accuracy alone, so
that somebody has to say so.

Of two models, too, the more accurate one may find less of a rare class. A fall of recall, or a rise, is told if

1. it is more than chance, by McNemar's test of the examples of the class that only one of both predictions gets right.
   The level is divided by the number of classes (Bonferroni), since the largest fall of many is picked; and
2. it is at least `LEAST_FALL`; of many examples, falls that change nothing are more than chance too.

Of a class with five examples nothing is more than chance. So of a correction it is also told, as what happened to these
examples, if a class that was found before is never predicted any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

import softtargets.calibration as calibration
from softtargets.inspection.shared.numbers import LEVEL, Estimate
from softtargets.inspection.shared.paired_counts import accuracy_difference, mcnemar

LEAST_FALL = 0.02  # of fifty examples of the class one is no longer found


@dataclass(frozen=True)
class ClassRecall:
    """One class: how many of its examples are predicted as it, and how many examples in all, before and after.

    `lost` are its examples that only the prediction before gets right, `gained` those that only the one after does.
    """

    index: int
    name: str
    examples: int
    found_before: int
    found_after: int
    lost: int
    gained: int
    predicted_before: int
    predicted_after: int

    @property
    def before(self) -> Estimate:
        """The recall of the scores as they are, with Wilson's interval."""
        return _share(self.found_before, self.examples)

    @property
    def after(self) -> Estimate:
        """The recall after the correction, with Wilson's interval."""
        return _share(self.found_after, self.examples)

    @property
    def change(self) -> Estimate:
        """The recall after less the one before, on the same examples."""
        return accuracy_difference(self.lost, self.gained, self.examples)

    @property
    def precision_before(self) -> float | None:
        """How many of the predictions of this class are right; None where there is no such prediction."""
        return self.found_before / self.predicted_before if self.predicted_before else None

    @property
    def precision_after(self) -> float | None:
        """The same after the correction."""
        return self.found_after / self.predicted_after if self.predicted_after else None

    @property
    def is_given_up(self) -> bool:
        """Whether the model found some of this class and never predicts it after the correction."""
        return self.found_before > 0 and self.predicted_after == 0

    def differs(self, level: float) -> bool:
        """Whether the change is large enough to be told, and more than chance at this level."""
        return abs(self.change.value) >= LEAST_FALL and mcnemar(self.lost, self.gained) <= level

    def numbers(self) -> dict[str, Any]:
        """As plain data, for scripts."""
        shares = ("before", "after", "change")
        others = ("precision_before", "precision_after")
        return {
            **vars(self),
            **{f"recall_{name}": vars(getattr(self, name)) for name in shares},
            **{name: getattr(self, name) for name in others},
        }


@dataclass(frozen=True)
class Recalls:
    """All classes that have examples, in their order; `changed` is how many predictions are another class."""

    classes: tuple[ClassRecall, ...]
    changed: int

    @cached_property
    def falling(self) -> tuple[ClassRecall, ...]:
        """The classes whose recall falls by more than chance, the largest fall first."""
        return tuple(one for one in self.sorted if one.change.below_zero and one.differs(self._level))

    @cached_property
    def rising(self) -> tuple[ClassRecall, ...]:
        """The classes whose recall rises by more than chance, the largest rise first."""
        found = (one for one in reversed(self.sorted) if one.change.above_zero and one.differs(self._level))
        return tuple(found)

    @property
    def _level(self) -> float:
        return (1 - LEVEL) / max(len(self.classes), 1)

    @property
    def given_up(self) -> tuple[ClassRecall, ...]:
        """Classes that are never predicted any more, besides those whose fall is more than chance."""
        told = {one.index for one in self.falling}
        return tuple(one for one in self.sorted if one.is_given_up and one.index not in told)

    @cached_property
    def sorted(self) -> tuple[ClassRecall, ...]:
        """From the largest fall to the largest rise."""
        return tuple(sorted(self.classes, key=lambda one: one.change.value))

    def numbers(self) -> dict[str, Any]:
        """As plain data, for scripts."""
        return {
            "predictions_changed": self.changed,
            "falls_beyond_chance": [one.name for one in self.falling],
            "never_predicted_any_more": [one.name for one in self.sorted if one.is_given_up],
            "classes": [one.numbers() for one in self.classes],
        }


class RecallCounts:
    """Counts of a stream of examples, by class; their size does not depend on how many examples there are."""

    def __init__(self, classes: int) -> None:
        # Labels, right before, right after, lost, gained, predicted before, predicted after.
        self.counts = torch.zeros(7, classes, dtype=torch.int64)
        self.changed = 0

    def add(self, before: Tensor, after: Tensor, labels: Tensor) -> None:
        """Some examples more: two predictions (n,) and the labels."""
        right, still = before == labels, after == labels
        columns = (
            labels,
            labels[right],
            labels[still],
            labels[right & ~still],
            labels[still & ~right],
            before,
            after,
        )
        classes = self.counts.shape[1]
        self.counts += torch.stack([torch.bincount(one, minlength=classes) for one in columns])
        self.changed += int((before != after).sum())

    def recalls(self, names: Sequence[str] | None = None) -> Recalls:
        """All classes that have examples."""
        rows = enumerate(self.counts.T.tolist())
        told = (ClassRecall(k, names[k] if names else f"class {k}", *row) for k, row in rows if row[0])
        return Recalls(tuple(told), self.changed)


def recalls_of(
    before: Tensor, after: Tensor, labels: Tensor, classes: int, names: Sequence[str] | None = None
) -> Recalls:
    """Recalls of two predictions (N,) of the same examples.

    >>> labels = torch.tensor([0, 0, 0, 1, 1])
    >>> found = recalls_of(torch.tensor([0, 1, 0, 1, 1]), torch.tensor([0, 0, 0, 0, 1]), labels, classes=2)
    >>> [(one.name, round(one.before.value, 2), one.after.value) for one in found.classes]
    [('class 0', 0.67, 1.0), ('class 1', 1.0, 0.5)]
    >>> found.changed, found.falling
    (2, ())
    """
    counts = RecallCounts(classes)
    counts.add(before, after, labels)
    return counts.recalls(names)


def _share(count: int, examples: int) -> Estimate:
    share, n = (torch.tensor(one, dtype=torch.float64, device="cpu") for one in (count / examples, examples))
    low, high = calibration.wilson(share, n, LEVEL)
    return Estimate(count / examples, float(low), float(high))
