"""Noise that depends on the example: what it looks like decides what it is taken for."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from softtargets.arrays import ArrayLike, as_tensor
from softtargets.noise.base import Labels, checked_rate, chosen, label_array, uniforms_by_place
from softtargets.randomness import key_words, normals, words

DEVIATION = 0.1  # of the flip rates around their mean, before they are cut off; that of Xia et al.


def instance(
    labels: ArrayLike, inputs: ArrayLike, rate: float, classes: int, seed: int, stream: int = 0
) -> Labels:
    """Replace each label by a draw from `instance_probabilities`: `rate` is the share that is wrong on average.

    `stream` counts independent draws of the same noise: two streams confuse the same looks with the same classes, as
    training and test labels from the same people would.

    >>> inputs = np.linspace(-1, 1, 12).reshape(6, 2)
    >>> instance(np.zeros(6, np.int64), inputs, rate=1.0, classes=3, seed=0).min() > 0
    np.True_
    """
    probabilities = instance_probabilities(labels, inputs, rate, classes, seed, stream)
    _, uniform = uniforms_by_place(len(probabilities), seed, "instance noise", stream)
    return chosen(probabilities, uniform)


def instance_probabilities(
    labels: ArrayLike, inputs: ArrayLike, rate: float, classes: int, seed: int, stream: int = 0
) -> NDArray[np.float64]:
    r"""P(noisy = j | x, clean = y), (N, K), for inputs (N, ...) that are used as they are: standardise them first.

    .. math:: P(j \mid x, y) = q_x \, \mathrm{softmax}_{j \ne y}(x^\top w_{y j}), \quad P(y \mid x, y) = 1 - q_x

    The generator of Xia et al., "Part-dependent label noise: towards instance-dependent label noise", 2020: directions
    w are standard normal, one for each pair of classes, and the flip rates q are normal around `rate` with deviation
    0.1, cut off. They cut off at 0 and 1, which makes the mean of q larger than a small `rate`; here both sides are cut
    at the nearer of the two, so that `rate` is the mean, and 0 leaves every label as it is.

    Looks decide which class a label becomes; how easily it goes wrong is the example's own and not in its looks.
    Products are in double precision; directions are in single, and their last bit may depend on the machine.

    >>> found = instance_probabilities(np.array([0, 1]), np.eye(2), rate=0.3, classes=3, seed=0)
    >>> found.shape, found.sum(1).round(12).tolist()
    ((2, 3), [1.0, 1.0])
    """
    checked_rate(rate, classes)
    clean = label_array(labels, classes)
    flat = _flat(inputs, len(clean))
    flips = _flip_rates(len(clean), rate, seed, stream)
    key = key_words(seed, "instance noise directions")
    probabilities = np.zeros((len(clean), classes))
    places, pairs = (torch.arange(count, device="cpu") for count in (flat.shape[1], -(-classes // 2)))
    for label in np.unique(clean).tolist():
        own = np.flatnonzero(clean == label)
        drawn = words(key, places[:, None], label, pairs)
        directions = normals(drawn).flatten(1)[:, :classes].double()
        scores = torch.from_numpy(flat[own]) @ directions
        scores[:, label] = -torch.inf
        shares = scores.softmax(1).numpy()
        probabilities[own] = flips[own, None] * shares
        probabilities[own, label] = 1 - flips[own]
    return probabilities


def _flip_rates(count: int, rate: float, seed: int, stream: int) -> NDArray[np.float64]:
    uniform, _ = uniforms_by_place(count, seed, "instance noise", stream)
    width = min(rate, 1 - rate)
    edge = torch.special.ndtr(torch.tensor(-width / DEVIATION, dtype=torch.float64, device="cpu"))
    below = edge + torch.from_numpy(uniform) * (1 - 2 * edge)
    offset = DEVIATION * torch.special.ndtri(below)
    rates: NDArray[np.float64] = (rate + offset.clamp(-width, width)).numpy()
    return rates


def _flat(inputs: ArrayLike, examples: int) -> NDArray[np.float64]:
    found = as_tensor(inputs)
    if found.ndim < 2 or len(found) != examples:
        raise ValueError(
            f"inputs must be (examples, ...), one for each of the {examples} labels, not {tuple(found.shape)}"
        )
    flat = found.detach().cpu().double().flatten(1)
    if not bool(torch.isfinite(flat).all()):
        example = int((~torch.isfinite(flat)).any(1).nonzero()[0])
        raise ValueError(f"inputs must be finite, but those of example {example} are not")
    return flat.numpy()
