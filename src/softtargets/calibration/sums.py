"""Everything calibration needs to remember of a stream: sums, which can be added up; and what those by class say."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import partial

import torch
from torch import Tensor

from softtargets.arrays import ArrayLike
from softtargets.calibration.confidence_cells import bin_edges
from softtargets.calibration.counting import edges_of, sum_up
from softtargets.calibration.scores import Scores, as_scores
from softtargets.calibration.workspace import Workspace

CLASSES_AT_ONCE = 1 << 16
RANKS = 5  # how many ranks of the label are told apart: top-1 to top-5


@dataclass
class CalibrationSums:
    """Sums over examples, from which all metrics of `Calibration` follow; its size does not depend on how many.

    `cell_*` are counts, confidences and correct predictions by cell of the top label's confidence (see
    `softtargets.calibration.confidence_cells`); `class_*` (K, bins) counts, probabilities and positives (examples whose
    label it is) by class and bin of its probability; `ranks` how often the label was ranked first to fifth; `moments`
    sums of NLL and Brier score and of their squares. Sums are float64, counts int64, all on one device.

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
        cells = len(edges_of(bins, torch.device("cpu"))[1]) + 1

        numbers = partial(torch.zeros, dtype=torch.int64, device=device)
        sums = partial(torch.zeros, dtype=torch.float64, device=device)
        return cls(
            cell_counts=numbers(cells),
            cell_confidence=sums(cells),
            cell_correct=numbers(cells),
            class_counts=numbers(classes, bins),
            class_probability=sums(classes, bins),
            class_positives=numbers(classes, bins),
            ranks=numbers(RANKS),
            moments=sums(4),
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
        rows = as_scores(scores, labels, from_logits=from_logits, ignore_index=ignore_index)
        return cls.empty(rows.classes, bins, rows.device).add_scores(rows)

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

    def by_class(self) -> Iterator[tuple[Tensor, ...]]:
        """Counts, probabilities and positives of some classes at a time: a million of them take 120 MB each."""
        tables = (self.class_counts, self.class_probability, self.class_positives)
        return zip(*(table.split(CLASSES_AT_ONCE) for table in tables), strict=True)

    def tensors(self) -> dict[str, Tensor]:
        """The sums by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def add(
        self,
        scores: ArrayLike,
        labels: ArrayLike,
        *,
        from_logits: bool,
        ignore_index: int | None = None,
        checked: bool = False,
    ) -> CalibrationSums:
        """Add examples, in place: scores (..., K), labels (...). Returns itself.

        Rows whose label is `ignore_index` are not counted and may hold anything. If anything is wrong with the others,
        nothing is added. Scores that were `checked`, as those of `softtargets.predictions` are, are taken as they are.
        """
        return self.add_scores(
            as_scores(scores, labels, from_logits=from_logits, ignore_index=ignore_index, checked=checked)
        )

    def add_scores(self, scores: Scores, workspace: Workspace | None = None) -> CalibrationSums:
        """Add examples whose labels have been checked; a workspace that is kept makes many small batches faster."""
        if scores.classes != self.classes:
            raise ValueError(
                f"{scores.name} must have a column for each of the {self.classes} classes, not {scores.classes}"
            )

        new = CalibrationSums.empty(self.classes, self.bins, scores.device)
        return self.merge(sum_up(scores, new, workspace or Workspace()))

    def merge(self, other: CalibrationSums) -> CalibrationSums:
        """Add the sums of other examples, in place. Returns itself."""
        if (self.classes, self.bins) != (other.classes, other.bins):
            raise ValueError(
                f"sums can only be added if they have the same numbers of classes and bins, not {self.classes} "
                f"classes in {self.bins} bins and {other.classes} classes in {other.bins} bins"
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


@dataclass(frozen=True)
class BrierDecomposition:
    """`score` = `reliability` - `resolution` + `uncertainty` + `within_bins`; see `brier_decomposition`."""

    score: float
    reliability: float
    resolution: float
    uncertainty: float
    within_bins: float


def classwise_error(sums: CalibrationSums) -> float:
    """The mean over classes of the error of each class's probability, in equal-width bins."""
    gaps = [float((p - y).abs().sum()) for _, p, y in sums.by_class()]
    return math.fsum(gaps) / sums.classes / sums.examples


def decompose(sums: CalibrationSums) -> BrierDecomposition:
    """The parts of the Brier score, each added up over classes."""
    examples = sums.examples
    parts = []
    for some in sums.by_class():
        counts, probability, positives = (table.double() for table in some)
        n = counts.clamp(min=1)
        share, rate, base = counts / examples, positives / n, positives.sum(1, keepdim=True) / examples
        off = (share * (probability / n - rate).square()).sum()
        parts.append(
            (float(off), float((share * (rate - base).square()).sum()), float((base * (1 - base)).sum()))
        )
    reliability, resolution, uncertainty = map(math.fsum, zip(*parts, strict=True))
    score = float(sums.moments[2] / examples)
    within_bins = score - (reliability - resolution + uncertainty)
    return BrierDecomposition(score, reliability, resolution, uncertainty, within_bins)
