"""Calibration of each class against the rest: Platt scaling, isotonic regression, histogram binning.

All give a module that turns scores into probabilities. With two classes one function is fitted, to the second class;
with more, one for each class, and probabilities are divided by their sum (Zadrozny & Elkan 2002). They can change which
class is the likeliest. A class without an example, and one that every example has, is left as the model has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from softtargets.arrays import ArrayLike, as_tensor
from softtargets.calibration.chunks import as_chunks
from softtargets.calibration.correction import Kind
from softtargets.calibration.modules import HistogramBinning, IsotonicScaling, PlattScaling, log_odds
from softtargets.calibration.zeros import zero_floor

Numbers = NDArray[np.float64]
# Of the scores of a class, whether it is the label, and weights.
Fitted = Callable[[Numbers, Numbers, Numbers], tuple[Numbers, Numbers]]

TOLERANCE, MOST_STEPS = 1e-12, 100


def platt_scaling(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    from_logits: bool = True,
    weights: ArrayLike | None = None,
    ignore_index: int | None = None,
) -> PlattScaling:
    r"""Fit sigmoid(a s + b) to each class, where s is its log-odds :math:`\log p - \log(1 - p)`; Platt 1999.

    The labels 1 and 0 of N+ and N- examples count as (N+ + 1) / (N+ + 2) and 1 / (N- + 2), which is Platt's guard
    against scores that separate the classes. By Newton's method with a line search (Lin, Lin & Weng 2007). With two
    classes the log-odds are the difference of the logits, and a, b those of scikit-learn's ``method="sigmoid"`` on
    ``decision_function``. `weights` as in `temperature_scaling`.

    >>> logits = torch.tensor([[0.0, 4.0]] * 40 + [[0.0, -4.0]] * 40)
    >>> labels = torch.tensor([1] * 30 + [0] * 40 + [1] * 10)
    >>> module = platt_scaling(logits, labels)
    >>> print([round(p, 2) for p in module(logits[[0, -1]])[:, 1].tolist()])
    [0.74, 0.26]
    """
    rows = _read(scores, labels, from_logits, weights, ignore_index)
    slope, intercept = _each(log_odds(rows.logits), rows, _sigmoid, (np.ones(1), np.zeros(1)))
    return PlattScaling(slope.squeeze(1), intercept.squeeze(1), kind=rows.kind, floor=rows.floor)


def isotonic_regression(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    from_logits: bool = True,
    weights: ArrayLike | None = None,
    ignore_index: int | None = None,
) -> IsotonicScaling:
    """Fit a function of each class's probability that never falls (Zadrozny & Elkan 2002), by pooling neighbours.

    scikit-learn's ``IsotonicRegression`` of whether the class is the label on the probability of the class;
    straight lines between examples, constant beyond the lowest and highest. It needs many examples: with fewer than
    about a thousand it fits the scatter.

    >>> p = torch.tensor([0.1, 0.3, 0.5, 0.7])
    >>> module = isotonic_regression(torch.stack([1 - p, p], -1), torch.tensor([0, 1, 0, 1]), from_logits=False)
    >>> [round(x, 2) for x in module(torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.4, 0.6], [0.0, 1.0]]))[:, 1].tolist()]
    [0.0, 0.5, 0.75, 1.0]
    """
    rows = _read(scores, labels, from_logits, weights, ignore_index)
    ends = np.array([0.0, 1.0])
    places, values = _each(rows.probabilities, rows, _isotonic, (ends, ends))
    return IsotonicScaling(places, values, kind=rows.kind, floor=rows.floor)


def histogram_binning(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    bins: int = 15,
    edges: Literal["uniform", "quantile"] = "uniform",
    from_logits: bool = True,
    weights: ArrayLike | None = None,
    ignore_index: int | None = None,
) -> HistogramBinning:
    """Replace each class's probability by how often the class was the label in its bin (Zadrozny & Elkan 2001).

    Bins have equal width (`uniform`, as in `reliability`) or equally many examples (`quantile`). An empty bin gets
    the probability in its middle, which is about what the model predicts.

    >>> p = torch.tensor([0.1, 0.2, 0.6, 0.9])
    >>> fit = histogram_binning(torch.stack([1 - p, p], -1), torch.tensor([0, 1, 1, 1]), bins=2, from_logits=False)
    >>> fit(torch.tensor([[0.9, 0.1], [0.5, 0.5]]))
    tensor([[0.5000, 0.5000],
            [0.0000, 1.0000]])
    """
    if bins < 1:
        raise ValueError(f"bins must be at least 1, not {bins}")
    if edges not in ("uniform", "quantile"):
        raise ValueError(f"edges must be 'uniform' or 'quantile', not {edges!r}")
    rows = _read(scores, labels, from_logits, weights, ignore_index)

    def binned(p: Numbers, label: Numbers, weight: Numbers) -> tuple[Numbers, Numbers]:
        inner = np.arange(1, bins) / bins
        if edges == "quantile":
            inner = np.unique(_quantiles(p, weight, inner))
        which = np.searchsorted(inner, p, side="right")
        total = np.bincount(which, weight, len(inner) + 1)
        right = np.bincount(which, weight * label, len(inner) + 1)
        around = np.concatenate([[0.0], inner, [1.0]])
        middle = (around[1:] + around[:-1]) / 2
        return inner, np.where(total > 0, right / np.where(total > 0, total, 1.0), middle)

    steps = np.arange(1, bins) / bins
    alone = steps, (np.arange(bins) + 0.5) / bins
    places, values = _each(rows.probabilities, rows, binned, alone)
    return HistogramBinning(places, values, kind=rows.kind, floor=rows.floor)


@dataclass(frozen=True)
class _Rows:
    """The rows that count: logits and probabilities in double precision, labels, weights."""

    kind: Kind
    floor: float | None  # what a probability of 0 counts as
    logits: Tensor
    probabilities: Tensor
    labels: Tensor
    weights: Tensor


def _read(
    scores: ArrayLike,
    labels: ArrayLike,
    from_logits: bool,
    weights: ArrayLike | None,
    ignore_index: int | None,
) -> _Rows:
    floor = None if from_logits else zero_floor(scores, labels, ignore_index=ignore_index)
    chunks = as_chunks(scores, labels, ignore_index=ignore_index, from_logits=from_logits, weights=weights)
    chunks.floor = floor
    logits, codes, counts = [], [], []
    for z, y, w in chunks.weighted():
        logits.append(z.cpu())
        codes.append(y.cpu())
        counts.append(torch.ones(len(y), dtype=torch.float64) if w is None else w.cpu())
    z, y, w = torch.cat(logits).double(), torch.cat(codes), torch.cat(counts)
    if from_logits:
        p = z.softmax(-1)
    else:  # as they were given: those by way of their logarithms have no zeros
        given = as_tensor(scores).detach().cpu()
        p = given.reshape(-1, given.shape[-1]).double()
        if ignore_index is not None:
            p = p[as_tensor(labels).cpu().reshape(-1) != ignore_index]
    counted = w > 0
    kind: Kind = "logits" if from_logits else "probabilities"
    return _Rows(kind, floor, z[counted], p[counted], y[counted], w[counted])


def _each(values: Tensor, rows: _Rows, fit: Fitted, alone: tuple[Numbers, Numbers]) -> tuple[Tensor, Tensor]:
    """Two tables with a row for each class; `alone` is the row of one about which nothing can be learnt."""
    y, w = rows.labels.numpy(), rows.weights.numpy()
    found = []
    for k in range(values.shape[1]):
        own = (y == k).astype(np.float64)
        known = 0 < float(own.mean()) < 1 and not (values.shape[1] == 2 and k == 0)
        found.append(fit(values[:, k].contiguous().numpy(), own, w) if known else alone)
    return tuple(  # type: ignore[return-value]
        torch.from_numpy(np.stack(list(_filled([pair[which] for pair in found], which == 0))))
        for which in (0, 1)
    )


def _filled(rows: Sequence[Numbers], places: bool) -> Iterator[Numbers]:
    """Rows of one length: places are filled up with infinity, values with the last of them."""
    most = max(map(len, rows))
    for row in rows:
        fill = np.inf if places else row[-1]
        yield np.concatenate([row, np.full(most - len(row), fill)])


def _isotonic(p: Numbers, label: Numbers, weight: Numbers) -> tuple[Numbers, Numbers]:
    from sklearn.isotonic import IsotonicRegression  # takes a while to import

    found = IsotonicRegression(out_of_bounds="clip", y_min=0, y_max=1).fit(p, label, sample_weight=weight)
    return found.X_thresholds_.astype(np.float64), found.y_thresholds_.astype(np.float64)


def _sigmoid(score: Numbers, label: Numbers, weight: Numbers) -> tuple[Numbers, Numbers]:
    """Newton's method for Platt's likelihood; slope and intercept."""
    positive, negative = float(weight @ label), float(weight @ (1 - label))
    target = np.where(label > 0, (positive + 1) / (positive + 2), 1 / (negative + 2))
    scale = float(np.abs(score).max()) or 1.0
    design = np.stack([score / scale, np.ones_like(score)], 1)

    def loss(at: Numbers) -> float:
        a = design @ at
        return float(weight @ (np.logaddexp(0, a) - target * a))

    place = np.array([0.0, np.log((positive + 1) / (negative + 1))])
    value = loss(place)
    for _ in range(MOST_STEPS):
        p = 1 / (1 + np.exp(-np.clip(design @ place, -700, 700)))
        slope = design.T @ (weight * (p - target))
        curvature = (design * (weight * p * (1 - p))[:, None]).T @ design + TOLERANCE * np.eye(2)
        step = np.linalg.solve(curvature, slope)
        size = 1.0
        while size > 1e-10 and (new := loss(place - size * step)) > value - 1e-4 * size * float(slope @ step):
            size /= 2
        if size <= 1e-10:
            break
        place, gained, value = place - size * step, value - new, new
        if gained <= TOLERANCE * max(1.0, abs(value)) and float(np.abs(step).max()) < 1e-9:
            break
    return place[:1] / scale, place[1:]


def _quantiles(p: Numbers, weight: Numbers, shares: Numbers) -> Numbers:
    """The values below which these shares of the weight lie; halfway to the next where that is exact."""
    order = np.argsort(p, kind="stable")
    before = np.cumsum(weight[order]) / weight.sum()
    places = np.searchsorted(before, shares - 1e-12)
    after = np.minimum(places + 1, len(p) - 1)
    found: Numbers = (p[order][places] + p[order][after]) / 2
    return found
