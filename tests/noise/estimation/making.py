"""Noise of which the truth is known: clusters, labels that went wrong, and a model that learnt from those."""

from __future__ import annotations

import numpy as np

from softtargets.noise import class_conditional, out_of_fold


def discriminant(inputs, labels, classes):
    """Out-of-fold probabilities of a linear discriminant that is trained on the labels, in closed form."""

    def fit_predict(rest, held_out):
        own, of = inputs[rest], labels[rest]
        means = np.stack([own[of == k].mean(0) for k in range(classes)])
        apart = own - means[of]
        precision = np.linalg.inv(apart.T @ apart / len(rest) + 1e-3 * np.eye(own.shape[1]))
        offsets = np.log(np.bincount(of, minlength=classes) / len(rest)) - 0.5 * (
            means @ precision * means
        ).sum(1)
        scores = inputs[held_out] @ precision @ means.T + offsets
        powers = np.exp(scores - scores.max(1, keepdims=True))
        return powers / powers.sum(1, keepdims=True)

    return out_of_fold(fit_predict, labels)


def simulated(matrix, seed, examples=3000, apart=3.0, tails=None):
    """Clean labels, noisy labels and out-of-fold probabilities; `tails` are degrees of freedom of the clusters."""
    classes = len(matrix)
    random = np.random.default_rng(seed)
    clean = random.integers(classes, size=examples)
    around = random.standard_normal((examples, classes))
    if tails:
        around /= np.sqrt(random.chisquare(tails, size=(examples, 1)) / tails)
    noisy = class_conditional(clean, matrix, classes, seed)
    return clean, noisy, discriminant(apart * np.eye(classes)[clean] + around, noisy, classes)


def distance(found, matrix):
    """The mean over rows of the total variation between two matrices."""
    return float(np.abs(found - matrix).sum(1).mean() / 2)
