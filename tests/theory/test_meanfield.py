from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from softtargets.theory import (
    effective_clean_rate,
    matrix_loss,
    mean_field_loss,
    mean_field_p,
    optimal_matrix,
    optimal_p,
    uniform_matrix,
)

from .exact import looped_loss, random_stochastic

KINDS = ("alpha", "beta", "gamma")


def noises(seed=0):
    generator = np.random.default_rng(seed)
    for classes in (2, 3, 7):
        T = 0.6 * np.eye(classes) + 0.4 * random_stochastic(generator, classes, concentration=0.5)
        yield T, None
        yield T, generator.dirichlet(np.ones(classes))


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_loss_of_one_p_for_all_classes(kind):
    for T, prior in noises():
        for p in (0.1, 0.5, 0.93):
            S = uniform_matrix(p, len(T))
            assert mean_field_loss(p, T, kind, prior) == pytest.approx(
                looped_loss(S, T, kind, prior), rel=1e-12
            )


@pytest.mark.parametrize("kind", KINDS)
def test_no_other_p_is_better(kind):
    for T, prior in noises(1):
        best = mean_field_p(T, kind, prior)
        grid = np.linspace(0.001, 0.999, 999)
        start = grid[mean_field_loss(grid, T, kind, prior).argmin()]
        if kind == "gamma" and len(T) == 2:
            start = max(start, 1 - start)
        found = minimize_scalar(
            lambda p, T=T, prior=prior: mean_field_loss(p, T, kind, prior),
            bounds=(start - 0.001, min(start + 0.001, 1 - 1e-9)),
            method="bounded",
            options={"xatol": 1e-12},
        )
        assert best == pytest.approx(found.x, abs=1e-6)


def test_the_formulas():
    for T, prior in noises(2):
        weight = np.full(len(T), 1 / len(T)) if prior is None else prior
        clean = sum(weight[i] * T[i, i] for i in range(len(T)))
        assert effective_clean_rate(T, prior) == pytest.approx(clean, rel=1e-14)
        assert mean_field_p(T, "alpha", prior) == pytest.approx(clean, rel=1e-14)
        assert mean_field_p(T, "gamma", prior) == optimal_p(effective_clean_rate(T, prior), len(T), "gamma")
        if prior is None:
            assert mean_field_p(T, "beta") == pytest.approx(np.trace(T @ T.T) / len(T), rel=1e-14)


@pytest.mark.parametrize("kind", KINDS)
def test_uniform_noise_is_no_approximation(kind):
    for classes in (2, 10, 100):
        assert mean_field_p(uniform_matrix(0.8, classes), kind) == pytest.approx(
            optimal_p(0.8, classes, kind), rel=1e-12
        )


def test_one_p_is_never_better_than_a_matrix():
    for T, prior in noises(3):
        for kind in ("alpha", "beta"):
            scalar = mean_field_loss(mean_field_p(T, kind, prior), T, kind, prior)
            assert matrix_loss(optimal_matrix(T, kind, prior), T, kind, prior) <= scalar + 1e-14


def test_stacks_and_grids():
    T = random_stochastic(np.random.default_rng(4), 3, count=5)
    for kind in KINDS:
        assert mean_field_p(T, kind) == pytest.approx([mean_field_p(one, kind) for one in T], rel=1e-14)
        found = mean_field_loss(np.array([0.3, 0.9])[:, None], T, kind)
        assert found.shape == (2, 5)
        assert found[1, 2] == pytest.approx(mean_field_loss(0.9, T[2], kind), rel=1e-14)
    assert type(mean_field_p(T[0], "gamma")) is float


def test_no_noise_is_a_limit_that_is_given():
    for kind in KINDS:
        assert mean_field_p(np.eye(3), kind) == 1
        assert mean_field_loss(1.0, np.eye(3), kind, limits=True) == 0


def test_what_is_refused():
    with pytest.raises(ValueError, match="T must have rows that sum to 1"):
        mean_field_p([[0.5, 0.4], [0.5, 0.5]], "alpha")
    with pytest.raises(ValueError, match="p must lie strictly between 0 and 1, not 1"):
        mean_field_loss(1.0, np.eye(2), "alpha")
    with pytest.raises(ValueError, match="kind must be"):
        mean_field_p(np.eye(2), "A")
    with pytest.raises(ValueError, match="p and T must fit together"):
        mean_field_loss(np.full(2, 0.5), np.broadcast_to(np.eye(2), (3, 2, 2)), "alpha")
