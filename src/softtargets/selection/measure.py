"""Selective prediction, all of it: areas, accuracy at chosen coverages, coverage at chosen accuracies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from softtargets.arrays import ArrayLike, single_or_double
from softtargets.calibration import as_scores, logits_from_probabilities, rows_of_a_piece
from softtargets.selection.confidence import POWERS, certainty_and_class, normalised_by_powers
from softtargets.selection.curve import Numbers, RiskCoverage, risk_coverage
from softtargets.selection.intervals import Interval, accuracy_intervals, area_intervals

COVERAGES = (0.5, 0.7, 0.8, 0.9, 0.95, 1.0)
ACCURACIES = (0.9, 0.95, 0.99)


@dataclass(frozen=True)
class AtCoverage:
    """The accuracy of the most confident share of the examples, those of at least a threshold."""

    coverage: float
    accuracy: float
    low: float
    high: float
    threshold: float


@dataclass(frozen=True)
class AtAccuracy:
    """The largest share that a threshold can accept so that those accepted are as accurate as wanted.

    Examples of the same confidence are accepted together or not at all. At `low` even the lower end of the
    accuracy's interval reaches the target, at `high` only the upper end. If no threshold reaches it, nothing is
    accepted (0, threshold None).
    """

    accuracy: float
    coverage: float
    low: float
    high: float
    threshold: float | None


@dataclass(frozen=True, eq=False)
class Selection:
    """What rejecting the least confident predictions does; each area is what the property of `RiskCoverage` says.

    `intervals` has (low, high) by the name of an area.
    """

    examples: int
    accuracy: float
    aurc: float
    best_aurc: float
    excess_aurc: float
    augrc: float
    at_coverage: tuple[AtCoverage, ...]
    at_accuracy: tuple[AtAccuracy, ...]
    intervals: dict[str, Interval]
    curve: RiskCoverage = field(repr=False)

    def __repr__(self) -> str:
        at = ", ".join(f"{100 * one.accuracy:.2f} % at {100 * one.coverage:g} %" for one in self.at_coverage)
        areas = f"AURC {self.aurc:.4g}, E-AURC {self.excess_aurc:.4g}, AUGRC {self.augrc:.4g}"
        return f"Selection({self.examples} examples: {areas}; accuracy over coverage: {at})"

    def numbers(self) -> dict[str, Any]:
        """All of it but the curve as plain data, for scripts."""
        areas = ("aurc", "best_aurc", "excess_aurc", "augrc")
        return {
            "examples": self.examples,
            "accuracy": self.accuracy,
            **{name: getattr(self, name) for name in areas},
            "intervals": {name: list(ends) for name, ends in self.intervals.items()},
            "at_coverage": [asdict(one) for one in self.at_coverage],
            "at_accuracy": [asdict(one) for one in self.at_accuracy],
        }


def measure_selection(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    from_logits: bool,
    coverages: Sequence[float] = COVERAGES,
    accuracies: Sequence[float] = ACCURACIES,
    ignore_index: int | None = None,
    level: float = 0.95,
) -> Selection:
    """Selective prediction by the maximum probability, from scores (..., K) and labels (...).

    Scores are read piece by piece; only two numbers per example are kept. Rows whose label is `ignore_index` are
    not counted. Predictions are those of argmax, of equal scores the first. See `RiskCoverage` for ties and
    `softtargets.selection.intervals` for intervals. In simulations (200 to 5000 examples, error rates of 1 to 40 %,
    1000 repetitions each) intervals of 95 % held the true AURC in 93 to 98 % of cases, its excess in 93 to 99 %,
    the AUGRC in 94 to 98 % and the accuracy at a coverage in 92 to 99 %, once 85 % (docs/selection.md; again by
    ``python -m softtargets.selection.simulate``).

    >>> import torch
    >>> scores = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.4, 0.6]])
    >>> found = measure_selection(scores, torch.tensor([0, 1, 0, 0]), from_logits=False, coverages=[0.75])
    >>> found.accuracy, found.at_coverage[0].accuracy, round(found.at_coverage[0].threshold, 2), found.excess_aurc
    (0.75, 1.0, 0.7, 0.0)
    """
    rows = ConfidenceRows(from_logits=from_logits)
    given = as_scores(scores, labels, from_logits=from_logits, ignore_index=ignore_index)
    for start in given.starts:
        rows.add(*given.checked_piece(start))
    return selection_of(rows.curve(), coverages=coverages, accuracies=accuracies, level=level, origin=1.0)


def selection_of(
    curve: RiskCoverage,
    *,
    coverages: Sequence[float] = COVERAGES,
    accuracies: Sequence[float] = ACCURACIES,
    level: float = 0.95,
    origin: float = 0.0,
) -> Selection:
    """The same of any score, as a curve. `origin` is added to thresholds, 1 for `less_than_certain`."""
    shares = np.asarray(coverages, dtype=np.float64)
    bands = accuracy_intervals(curve, shares, level)
    ends = curve.ends
    at_ends = accuracy_intervals(curve, ends / curve.examples, level)
    return Selection(
        examples=curve.examples,
        accuracy=curve.accuracy,
        aurc=curve.aurc,
        best_aurc=curve.best_aurc,
        excess_aurc=curve.excess_aurc,
        augrc=curve.augrc,
        at_coverage=tuple(
            AtCoverage(c, curve.accuracy_at(c), low, high, origin + curve.threshold_at(c))
            for c, low, high in zip(shares.tolist(), *(band.tolist() for band in bands), strict=True)
        ),
        at_accuracy=tuple(_at_accuracy(curve, float(wanted), ends, at_ends, origin) for wanted in accuracies),
        intervals=area_intervals(curve, level),
        curve=curve,
    )


def _at_accuracy(
    curve: RiskCoverage, wanted: float, ends: Any, bands: tuple[Numbers, Numbers], origin: float
) -> AtAccuracy:
    if not 0 < wanted <= 1:
        raise ValueError(f"a target accuracy must be above 0 and at most 1, such as 0.99, not {wanted}")
    accuracy = 1 - curve.errors[ends - 1] / ends
    low, value, high = (_last(ends, band >= wanted - 1e-12) for band in (bands[0], accuracy, bands[1]))
    threshold = origin + float(curve.confidence[value - 1]) if value else None
    n = curve.examples
    return AtAccuracy(wanted, value / n, low / n, high / n, threshold)


def _last(ends: Any, holds: Any) -> int:
    found = np.flatnonzero(holds)
    return int(ends[found[-1]]) if len(found) else 0


class ConfidenceRows:
    """The confidence of each row of scores and whether its prediction is right; `normalised` logits on demand.

    Of probabilities the logarithms are normalised, with that of `floor` for 0 (`logits_from_probabilities`).
    """

    def __init__(self, *, from_logits: bool, normalise: bool = False, floor: float | None = None) -> None:
        self.from_logits, self.normalise, self.floor = from_logits, normalise, floor
        self._confidence: list[Tensor] = []
        self._correct: list[Tensor] = []
        self._normalised: list[Tensor] = []

    def add(self, scores: Tensor, labels: Tensor, logits: Tensor | None = None) -> None:
        """Some rows (n, K) more, which have been looked at; `logits` are those of probabilities, if known already."""
        for start in range(0, len(scores), step := rows_of_a_piece(scores)):
            some = slice(start, start + step)
            self._add(scores[some], labels[some], None if logits is None else logits[some])

    def _add(self, scores: Tensor, labels: Tensor, logits: Tensor | None) -> None:
        confidence, predicted = certainty_and_class(scores, from_logits=self.from_logits)
        self._confidence.append(confidence.cpu())
        self._correct.append((predicted == labels).cpu())
        if self.normalise:
            if logits is None and not self.from_logits:
                logits = logits_from_probabilities(scores, floor=self.floor, checked=True)
            logits = scores if logits is None else logits
            self._normalised.append(normalised_by_powers(single_or_double(logits)).cpu())

    @property
    def correct(self) -> Tensor:
        """Whether each example is right (n,)."""
        return torch.cat(self._correct)

    @property
    def confidence(self) -> Tensor:
        """The maximum probability of each example less 1 (n,): `less_than_certain`."""
        return torch.cat(self._confidence)

    def curve(self) -> RiskCoverage:
        """The curve of the maximum probability."""
        return risk_coverage(self.confidence, self.correct)

    def normalised(self) -> dict[int, Tensor]:
        """Normalised logits (n,) by their p."""
        return dict(zip(POWERS, torch.cat(self._normalised).unbind(-1), strict=True))
