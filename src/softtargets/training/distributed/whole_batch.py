"""A batch of which every process has some rows: what is summed or sorted over all of them."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from softtargets.training.distributed.crew import Crew


class WholeBatch:
    """The batch of the step at hand, of which this process has its share of the rows.

    Where there are fewer rows than processes, some have none. They are `idle`: they compute with one row all the same,
    which no label, sum or average counts, so that they take part in every exchange.
    """

    def __init__(self, crew: Crew) -> None:
        self.crew = crew
        self.idle = False
        self._labels = 0
        self._own = slice(0)
        self._within = 0

    def __deepcopy__(self, memo: Any) -> WholeBatch:
        """Copies of a net belong to the same batch."""
        return self

    def is_of(self, rows: int, labels: int) -> slice:
        """Say how many rows the next batch has, and how many labels; returns which rows are this process's."""
        own, each = self.crew.share.rows(rows), labels // rows
        self.idle = own.stop == own.start
        self._labels, self._own = labels, slice(own.start * each, own.stop * each)
        self._within = each if self.idle else self._own.stop - self._own.start
        return own

    @property
    def labels(self) -> int:
        """How many there are, those that do not count included."""
        return self._labels

    def added_up(self, own: Tensor) -> Tensor:
        """The sum of what each process has made of its rows."""
        return self.crew.added_up_(own.clone())

    def all_labels(self, own: Tensor) -> Tensor:
        """One number for each label, (labels,), of this process's (own labels,)."""
        room = own.new_zeros(self._labels)
        if not self.idle:
            room[self._own] = own
        return self.crew.added_up_(room)

    def own_labels(self, everyones: Tensor) -> Tensor:
        """Of one number for each label, (labels,), those of this process."""
        return everyones[: self._within] if self.idle else everyones[self._own]
