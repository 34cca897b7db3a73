from __future__ import annotations

import itertools
import math
import statistics

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geometry.making import rotation, simplex_vertices
from softtargets.geometry import simplex


def by_loops(vectors):
    """The four measures from every pair."""
    norms = [math.sqrt(math.fsum(x * x for x in v)) for v in vectors]
    cosines = [
        math.fsum(x * y for x, y in zip(vectors[a], vectors[b], strict=True)) / (norms[a] * norms[b])
        for a, b in itertools.combinations(range(len(vectors)), 2)
    ]
    target = 1 / (len(vectors) - 1)
    return (
        statistics.pstdev(norms) / statistics.fmean(norms),
        statistics.pstdev(cosines),
        statistics.fmean(abs(c + target) for c in cosines),
        math.sqrt(statistics.fmean((c + target) ** 2 for c in cosines)),
    )


def measures(found):
    return found.equal_norms, found.equal_angles, found.maximal_angles, found.maximal_angles_rms


@pytest.mark.parametrize(("classes", "size"), [(2, 1), (2, 5), (5, 4), (6, 5), (10, 30)])
def test_few_vectors_against_loops(classes, size):
    vectors = np.random.default_rng(classes).standard_normal((classes, size))
    assert measures(simplex(vectors)) == pytest.approx(by_loops(vectors.tolist()), rel=1e-9, abs=1e-12)
    assert simplex(vectors).classes == classes


@pytest.mark.parametrize(("classes", "size"), [(4, 1), (7, 5), (60, 3), (200, 16)])
@pytest.mark.parametrize("shift", [0.0, 2.0])
def test_many_vectors_in_closed_form_against_loops(classes, size, shift):
    vectors = np.random.default_rng(classes).standard_normal((classes, size)) + shift
    norms, angles, absolute, rms = by_loops(vectors.tolist())
    found = simplex(vectors)
    assert (found.equal_norms, found.equal_angles) == pytest.approx((norms, angles), rel=1e-9)
    assert found.maximal_angles_rms == pytest.approx(rms, rel=1e-9)
    assert math.isnan(found.maximal_angles)
    assert absolute <= rms


@pytest.mark.parametrize(("classes", "size"), [(2, 1), (3, 2), (10, 9), (10, 40), (100, 128)])
def test_a_simplex_is_zero_in_everything(classes, size):
    vectors = 17 * simplex_vertices(classes, size, seed=1)
    assert measures(simplex(vectors)) == pytest.approx((0, 0, 0, 0), abs=1e-12)


def test_right_angles_are_equal_but_not_maximal():
    found = simplex(np.diag([1.0, 2.0, 3.0, 2.0]))
    assert found.equal_angles == 0
    assert found.maximal_angles == pytest.approx(1 / 3)
    assert found.maximal_angles_rms == pytest.approx(1 / 3)
    assert found.equal_norms == pytest.approx(math.sqrt(0.5) / 2)


def test_a_vector_of_zeros_is_at_right_angles_to_all():
    vectors = np.random.default_rng(0).standard_normal((9, 3))
    vectors[4] = 0
    others = [row for k, row in enumerate(vectors.tolist()) if k != 4]
    inside = np.array(others) / np.linalg.norm(others, axis=1, keepdims=True)
    cosines = [*(inside @ inside.T)[np.triu_indices(8, 1)], *[0.0] * 8]
    assert simplex(vectors).equal_angles == pytest.approx(np.std(cosines), rel=1e-9)
    few = simplex(np.pad(vectors, ((0, 0), (0, 9))))
    assert few.equal_angles == pytest.approx(np.std(cosines), rel=1e-9)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), scale=st.floats(1e-5, 1e5), classes=st.integers(3, 12))
def test_turning_scaling_and_order_change_nothing(seed, scale, classes):
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((classes, 6)) + 0.5
    moved = scale * random.permutation(vectors) @ rotation(6, seed)
    expected = [value for value in measures(simplex(vectors)) if not math.isnan(value)]
    found = [value for value in measures(simplex(moved)) if not math.isnan(value)]
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_a_vocabulary_needs_no_square_matrix():
    generator = torch.Generator().manual_seed(0)
    found = simplex(torch.randn(50_000, 16, generator=generator))
    # Of independent directions in D dimensions the cosine has mean 0 and variance 1/D.
    assert found.equal_angles == pytest.approx(1 / 4, rel=1e-3)
    assert found.maximal_angles_rms == pytest.approx(1 / 4, rel=1e-3)


def test_vectors_without_angles_are_refused():
    with pytest.raises(ValueError, match="need vectors of at least two classes, not of 1"):
        simplex(np.ones((1, 3)))
    with pytest.raises(ValueError, match="the vectors are all zero, so they have no angles"):
        simplex(np.zeros((4, 3)))
    with pytest.raises(ValueError, match="vectors contain NaN or infinite values: nan for class 2"):
        simplex(np.array([[1.0], [1.0], [np.nan]]))
