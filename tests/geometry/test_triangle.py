from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geometry.making import rotation
from softtargets.geometry import equilateral, sides
from softtargets.geometry import triangle as module
from softtargets.geometry.triangle import mean_distance


def by_heron(points):
    """The same from the three sides alone."""
    a, b, c = (math.dist(p, q) for p, q in itertools.combinations(points, 2))
    s = (a + b + c) / 2
    area = math.sqrt(max(s * (s - a) * (s - b) * (s - c), 0))
    return 4 * math.sqrt(3) * area / (a * a + b * b + c * c)


@pytest.mark.parametrize("size", [2, 3, 50])
@pytest.mark.parametrize("seed", range(4))
def test_equilateral_against_heron(size, seed):
    points = np.random.default_rng(seed).standard_normal((3, size))
    assert equilateral(points) == pytest.approx(by_heron(points.tolist()), rel=1e-9)
    assert sides(points) == pytest.approx(
        [math.dist(p, q) for p, q in itertools.combinations(points.tolist(), 2)]
    )


@pytest.mark.parametrize("s", [0.1, 0.5, 2 / 3, 1.0, 1.5, 1.999])
def test_two_equal_sides_by_the_formula_of_the_docstring(s):
    points = [[0.0, 0.0], [s, 0.0], [s / 2, math.sqrt(1 - s * s / 4)]]
    expected = math.sqrt(3) * s * math.sqrt(4 - s * s) / (2 + s * s)
    assert equilateral(torch.tensor(points, dtype=torch.float64)) == pytest.approx(expected, rel=1e-12)


def test_the_ends_of_the_scale():
    assert equilateral(torch.eye(3)) == pytest.approx(1, abs=1e-12)
    assert equilateral(torch.tensor([[0.0, 0.0], [1.0, 1.0], [3.0, 3.0]])) == pytest.approx(0, abs=1e-12)
    assert equilateral(torch.tensor([[0.0], [1.0], [3.0]])) == 0
    assert equilateral(torch.tensor([[0.0, 0.0], [0.0, 0.0], [3.0, 1.0]])) == 0


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 1000),
    scale=st.floats(1e-6, 1e6),
    shift=st.floats(-10, 10),
    order=st.permutations(range(3)),
)
def test_turning_moving_scaling_and_order_change_nothing(seed, scale, shift, order):
    points = np.random.default_rng(seed).standard_normal((3, 4))
    moved = scale * (points[order] @ rotation(4, seed) + shift)
    assert equilateral(moved) == pytest.approx(equilateral(points), rel=1e-7)
    assert 0 <= equilateral(moved) <= 1


def test_sizes_at_the_ends_of_the_range():
    tiny, huge = 1e-200 * torch.eye(3, dtype=torch.float64), 1e200 * torch.eye(3, dtype=torch.float64)
    assert equilateral(tiny) == pytest.approx(1)
    assert equilateral(huge) == pytest.approx(1)


@pytest.mark.parametrize(
    ("points", "words"),
    [
        (np.zeros((3, 2)), "the three points are one point, which is no triangle"),
        (np.zeros((4, 2)), r"need three points \(3, D\), not \(4, 2\)"),
        (np.zeros(3), r"need three points \(3, D\), not \(3,\)"),
        (np.full((3, 2), np.nan), "points contain NaN or infinite values"),
    ],
)
def test_what_is_no_triangle_is_refused(points, words):
    with pytest.raises(ValueError, match=words):
        equilateral(points)


@pytest.mark.parametrize("many", [2, 1000])
@pytest.mark.parametrize("block", [1, 40, 10_000])
def test_the_mean_distance_in_blocks_against_loops(monkeypatch, many, block):
    monkeypatch.setattr(module, "BLOCK", block)
    monkeypatch.setattr(module, "MANY", many)
    points = np.random.default_rng(0).standard_normal((23, 4)) + 7
    expected = np.mean([math.dist(p, q) for p, q in itertools.combinations(points.tolist(), 2)])
    assert float(mean_distance(torch.from_numpy(points))) == pytest.approx(expected, rel=1e-9)
