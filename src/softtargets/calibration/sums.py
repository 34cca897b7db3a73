"""Everything calibration needs to remember of a stream: sums, which can be added up."""

from __future__ import annotations

import operator
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from softtargets.arrays import ArrayLike
from softtargets.calibration.cells import bin_edges, cell_edges
from softtargets.calibration.given import Given, as_given
from softtargets.calibration.rows import Rows, rows_of
from softtargets.calibration.threads import in_threads

RANKS = 5  # how many ranks of the label are told apart: top-1 to top-5


@dataclass
class CalibrationSums:
    """Sums over examples, from which all metrics of `Calibration` follow; its size does not depend on how many.

    `cell_*` are counts, confidences and correct predictions by cell of the top label's confidence (see
    `softtargets.calibration.cells`); `class_*` (K, bins) counts, probabilities and positives (examples whose label it
    is) by class and bin of its probability; `ranks` how often the label was ranked first to fifth; `moments` sums of
    NLL and Brier score and of their squares. Sums are float64, counts int64, all on one device.

    >>> a, b = (CalibrationSums.empty(classes=2) for _ in range(2))
    >>> _ = a.add(torch.tensor([[0.9, 0.1]]), torch.tensor([0]), from_logits=False)
    >>> _ = b.add(torch.tensor([[0.7, 0.3], [0.2, 0.8]]), torch.tensor([1, 1]), from_logits=False)
    >>> (a + b).examples
    3
    """

    cell_counts: Tensor
    cell_confidence: Tensor
    cell_correct: Tensor
    class_counts: Tensor
    class_probability: Tensor
    class_positives: Tensor
    ranks: Tensor
    moments: Tensor

    @classmethod
    def empty(cls, classes: int, bins: int = 15, device: torch.device | str = "cpu") -> CalibrationSums:
        """The sums over no examples."""
        if operator.index(classes) < 1:
            raise ValueError(f"classes must be at least 1, not {classes}")
        bins = len(bin_edges(bins)) - 1
        cells = len(cell_edges(bins)) + 1

        def zeros(*shape: int, dtype: torch.dtype) -> Tensor:
            return torch.zeros(shape, dtype=dtype, device=device)

        return cls(
            cell_counts=zeros(cells, dtype=torch.int64),
            cell_confidence=zeros(cells, dtype=torch.float64),
            cell_correct=zeros(cells, dtype=torch.int64),
            class_counts=zeros(classes, bins, dtype=torch.int64),
            class_probability=zeros(classes, bins, dtype=torch.float64),
            class_positives=zeros(classes, bins, dtype=torch.int64),
            ranks=zeros(RANKS, dtype=torch.int64),
            moments=zeros(4, dtype=torch.float64),
        )

    @classmethod
    def of(
        cls,
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        from_logits: bool,
        bins: int = 15,
        ignore_index: int | None = None,
    ) -> CalibrationSums:
        """The sums over these examples, on their device; see `add`."""
        given = as_given(scores, labels, from_logits=from_logits, ignore_index=ignore_index)
        return cls.empty(given.classes, bins, given.scores.device)._add(given)

    @property
    def classes(self) -> int:
        """The number of classes."""
        return self.class_counts.shape[0]

    @property
    def bins(self) -> int:
        """The number of equal-width bins."""
        return self.class_counts.shape[1]

    @property
    def device(self) -> torch.device:
        """Where the sums are."""
        return self.moments.device

    @property
    def examples(self) -> int:
        """How many examples have been added."""
        return int(self.cell_counts.sum())

    def tensors(self) -> dict[str, Tensor]:
        """The sums by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def add(
        self, scores: ArrayLike, labels: ArrayLike, *, from_logits: bool, ignore_index: int | None = None
    ) -> CalibrationSums:
        """Add examples, in place: scores (..., K), labels (...). Returns itself.

        Rows whose label is `ignore_index` are not counted and may hold anything. If anything is wrong with the others,
        nothing is added.
        """
        return self._add(as_given(scores, labels, from_logits=from_logits, ignore_index=ignore_index))

    def _add(self, given: Given) -> CalibrationSums:
        if given.classes != self.classes:
            raise ValueError(
                f"{given.name} must have a column for each of the {self.classes} classes, not {given.classes}"
            )

        def count(part: range) -> CalibrationSums:
            new = CalibrationSums.empty(self.classes, self.bins, given.scores.device)
            counting = _Counting(new)
            for rows in rows_of(given, part):
                counting.add(rows)
            counting.finish(len(part))
            return new

        for new in in_threads(count, given):
            self.merge(new)
        return self

    def merge(self, other: CalibrationSums) -> CalibrationSums:
        """Add the sums of other examples, in place. Returns itself."""
        if (self.classes, self.bins) != (other.classes, other.bins):
            raise ValueError(
                f"sums must be of the same classes and bins to be added, not {self.classes} classes in {self.bins} "
                f"bins and {other.classes} classes in {other.bins} bins"
            )
        for name, tensor in self.tensors().items():
            tensor.add_(getattr(other, name).to(tensor.device))
        return self

    def __add__(self, other: CalibrationSums) -> CalibrationSums:
        return self.to(self.device, copy=True).merge(other)

    def to(self, device: torch.device | str, copy: bool = False) -> CalibrationSums:
        """The same sums on another device."""
        return CalibrationSums(
            **{name: tensor.to(device, copy=copy) for name, tensor in self.tensors().items()}
        )


class _Counting:
    """Adding rows to sums, piece after piece. Nothing here waits for the device."""

    def __init__(self, sums: CalibrationSums) -> None:
        self.sums = sums
        self.edges = bin_edges(sums.bins).to(sums.device)[1:-1]
        self.cells = cell_edges(sums.bins).to(sums.device)
        self.columns = torch.zeros(sums.classes, dtype=torch.float64, device=sums.device)

    def add(self, rows: Rows) -> None:
        sums, bins = self.sums, self.sums.bins
        one = torch.ones_like(rows.labels)
        cell = torch.bucketize(rows.confidence, self.cells, right=True)
        sums.cell_counts.index_add_(0, cell, one)
        sums.cell_confidence.index_add_(0, cell, rows.confidence)
        sums.cell_correct.index_add_(0, cell, (rows.rank == 0).long())
        within = rows.rank < RANKS
        sums.ranks.index_add_(0, rows.rank.clamp(max=RANKS - 1), within.long())
        sums.moments.add_(
            torch.stack(
                [rows.nll.sum(), rows.nll.square().sum(), rows.brier.sum(), rows.brier.square().sum()]
            )
        )
        place = rows.labels * bins + torch.bucketize(rows.at_label, self.edges, right=True)
        sums.class_positives.view(-1).index_add_(0, place, one)
        self.columns.add_(rows.probabilities.sum(0))
        if bins > 1:
            classes, p = _large(rows, bins)
            place = classes * bins + torch.bucketize(p, self.edges, right=True)
            sums.class_counts.view(-1).index_add_(0, place, torch.ones_like(place))
            sums.class_probability.view(-1).index_add_(0, place, p)

    def finish(self, examples: int) -> None:
        """The first bin of each class holds whatever is in no other."""
        counts, probability = self.sums.class_counts, self.sums.class_probability
        counts[:, 0] = examples - counts[:, 1:].sum(1)
        # Rounding may leave less than nothing where every probability lies in another bin.
        rest = (self.columns - probability[:, 1:].sum(1)).clamp_(min=0)
        probability[:, 0] = torch.where(counts[:, 0] > 0, rest, torch.zeros_like(rest))


def _large(rows: Rows, bins: int) -> tuple[Tensor, Tensor]:
    """Classes and probabilities of all entries beyond the first bin, perhaps with a few that are not.

    An example has at most `bins` of them, since they add up to 1.
    """
    p = rows.probabilities
    if p.device.type != "cpu":
        values, classes = p.topk(min(bins, p.shape[1]), dim=1)
        return classes.flatten(), values.flatten().double()
    # A little below the edge, which single precision may not hold; what then lies in the first bin does not matter.
    edge = (1 - 1e-6) / bins
    mask = torch.ge(p, edge, out=rows.scratch)
    # To search is slow, and most rows have one or two: sums of places and of their squares say where.
    numbers = torch.arange(p.shape[1], dtype=p.dtype)
    many, places, squares = mask.sum(1), mask.mv(numbers).double(), mask.mv(numbers.square()).double()
    apart = (2 * squares - places.square()).clamp_(min=0).sqrt_()
    first, second = (places - apart) / 2, (places + apart) / 2
    one, two = (many == 1).nonzero().squeeze(1), (many == 2).nonzero().squeeze(1)
    row, column = (
        torch.cat([one, two, two]),
        torch.cat([places[one], first[two], second[two]]).round_().long(),
    )
    values = p[row, column.clamp_(0, p.shape[1] - 1)]
    # Sums of many classes' squares, or products that a user wants less exact, may be off: those rows are searched too.
    wrong = torch.zeros(len(p), dtype=torch.bool).index_fill_(0, row[values < edge], True)
    wrong[two] |= column[len(one) : len(one) + len(two)] == column[len(one) + len(two) :]
    searched = (wrong | (many > 2)).nonzero().squeeze(1)
    kept = ~wrong[row]
    flat = p[searched].view(-1)
    where = (flat >= edge).nonzero().squeeze(1)
    classes = torch.cat([column[kept], where % p.shape[1]])
    return classes, torch.cat([values[kept], flat[where]]).double()
