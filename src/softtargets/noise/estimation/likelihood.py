"""The likeliest noise, where predictions of a class form a cluster."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from softtargets.noise.estimation.sample import NoisySample

TAILS = (100.0, 25.0, 10.0, 5.0, 3.0)  # degrees of freedom to try, from nearly normal to far-reaching tails
FLOOR = 1e-6  # smaller probabilities say how sure a model is, not what it sees
STEPS = 500
TOLERANCE = 1e-7  # nats per example
RESAMPLE_TOLERANCE = 1e-6  # a resample begins where the maximum was
_RIDGE = 1e-6  # of the mean variance: clusters may be points
_SMALLEST = 1e-300


class Fit(NamedTuple):
    """Q (K, K), Q[i, j] = P(clean = i, noisy = j), and the clusters it was found with.

    `responsibilities` (N, K) are P(clean = i | prediction, label), `reached` the log-likelihood per example;
    `converged` is False if the steps did not suffice.
    """

    joint: Tensor
    clusters: Clusters
    responsibilities: Tensor
    reached: float
    converged: bool


class Clusters(NamedTuple):
    """What the likelihood is a function of: shares (K,), means (K, D), precision's root (D, D), T (K, K), tails."""

    shares: Tensor
    means: Tensor
    root: Tensor
    matrix: Tensor
    tails: float


def fit_likelihood(data: NoisySample, points: Tensor) -> Fit:
    r"""Maximise the likelihood of predictions and labels together, by expectation-maximisation.

    .. math:: \prod_n \sum_i \pi_i \, t_\nu(z_n; \mu_i, \Sigma) \, T_{i \tilde y_n}

    z are log-probabilities (`places`). For an example of clean class i they lie around the mean of that class, with one
    scatter for all classes, in a multivariate t distribution; its label goes wrong as T says. That an out-of-fold
    prediction does not depend on the label once the clean class is known is what separates the mistakes of the
    labels from those of the model. Lawrence and Schölkopf, "Estimating a kernel Fisher discriminant in the presence of
    label noise", 2001, do so with normal densities; t distributions (Peel and McLachlan, "Robust mixture modelling
    using the t distribution", 2000) forgive predictions that lie far out. How far their tails reach is chosen by
    likelihood too.

    Clusters begin at the model's own probabilities, squared. Where more than half of a class's labels are of one other
    class, nothing says which of the two clusters is which.
    """
    sharp = data.probabilities.square()
    evenly = torch.ones_like(sharp)
    first = _maximised(data, points, sharp / sharp.sum(1, keepdim=True), evenly, TAILS[0])
    best = refit(data, points, first, TOLERANCE)
    for tails in TAILS[1:]:
        found = refit(data, points, best.clusters._replace(tails=tails), TOLERANCE)
        if found.reached <= best.reached:
            break
        best = found
    return best


def refit(data: NoisySample, points: Tensor, start: Clusters, tolerance: float = RESAMPLE_TOLERANCE) -> Fit:
    """Go on from clusters to the maximum nearby, with the tails they have."""
    clusters, last, converged = start, -math.inf, False
    for _ in range(STEPS):
        responsibilities, heft, reached = _expected(data, points, clusters)
        if reached - last < tolerance:
            converged = True
            break
        last = reached
        clusters = _maximised(data, points, responsibilities, heft, start.tails)
    joint = data.by_label(responsibilities) / data.weights.sum()
    return Fit(joint, clusters, responsibilities, reached, converged)


def label_gap(data: NoisySample, points: Tensor, clusters: Clusters) -> tuple[float, float]:
    """How much better the model's own probabilities predict the labels than its clusters do: nats, standard error.

    Where there are clusters, they predict noisy labels at least as well as the model that had to learn from those.
    """
    # A matrix of ones says nothing about the label: what is left is P(clean | prediction).
    unlabelled = clusters._replace(matrix=torch.ones_like(clusters.matrix))
    clean, _, _ = _expected(data, points, unlabelled)
    by_clusters = (clean @ clusters.matrix).gather(1, data.labels[:, None])[:, 0].clamp(min=FLOOR).log()
    by_model = data.probabilities.gather(1, data.labels[:, None])[:, 0].clamp(min=FLOOR).log()
    gain = by_model - by_clusters
    return float(gain.mean()), float(gain.std() / math.sqrt(len(gain)))


def places(probabilities: Tensor) -> Tensor:
    """Where predictions lie: log-probabilities less their mean, on as many axes (N, D) as they vary along."""
    logs = probabilities.clamp(min=FLOOR).log()
    logs = logs - logs.mean(1, keepdim=True)
    logs = logs - logs.mean(0)
    variances, axes = torch.linalg.eigh(logs.t() @ logs / len(logs))
    varies = variances > 1e-10 * variances[-1].clamp(min=1e-10)
    if not bool(varies.any()):
        raise ValueError(
            "all examples have the same probabilities, which say nothing about their classes; give predictions of a "
            "trained model"
        )
    turned: Tensor = logs @ axes[:, varies]
    return turned


def _maximised(
    data: NoisySample, points: Tensor, responsibilities: Tensor, heft: Tensor, tails: float
) -> Clusters:
    total = data.weights.sum()
    joint = data.by_label(responsibilities)
    counts = joint.sum(1)
    pull = responsibilities * heft * data.weights[:, None]
    masses = pull.sum(0).clamp(min=_SMALLEST)
    means = pull.t() @ points / masses[:, None]
    scatter = (points * pull.sum(1, keepdim=True)).t() @ points - (means * masses[:, None]).t() @ means
    scatter = scatter / total
    ridge = _RIDGE * points.square().mean()
    precision = torch.linalg.inv(scatter + torch.diag(ridge.expand(len(scatter))))
    root = torch.linalg.cholesky((precision + precision.t()) / 2)
    matrix = joint / counts.clamp(min=_SMALLEST)[:, None]
    return Clusters(counts / total, means, root, matrix, tails)


def _expected(data: NoisySample, points: Tensor, clusters: Clusters) -> tuple[Tensor, Tensor, float]:
    """P(clean | prediction, label), each prediction's heft in each cluster, and the mean log-likelihood."""
    dimensions, tails = points.shape[1], clusters.tails
    turned, centres = points @ clusters.root, clusters.means @ clusters.root
    distance = turned.square().sum(1, keepdim=True) - 2 * turned @ centres.t() + centres.square().sum(1)
    distance = distance.clamp(min=0)
    density = clusters.root.diagonal().log().sum() - (tails + dimensions) / 2 * torch.log1p(distance / tails)
    density += (
        math.lgamma((tails + dimensions) / 2)
        - math.lgamma(tails / 2)
        - dimensions / 2 * math.log(tails * math.pi)
    )
    origins = clusters.matrix.clamp(min=_SMALLEST).log().t()[data.labels]
    terms = clusters.shares.clamp(min=_SMALLEST).log() + density + origins
    whole = torch.logsumexp(terms, 1)
    reached = float((whole * data.weights).sum() / data.weights.sum())
    return (terms - whole[:, None]).exp(), (tails + dimensions) / (tails + distance), reached
