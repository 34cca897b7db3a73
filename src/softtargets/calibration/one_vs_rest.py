"""Calibration of each class against the rest: Platt scaling, isotonic regression, histogram binning.

All give a module that turns scores into probabilities. With two classes one function is fitted, to the second class;
with more, one for each class, and probabilities are divided by their sum (Zadrozny & Elkan 2002). They can change which
class is the likeliest. A class without an example, and one that every example has, is left as the model has it.
"""

from __future__ import annotations

from collections.abc import Callable
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
    kind, floor, z, y, w = _read(scores, labels, from_logits, weights, ignore_index)
    slope, intercept = _each(log_odds(z), y, w, _sigmoid, (np.ones(1), np.zeros(1)))
    return PlattScaling(slope.squeeze(1), intercept.squeeze(1), kind=kind, floor=floor)


def isotonic_regression(
    scores: ArrayLike,
    labels: ArrayLike,
    *,
    from_logits: bool = True,
    weights: ArrayLike | None = None,
    ignore_index: int | None = None,
) -> IsotonicScaling:
    """Fit a function of each class's probability that never falls (Zadrozny & Elkan 2002), by pooling neighbours.

    scikit-learn's ``IsotonicRegression`` of whether the class is the label on the probability of the class; straight
    lines between examples, constant beyond the lowest and highest. It needs many examples: with fewer than about a
    thousand it takes scatter for shape.

    >>> p = torch.tensor([0.1, 0.3, 0.5, 0.7])
    >>> module = isotonic_regression(torch.stack([1 - p, p], -1), torch.tensor([0, 1, 0, 1]), from_logits=False)
    >>> [round(x, 2) for x in module(torch.tensor([[0.9, 0.1], [0.6, 0.4], [0.4, 0.6], [0.0, 1.0]]))[:, 1].tolist()]
    [0.0, 0.5, 0.75, 1.0]
    """
    kind, floor, z, y, w = _read(scores, labels, from_logits, weights, ignore_index)
    ends = np.array([0.0, 1.0])
    places, values = _each(_known(scores, z, from_logits), y, w, _isotonic, (ends, ends))
    return IsotonicScaling(places, values, kind=kind, floor=floor)


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

    Bins are as wide as each other (`uniform`, those of `reliability`) or hold as many examples (`quantile`). One that
    no example fell into has its middle: what the model says, about.

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
    kind, floor, z, y, w = _read(scores, labels, from_logits, weights, ignore_index)

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
    places, values = _each(_known(scores, z, from_logits), y, w, binned, alone)
    return HistogramBinning(places, values, kind=kind, floor=floor)


def _read(
    scores: ArrayLike, labels: ArrayLike, from_logits: bool, weights: ArrayLike | None, ignore_index: int | None
) -> tuple[Kind, float | None, Tensor, Tensor, Tensor]:
    """Logits in double precision, labels and weights of the rows that count; what a probability of 0 counts as."""
    floor = None if from_logits else zero_floor(scores, labels, ignore_index=ignore_index)
    chunks = as_chunks(scores, labels, ignore_index=ignore_index, from_logits=from_logits, weights=weights)
    chunks.floor = floor
    pieces = list(chunks.weighted())
    z, y = (torch.cat([piece[i].cpu() for piece in pieces]) for i in (0, 1))  # type: ignore[misc]
    w = torch.cat([torch.ones(len(p[1]), dtype=torch.float64) if p[2] is None else p[2].cpu() for p in pieces])
    counted = w > 0
    kind: Kind = "logits" if from_logits else "probabilities"
    return kind, floor, z[counted].double(), y[counted], w[counted]


def _known(scores: ArrayLike, z: Tensor, from_logits: bool) -> Tensor:
    """Probabilities; those that were given are not rounded by way of their logarithms."""
    if not from_logits:
        given = as_tensor(scores).detach().cpu()
        if given.reshape(-1, given.shape[-1]).shape == z.shape:  # no row was left out
            return given.reshape(-1, given.shape[-1]).double()
    return z.softmax(-1)


def _each(
    values: Tensor, labels: Tensor, weights: Tensor, fit: Fitted, alone: tuple[Numbers, Numbers]
) -> tuple[Tensor, Tensor]:
    """Two tables with a row for each class; `alone` is the row of one about which nothing can be learnt."""
    y, w = labels.numpy(), weights.numpy()
    found = []
    for k in range(values.shape[1]):
        own = (y == k).astype(np.float64)
        known = 0 < float(own.mean()) < 1 and not (values.shape[1] == 2 and k == 0)
        found.append(fit(values[:, k].contiguous().numpy(), own, w) if known else alone)
    filled = (np.inf, np.nan)
    first, second = ([row[i] for row in found] for i in (0, 1))
    most = max(map(len, first)), max(map(len, second))
    return tuple(  # type: ignore[return-value]
        torch.from_numpy(np.stack([_filled(row, size, fill) for row in rows]))
        for rows, size, fill in zip((first, second), most, filled, strict=True)
    )


def _filled(row: Numbers, size: int, fill: float) -> Numbers:
    last = row[-1] if len(row) and np.isnan(fill) else fill
    return np.concatenate([row, np.full(size - len(row), last)])


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
