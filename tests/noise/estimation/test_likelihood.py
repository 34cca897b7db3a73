from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_t

from softtargets.noise import symmetric_transitions
from softtargets.noise.estimation import likelihood
from softtargets.noise.estimation.likelihood import Clusters, fit_likelihood, label_gap, places, refit
from softtargets.noise.estimation.sample import as_sample

from .making import simulated


@pytest.fixture(scope="module")
def fitted():
    _, noisy, probabilities = simulated(symmetric_transitions(0.3, 4), seed=0, examples=800)
    data = as_sample(noisy, probabilities)
    points = places(data.probabilities)
    return data, points, fit_likelihood(data, points)


def log_likelihood(data, points, clusters):
    """Per example, with scipy's density."""
    precision = clusters.root @ clusters.root.t()
    scatter = torch.linalg.inv(precision).numpy()
    density = np.stack(
        [multivariate_t(m, scatter, df=clusters.tails).pdf(points) for m in clusters.means.numpy()]
    )
    total = 0.0
    for n, label in enumerate(data.labels.tolist()):
        terms = [
            float(clusters.shares[i]) * density[i, n] * float(clusters.matrix[i, label])
            for i in range(data.classes)
        ]
        total += np.log(sum(terms))
    return total / len(data.labels)


def test_the_likelihood_is_that_of_t_distributions(fitted):
    data, points, fit = fitted
    assert fit.reached == pytest.approx(log_likelihood(data, points, fit.clusters), abs=1e-9)
    assert fit.converged


def test_responsibilities_are_bayes_rule(fitted):
    data, points, fit = fitted
    scatter = torch.linalg.inv(fit.clusters.root @ fit.clusters.root.t()).numpy()
    for n in range(0, 800, 97):
        parts = [
            float(fit.clusters.shares[i])
            * multivariate_t(fit.clusters.means[i].numpy(), scatter, df=fit.clusters.tails).pdf(
                points[n].numpy()
            )
            * float(fit.clusters.matrix[i, data.labels[n]])
            for i in range(4)
        ]
        assert fit.responsibilities[n].tolist() == pytest.approx(
            [part / sum(parts) for part in parts], abs=1e-9
        )


def test_no_change_nearby_is_likelier(fitted):
    data, points, fit = fitted
    random = torch.Generator().manual_seed(0)
    for _ in range(12):
        moved = []
        for value in fit.clusters[:4]:
            noise = torch.randn(value.shape, generator=random, dtype=torch.float64)
            moved.append(value * (1 + 0.03 * noise))
        shares, means, root, matrix = moved
        other = Clusters(
            shares / shares.sum(),
            means,
            root.tril(),
            matrix / matrix.sum(1, keepdim=True),
            fit.clusters.tails,
        )
        assert log_likelihood(data, points, other) < fit.reached


def test_every_step_is_likelier_than_the_last(fitted, monkeypatch):
    data, points, _ = fitted
    reached = []
    expected = likelihood._expected

    def noted(*arguments):
        found = expected(*arguments)
        reached.append(found[2])
        return found

    monkeypatch.setattr(likelihood, "_expected", noted)
    monkeypatch.setattr(likelihood, "TAILS", (10.0,))
    fit_likelihood(data, points)
    assert len(reached) > 3
    assert all(after > before - 1e-9 for before, after in pairwise(reached))


def test_tails_are_chosen_by_likelihood():
    chosen = {}
    for tails in (None, 3):
        _, noisy, probabilities = simulated(symmetric_transitions(0.2, 4), seed=0, examples=2000, tails=tails)
        data = as_sample(noisy, probabilities)
        chosen[tails] = fit_likelihood(data, places(data.probabilities)).clusters.tails
    assert chosen[None] >= 25
    assert chosen[3] <= 5


def test_counting_an_example_twice_is_having_it_twice(fitted):
    data, points, fit = fitted
    weights = torch.arange(800) % 3
    repeated = torch.repeat_interleave(torch.arange(800), weights)
    double = as_sample(data.labels[repeated], data.probabilities[repeated])
    counted = refit(data.counted(weights.double()), points[weights > 0], fit.clusters)
    torch.testing.assert_close(counted.joint, refit(double, points[repeated], fit.clusters).joint)


def test_too_few_steps_are_admitted(fitted, monkeypatch):
    data, points, _ = fitted
    monkeypatch.setattr(likelihood, "STEPS", 2)
    assert not fit_likelihood(data, points).converged


def test_hard_predictions_are_clusters_without_extent():
    labels = torch.arange(90) % 3
    labels[:9] = (labels[:9] + 1) % 3
    certain = torch.eye(3)[torch.arange(90) % 3]
    data = as_sample(labels, certain)
    fit = fit_likelihood(data, places(data.probabilities))
    assert fit.joint.trace().item() == pytest.approx(81 / 90, abs=1e-3)


def test_places_leave_nothing_out(fitted):
    data, points, _ = fitted
    logs = data.probabilities.clamp(min=likelihood.FLOOR).log()
    logs = logs - logs.mean(1, keepdim=True)
    assert points.shape == (800, 3)
    torch.testing.assert_close(torch.cdist(points[:50], points[:50]), torch.cdist(logs[:50], logs[:50]))


def test_the_gap_is_between_two_predictions_of_the_labels(fitted):
    data, points, fit = fitted
    scatter = torch.linalg.inv(fit.clusters.root @ fit.clusters.root.t()).numpy()
    density = np.stack(
        [multivariate_t(m, scatter, df=fit.clusters.tails).pdf(points) for m in fit.clusters.means.numpy()],
        axis=1,
    )
    clean = fit.clusters.shares.numpy() * density
    noisy = clean / clean.sum(1, keepdims=True) @ fit.clusters.matrix.numpy()
    gains = [
        np.log(data.probabilities[n, label].item()) - np.log(noisy[n, label])
        for n, label in enumerate(data.labels.tolist())
    ]
    gap, error = label_gap(data, points, fit.clusters)
    assert gap == pytest.approx(np.mean(gains), abs=1e-6)
    assert error == pytest.approx(np.std(gains, ddof=1) / np.sqrt(800), abs=1e-6)
