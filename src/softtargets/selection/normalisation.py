"""Is the order of normalised logits better than that of probabilities, on examples that did not choose the norm?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from softtargets.arrays import ArrayLike
from softtargets.calibration import as_scores, fold_of, zero_floor
from softtargets.selection.curve import Numbers, RiskCoverage, in_order, risk_coverage
from softtargets.selection.intervals import aurc_difference
from softtargets.selection.measure import ConfidenceRows

NORMALISATION_FOLDS = 5
FEWEST = 100  # examples: of fewer, parts have too few mistakes to choose by


@dataclass(frozen=True, eq=False)
class LogitNormalisation:
    """Normalised logits against the maximum probability.

    `p` has the least AURC of all examples, None where that is the maximum probability's: then nothing is normalised
    (the fall-back of Cattelan & Silva 2024). `held_out` are the p chosen without each fold, and `curve` orders the
    examples of a fold by the p chosen without them. `difference` is its AURC less that of the maximum probability,
    with its interval. `why_not` says why none was tried, if none was.
    """

    p: int | None = None
    held_out: tuple[int | None, ...] = ()
    difference: tuple[float, float, float] = (0.0, 0.0, 0.0)
    curve: RiskCoverage | None = field(default=None, repr=False)
    why_not: str = ""

    @property
    def is_better(self) -> bool:
        """Whether to recommend it: the whole interval of the difference is below 0, and there is a p to recommend."""
        return self.p is not None and self.difference[2] < 0

    def numbers(self) -> dict[str, Any]:
        """All of it but the curve as plain data, for scripts."""
        value, low, high = self.difference
        return {
            "p": self.p,
            "held_out": list(self.held_out),
            "aurc": self.curve.aurc if self.curve else None,
            "aurc_difference": {"value": value, "low": low, "high": high} if self.curve else None,
            "is_better": self.is_better,
            "why_not": self.why_not or None,
        }


def fit_normalisation(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    from_logits: bool = True,
    ignore_index: int | None = None,
    seed: int = 0,
) -> LogitNormalisation:
    """Choose the p of `normalised_logits` by AURC, and measure what it gains on examples held out.

    From scores (..., K) and labels (...). Where they are probabilities their logarithms serve, with that of
    `zero_floor` for 0.

    >>> import torch
    >>> random = torch.Generator().manual_seed(0)
    >>> labels = torch.randint(10, (2000,), generator=random)
    >>> clear = torch.rand(2000, 1, generator=random)
    >>> logits = torch.randn(2000, 10, generator=random) + 6 * clear * torch.eye(10)[labels]
    >>> logits = logits * torch.exp(torch.randn(2000, 1, generator=random))  # lengths that mean nothing
    >>> found = fit_normalisation(logits, labels)
    >>> found.is_better, round(found.difference[0], 2)
    (True, -0.04)
    """
    given = as_scores(scores, labels, from_logits=from_logits, ignore_index=ignore_index)
    floor = None if from_logits else zero_floor(scores, labels, ignore_index=ignore_index)
    rows = ConfidenceRows(from_logits=from_logits, normalise=True, floor=floor)
    for start in given.starts:
        rows.add(*given.checked_piece(start))
    return normalisation_of(rows, given.classes, seed=seed)


def normalisation_of(rows: ConfidenceRows, classes: int, *, seed: int = 0) -> LogitNormalisation:
    """The same for rows that were collected before."""
    plain = rows.curve()
    if classes < 3:
        return LogitNormalisation(why_not="with two classes all normalised logits are equal")
    if plain.examples < FEWEST:
        return LogitNormalisation(
            why_not=f"{plain.examples} examples are too few to hold some out; at least {FEWEST} are needed"
        )
    if plain.mistakes in (0, plain.examples):
        which = "wrong" if plain.mistakes else "right"
        return LogitNormalisation(why_not=f"all predictions are {which}, so there is nothing to tell apart")
    fold = fold_of(0, plain.examples, NORMALISATION_FOLDS, seed).numpy()
    parts = [fold != held_out for held_out in range(NORMALISATION_FOLDS)]
    scores = rows.normalised()

    def curve_of(p: int | None) -> RiskCoverage:
        return plain if p is None else risk_coverage(scores[p], rows.correct)

    # One curve at a time: all of them together would take more memory than what they are made of.
    areas = {p: _areas(curve_of(p), parts) for p in (None, *scores)}
    everywhere, *chosen = (_least({p: found[i] for p, found in areas.items()}) for i in range(len(parts) + 1))
    if len(set(chosen)) == 1:  # one score for all: its order needs no further words
        curve = curve_of(chosen[0])
    else:
        curve = risk_coverage(_ranks({p: curve_of(p) for p in set(chosen)}, chosen, fold), rows.correct)
    return LogitNormalisation(everywhere, tuple(chosen), aurc_difference(plain, curve), curve)


def _areas(curve: RiskCoverage, parts: Sequence[Any]) -> list[float]:
    """The area of all examples, and of all but each of the parts."""
    return [curve.aurc, *(_among(curve, kept).aurc for kept in parts)]


def _least(areas: Mapping[int | None, float]) -> int | None:
    """The first with the least area: the maximum probability, unless another is better."""
    return min(areas, key=lambda p: areas[p])


def _among(curve: RiskCoverage, kept: Any) -> RiskCoverage:
    """The curve of some of the examples, which need not be sorted again."""
    some = kept[curve.order]
    places = np.cumsum(kept) - 1
    return in_order(curve.confidence[some], curve.wrong[kept], places[curve.order[some]])


def _ranks(curves: Mapping[int | None, RiskCoverage], chosen: Sequence[int | None], fold: Any) -> Numbers:
    """Scores of different p cannot be compared: the rank of each example within its part can, from 1 down to 0."""
    found = np.empty(len(fold))
    for part, p in enumerate(chosen):
        curve = _among(curves[p], fold == part)
        middle = np.bincount(curve.group, np.arange(curve.examples) + 0.5) / np.bincount(curve.group)
        ranks = np.empty(curve.examples)
        ranks[curve.order] = 1 - middle[curve.group] / curve.examples
        found[fold == part] = ranks
    return found
