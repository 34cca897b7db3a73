from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geometry.making import clustered
from softtargets.geometry import ClassSums
from softtargets.geometry import activations as examples_module


def by_loops(values, labels, classes):
    """Counts, means and the scatter around them, from plain sums."""
    size = len(values[0])
    groups = [[v for v, y in zip(values, labels, strict=True) if y == c] for c in range(classes)]
    means = [[math.fsum(column) / len(g) for column in zip(*g, strict=True)] if g else None for g in groups]
    scatter = [
        [
            math.fsum((v[i] - m[i]) * (v[j] - m[j]) for g, m in zip(groups, means, strict=True) for v in g)
            for j in range(size)
        ]
        for i in range(size)
    ]
    return [len(g) for g in groups], means, scatter


@pytest.mark.parametrize("chunk", [3, 14, 1000])
@pytest.mark.parametrize("batches", [1, 4])
def test_counts_means_and_scatter_against_loops(monkeypatch, chunk, batches):
    monkeypatch.setattr(examples_module, "CHUNK", chunk)
    values, labels, _ = clustered(classes=4, size=3, examples=40)
    counts, means, scatter = by_loops(values.tolist(), labels.tolist(), classes=6)
    sums = ClassSums(6, 3)
    for some in np.array_split(np.arange(40), batches):
        sums.add(values[some], labels[some])
    assert sums.counts.tolist() == counts
    assert sums.examples == 40
    assert sums.present.tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(sums.means[:4], means[:4], rtol=1e-12)
    assert bool(sums.means[4:].isnan().all())
    np.testing.assert_allclose(sums.scatter, scatter, rtol=1e-11, atol=1e-11)
    assert torch.equal(sums.scatter, sums.scatter.T)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), cut=st.integers(0, 60), offset=st.sampled_from([0.0, 1e3, -1e5]))
def test_merging_gives_what_adding_gives(seed, cut, offset):
    values, labels, _ = clustered(seed=seed, offset=offset)
    order = np.random.default_rng(seed).permutation(len(labels))
    whole, left, right = ClassSums(5, 7), ClassSums(5, 7), ClassSums(5, 7)
    whole.add(values, labels)
    left.add(values[order[:cut]], labels[order[:cut]])
    right.add(values[order[cut:]], labels[order[cut:]])
    left.merge(right)
    assert torch.equal(left.counts, whole.counts)
    torch.testing.assert_close(left.means, whole.means, rtol=1e-13, atol=1e-13)
    torch.testing.assert_close(left.scatter, whole.scatter, rtol=1e-8, atol=1e-8)


def test_a_tight_cluster_far_from_zero_keeps_its_scatter():
    random = np.random.default_rng(0)
    noise = random.standard_normal((300, 4))
    labels = np.arange(300) % 3
    far, near = ClassSums(3, 4), ClassSums(3, 4)
    for some in np.array_split(np.arange(300), 7):
        far.add(1e6 + 1e-3 * noise[some], labels[some])
        near.add(noise[some], labels[some])
    # Sums of x x^T of 1e12 would know this scatter to 1e-4 * 300 at best: not at all.
    torch.testing.assert_close(far.scatter * 1e6, near.scatter, rtol=1e-3, atol=1e-3)


def test_tokens_in_half_precision_with_padding():
    random = np.random.default_rng(1)
    values = random.standard_normal((6, 9, 5)).astype(np.float16)
    labels = random.integers(0, 4, (6, 9))
    labels[:, 6:] = 2
    values[:, 6:] = np.nan
    sums = ClassSums(4, 5)
    sums.add(torch.from_numpy(values), labels, ignore_index=2)
    kept = labels != 2
    assert sums.counts.tolist() == [int((labels == c).sum()) if c != 2 else 0 for c in range(4)]
    np.testing.assert_allclose(sums.means[3], values[labels == 3].astype(float).mean(0), rtol=1e-12)
    expected = sum(
        (x := values[(labels == c) & kept].astype(float)).T @ x - len(x) * np.outer(x.mean(0), x.mean(0))
        for c in (0, 1, 3)
    )
    np.testing.assert_allclose(sums.scatter, expected, rtol=1e-9, atol=1e-9)


def test_bad_examples_leave_the_sums_as_they_were(monkeypatch):
    monkeypatch.setattr(examples_module, "CHUNK", 4)
    sums = ClassSums(2, 2)
    sums.add(torch.ones(3, 2), torch.tensor([0, 1, 1]))
    values = torch.zeros(9, 2)
    values[8, 0] = torch.nan
    with pytest.raises(ValueError, match="activations of example 8 are not all finite"):
        sums.add(values, torch.zeros(9))
    assert sums.counts.tolist() == [1, 2]
    assert sums.means.tolist() == [[1, 1], [1, 1]]


def test_sums_of_other_shapes_are_refused():
    with pytest.raises(ValueError, match="need at least one class and one dimension, not 0 and 3"):
        ClassSums(0, 3)
    with pytest.raises(ValueError, match=r"the same classes and dimensions, not \(2, 3\) and \(2, 4\)"):
        ClassSums(2, 3).merge(ClassSums(2, 4))
    with pytest.raises(ValueError, match="activations have 4 dimensions, but the last layer takes 3"):
        ClassSums(2, 3).add(torch.zeros(1, 4), torch.zeros(1))


def test_nothing_added_is_nothing_changed():
    sums = ClassSums(2, 3)
    sums.add(torch.zeros(2, 3), torch.tensor([-100, -100]))
    sums.merge(ClassSums(2, 3))
    assert sums.examples == 0
    assert sums.scatter.abs().sum() == 0
