from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geometry.making import clustered, rotation, simplex_vertices
from softtargets.geometry import activations as examples_module
from softtargets.geometry import cluster_spread, equilateral, plane_view, project, template_plane


@pytest.mark.parametrize("chunk", [7, 1 << 22])
def test_points_and_places_are_those_of_the_plane(monkeypatch, chunk):
    monkeypatch.setattr(examples_module, "CHUNK", chunk)
    values, labels, weights = clustered()
    view = plane_view(values, labels, weights, [4, 0, 2], most=None, net="hard", split="training")
    basis = template_plane(weights, [4, 0, 2])
    chosen = np.isin(labels, [4, 0, 2])
    torch.testing.assert_close(view.points, project(values[chosen], basis))
    assert view.labels.tolist() == labels[chosen].tolist()
    torch.testing.assert_close(view.templates, project(weights[[4, 0, 2]], basis))
    for c, centre in zip((4, 0, 2), view.centres.tolist(), strict=True):
        assert centre == pytest.approx((values[labels == c] @ basis.numpy()).mean(0).tolist(), rel=1e-10)
    assert (view.classes, view.names, view.title) == ((4, 0, 2), ("4", "0", "2"), "hard, training")


def test_measures_against_loops():
    values, labels, weights = clustered(seed=3)
    classes = [1, 3, 4]
    found = plane_view(values, labels, weights, classes, most=2).measures
    basis = template_plane(weights, classes).numpy()

    def within(points):
        squares = [
            np.sum((p - points[labels == c].mean(0)) ** 2) for c in classes for p in points[labels == c]
        ]
        return math.sqrt(sum(squares) / len(squares))

    def between(corners):
        return sum(math.dist(corners[a], corners[b]) for a, b in ((0, 1), (0, 2), (1, 2))) / 3

    def means(points):
        return np.stack([points[labels == c].mean(0) for c in classes])

    flat = values @ basis
    assert found.examples == int(np.isin(labels, classes).sum())
    assert found.spread == pytest.approx(within(flat) / between(means(flat)))
    assert found.spread_in_space == pytest.approx(within(values) / between(means(values)))
    assert found.spread_over_templates == pytest.approx(within(flat) / between(weights[classes]))
    assert found.spread_over_templates_in_space == pytest.approx(within(values) / between(weights[classes]))
    assert found.centres_equilateral == pytest.approx(equilateral(means(flat)))
    assert found.templates_equilateral == pytest.approx(equilateral(weights[classes]))


def test_the_spread_is_that_of_all_points():
    values, labels, weights = clustered()
    view = plane_view(values, labels, weights, [0, 1, 2], most=None)
    assert cluster_spread(view.points, view.labels) == pytest.approx(view.measures.spread, rel=1e-10)


def test_at_most_so_many_of_each_class_the_same_each_time():
    values, labels, weights = clustered(examples=90)
    values[labels == 1] += 0.5
    view = plane_view(values, labels, weights, [0, 1, 2], most=4)
    assert torch.bincount(view.labels).tolist() == [4, 4, 4]
    basis = template_plane(weights, [0, 1, 2]).numpy()
    rows = np.flatnonzero(labels == 1)
    expected = values[rows[[int((2 * k + 1) * len(rows) // 8) for k in range(4)]]] @ basis
    np.testing.assert_allclose(view.points[view.labels == 1], expected, rtol=1e-12)
    again = plane_view(values, labels, weights, [0, 1, 2], most=4)
    assert torch.equal(view.points, again.points)
    assert view.measures == plane_view(values, labels, weights, [0, 1, 2], most=None).measures


def test_tokens_with_padding():
    values, labels, weights = clustered()
    tokens = np.concatenate([values, np.full((4, 7), np.nan)]).reshape(8, 8, 7)
    marked = np.concatenate([labels, np.full(4, 1)]).reshape(8, 8)
    kept = np.concatenate([labels != 1, np.zeros(4, dtype=bool)])
    found = plane_view(tokens, marked, weights, [0, 2, 3], ignore_index=1)
    flat = plane_view(values[kept[:60]], labels[kept[:60]], weights, [0, 2, 3])
    torch.testing.assert_close(found.points, flat.points)
    assert dataclasses.astuple(found.measures) == pytest.approx(dataclasses.astuple(flat.measures))


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 1000),
    scale=st.floats(1e-3, 1e3),
    shift=st.floats(-20, 20),
    common=st.floats(-20, 20),
)
def test_what_leaves_the_picture_alone(seed, scale, shift, common):
    values, labels, weights = clustered(seed=seed)
    there = plane_view(values, labels, weights, [0, 1, 2], most=None)
    random = np.random.default_rng(seed)
    turn, order = rotation(7, seed), random.permutation(60)
    turned = plane_view(values[order] @ turn, labels[order], weights @ turn + common, [0, 1, 2], most=None)
    back = torch.from_numpy(np.argsort(order[np.isin(labels[order], [0, 1, 2])]))
    torch.testing.assert_close(turned.points[back], there.points, rtol=1e-6, atol=1e-6)
    assert dataclasses.astuple(turned.measures) == pytest.approx(
        dataclasses.astuple(there.measures), rel=1e-6
    )
    scaled = plane_view(scale * values + shift, labels, weights, [0, 1, 2]).measures
    assert scaled.spread == pytest.approx(there.measures.spread, rel=1e-6)
    assert scaled.spread_in_space == pytest.approx(there.measures.spread_in_space, rel=1e-6)
    assert scaled.centres_equilateral == pytest.approx(there.measures.centres_equilateral, rel=1e-6)
    assert scaled.spread_over_templates == pytest.approx(
        scale * there.measures.spread_over_templates, rel=1e-6
    )


def test_full_collapse_is_an_equilateral_triangle_without_spread():
    frame = simplex_vertices(10, 30, seed=0)
    labels = np.arange(100) % 10
    found = plane_view(4 * frame[labels], labels, frame, [3, 5, 9]).measures
    assert found.spread == pytest.approx(0, abs=1e-12)
    assert (found.centres_equilateral, found.templates_equilateral) == pytest.approx((1, 1))


def test_examples_that_are_all_the_same_have_no_triangle():
    found = plane_view(torch.ones(6, 3), torch.arange(6) % 3, torch.eye(3), [0, 1, 2]).measures
    assert math.isnan(found.spread)
    assert math.isnan(found.centres_equilateral)


def test_half_precision_weights_are_worked_on_in_double():
    values, labels, weights = clustered()
    coarse = torch.from_numpy(weights).bfloat16()
    found = plane_view(values, labels, coarse, [0, 1, 2])
    exact = plane_view(values, labels, coarse.double(), [0, 1, 2])
    assert torch.equal(found.points, exact.points)


def test_names_by_class():
    values, labels, weights = clustered()
    assert plane_view(values, labels, weights, [4, 0, 2], names="abcde").names == ("e", "a", "c")
    by_class = {4: "x", 0: "y", 2: "z"}
    assert plane_view(values, labels, weights, [4, 0, 2], names=by_class).names == ("x", "y", "z")
    with pytest.raises(ValueError, match="there is no name for class 4 among the 2 names"):
        plane_view(values, labels, weights, [4, 0, 2], names=["a", "b"])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"classes": [0, 1]}, r"need three different classes from 0 to 4, not \[0, 1\]"),
        ({"classes": [0, 1, 5]}, r"need three different classes from 0 to 4, not \[0, 1, 5\]"),
        ({"labels": np.arange(60) % 2}, "there are no examples of class 2; choose classes that have some"),
        ({"labels": np.full(60, 7)}, "labels must lie between 0 and 4"),
        ({"values": np.full((60, 7), np.nan)}, "activations of example .* are not all finite: nan"),
        ({"values": np.zeros((60, 8))}, "activations have 8 dimensions, but the last layer takes 7"),
        (
            {"weights": np.outer(np.arange(5.0), np.ones(7))},
            r"the templates of classes \[0, 1, 2\] lie on one line, so they span no plane",
        ),
        ({"weights": np.full((5, 7), np.nan)}, "weights contain NaN or infinite values"),
        ({"most": 0}, "need at least one example of each, not 0"),
    ],
)
def test_what_gives_no_picture_is_refused(changes, words):
    values, labels, weights = clustered()
    given = {
        "values": values,
        "labels": labels,
        "weights": weights,
        "classes": [0, 1, 2],
        "most": 9,
    } | changes
    with pytest.raises(ValueError, match=words):
        plane_view(given["values"], given["labels"], given["weights"], given["classes"], most=given["most"])


def test_bad_activations_of_other_classes_do_not_matter():
    values, labels, weights = clustered()
    values[labels == 4] = np.inf
    assert plane_view(values, labels, weights, [0, 1, 2]).measures.examples == int((labels < 3).sum())
