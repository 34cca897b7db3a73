from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geometry.making import rotation, simplex_vertices
from softtargets.geometry import (
    ClassSums,
    equilateral,
    pick_triples,
    pick_triples_by_confusion,
    template_plane,
)
from softtargets.geometry import picking as module


def by_loops(distances, classes):
    """The three rules, from a function of two classes."""
    nearest = {a: sorted((distances(a, b), b) for b in classes if b != a)[:2] for a in classes}
    close = min(
        classes,
        key=lambda a: (nearest[a][0][0] + nearest[a][1][0] + distances(*(b for _, b in nearest[a])), a),
    )
    pairs = list(itertools.combinations(classes, 2))
    results = [tuple(sorted((close, *(b for _, b in nearest[close]))))]
    for pair in (
        min(pairs, key=lambda p: (distances(*p), p)),
        max(pairs, key=lambda p: (distances(*p), -p[0], -p[1])),
    ):
        others = [c for c in classes if c not in pair]
        results.append((*pair, max(others, key=lambda c: (min(distances(c, p) for p in pair), -c))))
    return results


def classes_of(found):
    return [found.close.classes, found.mixed.classes, found.far.classes]


@pytest.mark.parametrize("block", [1, 25, 1 << 21])
@pytest.mark.parametrize("seed", range(5))
def test_triples_against_loops(monkeypatch, block, seed):
    monkeypatch.setattr(module, "BLOCK", block)
    vectors = np.random.default_rng(seed).standard_normal((12, 4))
    found = pick_triples(vectors)
    assert classes_of(found) == by_loops(lambda a, b: math.dist(vectors[a], vectors[b]), range(12))
    for kind, triple in (("close", found.close), ("mixed", found.mixed), ("far", found.far)):
        a, b, c = (vectors[k] for k in triple.classes)
        assert triple.sides == pytest.approx((math.dist(a, b), math.dist(a, c), math.dist(b, c)), rel=1e-6)
        assert triple.kind == kind
        assert all(f"{side:.3g}" in triple.reason for side in triple.sides)
        assert all(str(k) in triple.reason for k in triple.classes)


def test_families_of_classes_are_found():
    random = np.random.default_rng(0)
    family = np.repeat(np.arange(4), 3)  # classes 0-2, 3-5, 6-8, 9-11
    vectors = 10 * random.standard_normal((4, 20))[family] + random.standard_normal((12, 20))
    found = pick_triples(torch.from_numpy(vectors).float())
    assert len(set(family[list(found.close.classes)])) == 1
    assert len(set(family[list(found.far.classes)])) == 3
    first, second, odd = family[list(found.mixed.classes)]
    assert first == second != odd
    assert equilateral(vectors[list(found.mixed.classes)]) < equilateral(vectors[list(found.far.classes)])


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), scale=st.floats(1e-3, 1e3), shift=st.floats(-20, 20))
def test_turning_moving_and_scaling_pick_the_same(seed, scale, shift):
    vectors = np.random.default_rng(seed).standard_normal((9, 5))
    there = pick_triples(vectors)
    found = pick_triples(scale * (vectors @ rotation(5, seed) + shift))
    assert classes_of(found) == classes_of(there)
    assert found.far.sides == pytest.approx([scale * side for side in there.far.sides], rel=1e-4)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000))
def test_other_numbers_of_the_classes_pick_the_same_vectors(seed):
    random = np.random.default_rng(seed)
    vectors = random.standard_normal((9, 5))
    names = random.permutation(9)
    renamed = np.empty_like(vectors)
    renamed[names] = vectors
    for one, other in zip(classes_of(pick_triples(vectors)), classes_of(pick_triples(renamed)), strict=True):
        assert {int(names[k]) for k in one} == set(other)


@pytest.mark.parametrize("seed", range(5))
def test_of_equal_choices_the_lowest_classes_are_taken(seed):
    found = pick_triples(simplex_vertices(8, 20, seed=seed))
    assert classes_of(found) == [(0, 1, 2)] * 3


def test_candidates_alone_are_picked():
    vectors = np.random.default_rng(3).standard_normal((30, 4))
    some = [4, 7, 11, 12, 20, 29]
    expected = by_loops(lambda a, b: math.dist(vectors[a], vectors[b]), some)
    assert classes_of(pick_triples(vectors, candidates=some)) == expected
    assert classes_of(pick_triples(vectors, candidates=torch.tensor(some[::-1]))) == expected
    assert "of 6 classes" in pick_triples(vectors, candidates=some).far.reason


def test_class_means_with_classes_that_have_none():
    sums = ClassSums(6, 2)
    sums.add(torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 9.0], [8.0, 8.0]]), torch.tensor([1, 2, 4, 5]))
    assert pick_triples(sums.means, sums.present).mixed.classes == (1, 2, 5)
    with pytest.raises(ValueError, match="the vector of class 0 is not finite; leave out classes without"):
        pick_triples(sums.means)


@pytest.mark.parametrize("apart", [0.0, 1e-9])
def test_classes_that_coincide_are_never_picked_together(apart):
    vectors = np.repeat(np.random.default_rng(0).standard_normal((5, 3)), 2, axis=0)
    vectors[1::2] += apart
    found = pick_triples(vectors)
    for classes in classes_of(found):
        assert all(k % 2 == 0 for k in classes)  # the first of two
        template_plane(vectors, classes)
    alone = pick_triples(vectors[::2])
    assert [tuple(2 * k for k in classes) for classes in classes_of(alone)] == classes_of(found)


def test_confusion_against_loops():
    random = np.random.default_rng(0)
    counts = random.integers(0, 40, (8, 8)) * (random.random((8, 8)) < 0.5) + 100 * np.eye(8, dtype=int)
    rates = counts / counts.sum(1, keepdims=True)
    expected = by_loops(lambda a, b: 1 - (rates[a, b] + rates[b, a]) / 2, range(8))
    assert classes_of(pick_triples_by_confusion(counts)) == expected
    assert classes_of(pick_triples_by_confusion(torch.from_numpy(counts))) == expected
    a, b, _ = pick_triples_by_confusion(counts).mixed.classes
    assert pick_triples_by_confusion(counts).mixed.sides[0] == pytest.approx(
        1 - (rates[a, b] + rates[b, a]) / 2
    )


def test_confusion_leaves_out_classes_without_examples():
    counts = np.array([[5, 0, 5, 0, 0], [0, 0, 0, 0, 0], [2, 0, 8, 0, 0], [0, 0, 0, 4, 0], [0, 0, 0, 0, 1]])
    found = pick_triples_by_confusion(counts)
    assert classes_of(found) == [(0, 2, 3), (0, 2, 3), (0, 3, 4)]
    with pytest.raises(ValueError, match="class 1 has no examples in the confusion matrix"):
        pick_triples_by_confusion(counts, candidates=[0, 1, 2])


def test_classes_always_taken_for_each_other_can_be_picked():
    counts = np.array([[0, 9, 0], [9, 0, 0], [0, 0, 9]])
    found = pick_triples_by_confusion(counts)
    assert found.mixed.classes == (0, 1, 2)
    assert found.mixed.sides == pytest.approx((0, 1, 1), abs=1e-9)


def test_many_classes_are_done_without_a_square_matrix(monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 1 << 18)
    generator = torch.Generator().manual_seed(0)
    vectors = torch.randn(6000, 8, generator=generator)
    vectors[4321] = vectors[77] + 1e-3
    vectors[5555] = 50
    found = pick_triples(vectors)
    assert found.mixed.classes == (77, 4321, 5555)
    assert 5555 in found.far.classes


@pytest.mark.parametrize(
    ("vectors", "candidates", "words"),
    [
        (np.zeros((2, 3)), None, r"need at least three candidates from 0 to 1, not \[0, 1\]"),
        (np.eye(4), [0, 1, 4], r"need at least three candidates from 0 to 3, not \[0, 1, 4\]"),
        (np.eye(4), [0, 0, 1], r"not \[0, 1\]"),
        (np.zeros((9, 3)), None, "need at least three different vectors among the 9 classes, not 1"),
        (np.eye(3)[[0, 1, 0, 1]], None, "three different vectors among the 4 classes, not 2"),
        (np.zeros((9, 1)), None, r"need vectors \(K, D\) with D of at least 2, not \(9, 1\)"),
        (np.zeros(9), None, r"not \(9,\)"),
    ],
)
def test_too_few_vectors_are_refused(vectors, candidates, words):
    with pytest.raises(ValueError, match=words):
        pick_triples(vectors, candidates)


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        (np.zeros((2, 3)), r"a confusion matrix must be \(classes, classes\), not \(2, 3\)"),
        (-np.eye(3), "counts of a confusion matrix must be finite numbers of at least 0"),
        (np.full((3, 3), np.nan), "counts of a confusion matrix must be finite numbers of at least 0"),
        (np.diag([1, 1, 0]), r"need at least three candidates from 0 to 2, not \[0, 1\]"),
    ],
)
def test_what_is_no_confusion_matrix_is_refused(counts, words):
    with pytest.raises(ValueError, match=words):
        pick_triples_by_confusion(counts)
