from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geometry.making import clustered, rotation, simplex_vertices
from softtargets.geometry import (
    ClassSums,
    collapse_from_sums,
    nearest_mean_disagreement,
    neural_collapse,
    simplex,
)
from softtargets.geometry import activations as examples_module


def by_numpy(values, labels, weights, bias):
    """NC1, NC3 and NC4 as the paper writes them, with numpy's pseudo-inverse."""
    present = np.unique(labels)
    means = np.stack([values[labels == c].mean(0) for c in present])
    centred = means - means.mean(0)
    within = sum(
        (values[labels == c] - m).T @ (values[labels == c] - m) for c, m in zip(present, means, strict=True)
    ) / len(labels)
    between = centred.T @ centred / len(present)
    nc1 = np.trace(within @ np.linalg.pinv(between, rcond=1e-10, hermitian=True)) / len(present)
    chosen = weights[present]
    nc3 = np.linalg.norm(chosen / np.linalg.norm(chosen) - centred / np.linalg.norm(centred)) ** 2
    wrong = 0
    for h in values:
        nearest = min(present, key=lambda c: np.linalg.norm(h - means[list(present).index(c)]))
        wrong += int(np.argmax(weights @ h + bias)) != nearest
    return nc1, nc3, wrong / len(values)


@pytest.mark.parametrize(
    ("classes", "size", "noise"),
    [(5, 7, 0.5), (2, 3, 1.0), (9, 4, 2.0), (4, 30, 0.1), (12, 12, 3.0), (3, 1, 1.0)],
)
def test_against_the_pseudo_inverse(classes, size, noise):
    values, labels, weights = clustered(classes, size, examples=10 * classes + 3, noise=noise, seed=classes)
    bias = np.random.default_rng(5).standard_normal(classes)
    found = neural_collapse(values, labels, weights, bias)
    nc1, nc3, nc4 = by_numpy(values, labels, weights, bias)
    assert (found.nc1, found.nc3) == pytest.approx((nc1, nc3), rel=1e-8)
    assert found.nc4 == nc4
    assert (found.classes, found.examples) == (classes, len(labels))
    means = np.stack([values[labels == c].mean(0) for c in range(classes)])
    expected = dataclasses.astuple(simplex(means - means.mean(0)))
    assert dataclasses.astuple(found.nc2_means) == pytest.approx(expected, abs=1e-9, nan_ok=True)
    assert found.nc2_weights == simplex(weights) or math.isnan(found.nc2_weights.maximal_angles)


@pytest.mark.parametrize(("classes", "size"), [(2, 2), (10, 9), (10, 64)])
def test_full_collapse_is_zero_in_everything(classes, size):
    frame = simplex_vertices(classes, size, seed=2)
    labels = np.arange(7 * classes) % classes
    templates = 0.2 * frame
    found = neural_collapse(5 * frame[labels] + 3, labels, templates, bias=-3 * templates.sum(1))
    numbers = [found.nc1, found.nc3, found.nc4]
    for part in (found.nc2_means, found.nc2_weights):
        numbers += [part.equal_norms, part.equal_angles, part.maximal_angles, part.maximal_angles_rms]
    assert numbers == pytest.approx([0] * 11, abs=1e-12)


def test_within_class_variability_computed_by_hand():
    # One class at 1 and 3, the other at -2: variances 1, 1 and 0 within; means 2 and -2, so 4 between; half of 2/3/4.
    found = neural_collapse(
        torch.tensor([[1.0], [3.0], [-2.0]]), torch.tensor([0, 0, 1]), torch.tensor([[1.0], [-1.0]])
    )
    assert found.nc1 == pytest.approx(2 / 3 / 4 / 2)
    assert (found.nc3, found.nc4) == (pytest.approx(0), 0)


def test_templates_that_point_away_are_four_apart():
    values, labels, _ = clustered()
    means = np.stack([values[labels == c].mean(0) for c in range(5)])
    assert neural_collapse(values, labels, means.mean(0) - means).nc3 == pytest.approx(4)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 1000), scale=st.floats(1e-3, 1e3), shift=st.floats(-50, 50))
def test_turning_moving_scaling_and_order_change_nothing(seed, scale, shift):
    values, labels, weights = clustered(seed=seed)
    there = neural_collapse(values, labels, weights)
    random = np.random.default_rng(seed)
    order, names, turn = random.permutation(len(labels)), random.permutation(5), rotation(7, seed)
    renamed = np.empty_like(weights)
    renamed[names] = weights
    found = neural_collapse(scale * values[order] @ turn, names[labels[order]], 3 * renamed @ turn)
    assert (found.nc1, found.nc3, found.nc4) == pytest.approx((there.nc1, there.nc3, there.nc4), rel=1e-6)
    assert found.nc2_means.equal_angles == pytest.approx(there.nc2_means.equal_angles, rel=1e-6)
    assert found.nc2_weights.equal_norms == pytest.approx(there.nc2_weights.equal_norms, rel=1e-6)
    moved = neural_collapse(values + shift, labels, weights)  # NC4 may change: logits do
    assert (moved.nc1, moved.nc3) == pytest.approx((there.nc1, there.nc3), rel=1e-6)


def test_a_vector_common_to_all_templates_can_be_taken_away():
    values, labels, weights = clustered()
    plain = neural_collapse(values, labels, weights - weights.mean(0))
    assert neural_collapse(values, labels, weights + 5).nc3 != pytest.approx(plain.nc3, rel=1e-2)
    found = neural_collapse(values, labels, weights + 5, centre_weights=True)
    assert found.nc3 == pytest.approx(plain.nc3, rel=1e-9)
    assert found.nc2_weights.equal_angles == pytest.approx(plain.nc2_weights.equal_angles, rel=1e-9)


def test_classes_without_examples_and_padding_do_not_count():
    values, labels, weights = clustered()
    spaced = 3 * labels + 1
    wide = np.zeros((17, 7))
    wide[[1, 4, 7, 10, 13]] = weights
    there = neural_collapse(values, labels, weights)
    tokens = np.concatenate([values, np.full((4, 7), np.nan)]).reshape(8, 8, 7)
    padded = np.concatenate([spaced, np.zeros(4, dtype=int)]).reshape(8, 8)
    found = neural_collapse(tokens, padded, wide, ignore_index=0)
    assert (found.classes, found.examples) == (5, 60)
    assert (found.nc1, found.nc3) == pytest.approx((there.nc1, there.nc3), rel=1e-9)
    assert found.nc2_weights.equal_angles == pytest.approx(there.nc2_weights.equal_angles)


def test_batches_give_what_the_whole_gives(monkeypatch):
    monkeypatch.setattr(examples_module, "CHUNK", 50)
    values, labels, weights = clustered(classes=9, size=4, examples=120)
    bias = np.random.default_rng(0).standard_normal(9)
    whole = neural_collapse(values, labels, weights, bias)
    sums = ClassSums(9, 4)
    for some in np.array_split(np.arange(120), 11):
        sums.add(values[some], labels[some])
    disagree = nearest_mean_disagreement(values, sums.means, weights, bias)
    found = collapse_from_sums(sums, weights, nc4=disagree)
    assert (found.nc1, found.nc3) == pytest.approx((whole.nc1, whole.nc3), rel=1e-9)
    assert found.nc4 == whole.nc4 == by_numpy(values, labels, weights, bias)[2]
    assert math.isnan(collapse_from_sums(sums, weights).nc4)


def test_some_examples_stand_for_all_in_the_last_measure():
    values, labels, weights = clustered(examples=90, noise=3)
    sums = ClassSums(5, 7)
    sums.add(values, labels)
    some = [9, 27, 45, 63, 81]
    expected = nearest_mean_disagreement(values[some], sums.means, weights)
    assert neural_collapse(values, labels, weights, nc4_most=5).nc4 == expected


def test_held_out_examples_and_the_means_of_training():
    means = torch.tensor([[0.0, 0.0], [4.0, 0.0], [torch.nan, torch.nan]])
    weights, bias = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), torch.tensor([2.5, 0.0, 0.0])
    held_out = torch.tensor([[1.9, 0.0], [2.4, 0.0], [2.6, 0.0], [3.0, 9.0]])
    # Nearest: 0, 1, 1, 1; the net says 0, 0, 1, 2.
    assert nearest_mean_disagreement(held_out, means, weights, bias) == 0.5


def test_torch_numpy_and_parameters_are_taken():
    values, labels, weights = clustered()
    layer = torch.nn.Linear(7, 5).double()
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(weights))
    bias = layer.bias.detach().numpy()
    found = neural_collapse(torch.from_numpy(values), torch.from_numpy(labels), layer.weight, layer.bias)
    assert found == neural_collapse(values, labels, weights, bias)
    single = neural_collapse(values.astype(np.float32), labels, weights.astype(np.float32), bias)
    assert single.nc1 == pytest.approx(found.nc1, rel=1e-5)


def test_means_far_from_zero_do_not_gain_a_dimension():
    values, labels, weights = clustered(noise=0.1)
    there = neural_collapse(values, labels, weights)
    assert neural_collapse(values + 1e7, labels, weights).nc1 == pytest.approx(there.nc1, rel=1e-4)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"labels": np.zeros(60)}, "need examples of at least two classes, not of 1"),
        ({"labels": np.full(60, -100)}, "need examples of at least two classes, not of 0"),
        ({"labels": np.full(60, 5)}, "labels must lie between 0 and 4"),
        ({"labels": np.zeros(59)}, "there must be one label for each example"),
        ({"values": np.ones((60, 7))}, "the means of all classes coincide"),
        ({"values": np.full((60, 7), np.nan)}, "activations of example 0 are not all finite"),
        ({"values": np.ones((60, 6))}, "activations have 6 dimensions, but the last layer takes 7"),
        ({"weights": np.zeros((5, 7))}, "the templates of all classes are zero"),
        ({"weights": np.zeros(7)}, r"need weights \(K, D\)"),
        ({"bias": np.zeros(4)}, r"bias must be \(5,\), one number for each class, not \(4,\)"),
        ({"bias": np.full(5, np.inf)}, "bias contains NaN or infinite values"),
    ],
)
def test_what_cannot_be_measured_is_refused(changes, words):
    values, labels, weights = clustered()
    given = {"values": values, "labels": labels, "weights": weights, "bias": None} | changes
    with pytest.raises(ValueError, match=words):
        neural_collapse(given["values"], given["labels"], given["weights"], given["bias"])


def test_parts_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"weights must have the shape of the sums, \(2, 3\), not \(2, 4\)"):
        collapse_from_sums(ClassSums(2, 3), torch.zeros(2, 4))
    with pytest.raises(ValueError, match=r"means must have the shape of the weights, \(2, 3\), not \(3, 3\)"):
        nearest_mean_disagreement(torch.zeros(1, 3), torch.zeros(3, 3), torch.zeros(2, 3))
    with pytest.raises(ValueError, match="no class has a mean"):
        nearest_mean_disagreement(torch.zeros(1, 3), torch.full((2, 3), torch.nan), torch.zeros(2, 3))
    with pytest.raises(ValueError, match="need at least one example"):
        nearest_mean_disagreement(torch.zeros(0, 3), torch.zeros(2, 3), torch.zeros(2, 3))
