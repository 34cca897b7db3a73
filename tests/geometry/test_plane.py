from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from geometry.making import rotation
from softtargets.geometry import cluster_spread, equilateral, project, sides, template_plane
from softtargets.geometry import plane as module
from softtargets.geometry.plane import mean_distance


def templates(classes=5, size=8, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(classes, size, generator=generator, dtype=torch.float64).to(dtype)


def dot(a, b):
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def minus(a, b):
    return [x - y for x, y in zip(a, b, strict=True)]


def by_gram_schmidt(w, classes):
    """First axis along first - third, second axis the rest of second - third."""
    first, second, third = (w[c] for c in classes)
    along, aside = minus(first, third), minus(second, third)
    x = [value / math.sqrt(dot(along, along)) for value in along]
    rest = minus(aside, [dot(aside, x) * value for value in x])
    return x, [value / math.sqrt(dot(rest, rest)) for value in rest]


@pytest.mark.parametrize("chosen", [[0, 1, 2], [4, 0, 2], [2, 1, 0]])
@pytest.mark.parametrize("size", [2, 3, 8, 50])
def test_the_basis_is_that_of_gram_schmidt(chosen, size):
    w = templates(size=size)
    x, y = by_gram_schmidt(w.tolist(), chosen)
    basis = template_plane(w, chosen)
    assert basis.shape == (size, 2)
    assert basis[:, 0].tolist() == pytest.approx(x, abs=1e-12)
    assert basis[:, 1].tolist() == pytest.approx(y, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), size=st.integers(3, 30), chosen=st.permutations(range(5)))
def test_the_basis_is_orthonormal_and_holds_the_differences(seed, size, chosen):
    w, chosen = templates(size=size, seed=seed), chosen[:3]
    basis = template_plane(w, chosen)
    x, y = basis.T.tolist()
    assert (dot(x, x), dot(y, y), dot(x, y)) == pytest.approx((1, 1, 0), abs=1e-12)
    rows = w.tolist()
    for a in chosen:
        for b in chosen:
            difference = minus(rows[a], rows[b])
            along, aside = dot(difference, x), dot(difference, y)
            rebuilt = [along * p + aside * q for p, q in zip(x, y, strict=True)]
            assert rebuilt == pytest.approx(difference, abs=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_pictures_do_not_flip(seed):
    w = templates(seed=seed)
    first, second, third = project(w, template_plane(w, [3, 1, 4]))[[3, 1, 4]].tolist()
    assert first[0] > third[0]
    assert first[1] == pytest.approx(third[1], abs=1e-12)
    assert second[1] > third[1]


def test_mirrored_templates_give_the_same_picture():
    w = templates()
    mirrored = w.clone()
    mirrored[:, 0] *= -1
    first, second = (project(v, template_plane(v, [0, 1, 2])) for v in (w, mirrored))
    torch.testing.assert_close(first[:3], second[:3])


def test_the_projection_keeps_the_distances_between_the_templates():
    w = templates()
    flat = project(w, template_plane(w, [0, 2, 4]))
    for a, b in ((0, 2), (0, 4), (2, 4)):
        assert math.dist(flat[a].tolist(), flat[b].tolist()) == pytest.approx(
            math.dist(w[a].tolist(), w[b].tolist())
        )
    assert math.dist(flat[1].tolist(), flat[3].tolist()) < math.dist(w[1].tolist(), w[3].tolist())


def test_project_against_loops():
    basis = template_plane(templates(), [0, 1, 2])
    activations = templates(7, seed=9)
    x, y = basis.T.tolist()
    expected = [[dot(row, x), dot(row, y)] for row in activations.tolist()]
    found = project(activations, basis)
    assert found.shape == (7, 2)
    assert found.tolist() == [pytest.approx(point, rel=1e-12) for point in expected]


def test_the_precision_is_that_of_the_weights():
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        w = templates(dtype=dtype)
        basis = template_plane(w, [0, 1, 2])
        assert basis.dtype == dtype
        assert project(templates(), basis).dtype == dtype
    assert template_plane(torch.eye(3, dtype=torch.int64), [0, 1, 2]).dtype == torch.float64


def test_single_precision_weights_are_worked_on_in_double():
    w = templates(dtype=torch.float32)
    x, y = by_gram_schmidt(w.double().tolist(), [0, 1, 2])
    basis = template_plane(w, [0, 1, 2])
    assert basis[:, 0].tolist() == pytest.approx(x, abs=1e-7)
    assert basis[:, 1].tolist() == pytest.approx(y, abs=1e-7)


def test_numpy_arrays_are_taken():
    w = templates()
    basis = template_plane(w.numpy(), [0, 1, 2])
    assert torch.equal(basis, template_plane(w, (0, 1, 2)))
    assert torch.equal(project(w.numpy(), basis), project(w, basis))
    assert torch.equal(project(w, basis.numpy()), project(w, basis))
    assert torch.equal(project(w.numpy(), basis.numpy()), project(w, basis))


def test_a_layer_with_gradient_is_taken():
    layer = torch.nn.Linear(8, 5)
    assert not project(torch.zeros(2, 8), template_plane(layer.weight, [0, 1, 2])).requires_grad


@pytest.mark.parametrize(
    ("activations", "basis", "words"),
    [
        (np.zeros((4, 3)), np.zeros((5, 2)), "activations have 3 dimensions, but the last layer takes 5"),
        (np.zeros((4, 3)), np.zeros((3, 3)), r"a basis must be \(dimensions, 2\), .* not \(3, 3\)"),
        (np.zeros(3), np.zeros((3, 2)), r"activations must be \(examples, dimensions\), not \(3,\)"),
        (np.full((1, 3), np.nan), np.zeros((3, 2)), "activations of example 0 are not all finite: nan"),
    ],
)
def test_what_cannot_be_projected_is_refused(activations, basis, words):
    with pytest.raises(ValueError, match=words):
        project(activations, basis)


@pytest.mark.parametrize(
    "w",
    [
        [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]],
        [[1.0, 2.0, 3.0]] * 3,
        [[1.0, 0.0, 0.0], [5.0, 0.0, 0.0], [1.0, 0.0, 0.0]],
        [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [5.0, 0.0, 0.0]],
        [[5.0, 0.0, 0.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]],
    ],
)
def test_templates_on_one_line_are_refused(w):
    message = r"the templates of classes \[0, 1, 2\] lie on one line, so they span no plane"
    with pytest.raises(ValueError, match=message):
        template_plane(torch.tensor(w), [0, 1, 2])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_templates_on_one_line_up_to_rounding_are_refused(dtype):
    w = templates(3, 200)
    w[1] = w[0] + 0.3 * (w[2] - w[0])
    with pytest.raises(ValueError, match="lie on one line"):
        template_plane(w.to(dtype), [0, 1, 2])
    w[1] += 0.2 * templates(1, 200, seed=4)[0]
    template_plane(w.to(dtype), [0, 1, 2])


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), scale=st.floats(1e-3, 1e3), common=st.floats(-100, 100))
def test_a_common_vector_and_the_scale_of_templates_change_nothing(seed, scale, common):
    w = templates(seed=seed)
    moved = scale * w + common * templates(1, seed=seed + 1)
    torch.testing.assert_close(
        template_plane(moved, [0, 1, 2]), template_plane(w, [0, 1, 2]), rtol=0, atol=1e-7
    )


@pytest.mark.parametrize("chosen", [[0, 1], [0, 1, 2, 3], [0, 1, 1], [0, 1, 5], [-1, 0, 1], []])
def test_anything_but_three_different_classes_is_refused(chosen):
    with pytest.raises(ValueError, match="need three different classes from 0 to 4, not ") as caught:
        template_plane(templates(), chosen)
    assert str(caught.value).endswith(str(chosen))


def test_weights_that_are_no_matrix_are_refused():
    with pytest.raises(ValueError, match=r"need weights \(K, D\) with D of at least 2, not \(3, 2, 2\)"):
        template_plane(torch.zeros(3, 2, 2), [0, 1, 2])
    with pytest.raises(ValueError, match=r"D of at least 2, not \(3, 1\)"):
        template_plane(torch.tensor([[0.0], [1.0], [3.0]]), [0, 1, 2])
    with pytest.raises(ValueError, match="NaN or infinite"):
        template_plane(torch.full((3, 4), torch.nan), [0, 1, 2])
    with pytest.raises(TypeError):
        template_plane(torch.eye(3), [0, 1, 1.5])


def clusters(classes=4, size=6, seed=0):
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(classes, (80,), generator=generator)
    centres = 5 * torch.randn(classes, size, generator=generator, dtype=torch.float64)
    return centres[labels] + torch.randn(80, size, generator=generator, dtype=torch.float64), labels


def spread_by_loops(points, labels):
    groups = {}
    for point, label in zip(points, labels, strict=True):
        groups.setdefault(label, []).append(point)
    centres = {
        label: [math.fsum(column) / len(group) for column in zip(*group, strict=True)]
        for label, group in groups.items()
    }
    squares = [math.dist(point, centres[label]) ** 2 for point, label in zip(points, labels, strict=True)]
    order = sorted(centres)
    distances = [math.dist(centres[a], centres[b]) for a in order for b in order if a < b]
    return math.sqrt(math.fsum(squares) / len(squares)) / (math.fsum(distances) / len(distances))


@pytest.mark.parametrize(("classes", "size"), [(2, 1), (3, 2), (4, 6), (10, 3)])
def test_the_spread_against_loops(classes, size):
    points, labels = clusters(classes, size)
    expected = spread_by_loops(points.tolist(), labels.tolist())
    assert cluster_spread(points, labels) == pytest.approx(expected, rel=1e-12)
    assert cluster_spread(points.numpy(), labels.numpy()) == pytest.approx(expected, rel=1e-12)
    assert cluster_spread(points.float(), labels) == pytest.approx(expected, rel=1e-5)


def test_classes_without_points_do_not_count():
    points, labels = clusters(3)
    assert cluster_spread(points, labels * 7 + 2) == pytest.approx(cluster_spread(points, labels), rel=1e-12)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), scale=st.floats(1e-3, 1e3), shift=st.floats(-100, 100))
def test_turning_moving_and_scaling_leave_the_spread_alone(seed, scale, shift):
    points, labels = clusters(seed=seed)
    turn, _ = np.linalg.qr(np.random.default_rng(seed).standard_normal((6, 6)))
    moved = scale * (points.numpy() @ turn) + shift
    assert cluster_spread(moved, labels) == pytest.approx(cluster_spread(points, labels), rel=1e-6)


def test_collapsed_clusters_have_no_spread():
    points = torch.tensor([[0.0, 1.0], [3.0, 1.0], [0.0, 1.0], [3.0, 1.0]])
    assert cluster_spread(points, torch.tensor([0, 1, 0, 1])) == 0


def test_tighter_clusters_have_less_spread():
    points, labels = clusters()
    centres = torch.stack([points[labels == label].mean(0) for label in range(4)])
    tighter = centres[labels] + (points - centres[labels]) / 3
    assert cluster_spread(tighter, labels) == pytest.approx(cluster_spread(points, labels) / 3, rel=1e-9)


@pytest.mark.parametrize("labels", [[0, 0, 0], [4, 4, 4]])
def test_one_class_alone_is_refused(labels):
    with pytest.raises(ValueError, match="need points of at least two classes"):
        cluster_spread(torch.zeros(3, 2), torch.tensor(labels))
    with pytest.raises(ValueError, match="need points of at least two classes"):
        cluster_spread(torch.zeros(0, 2), torch.zeros(0))


def test_points_and_labels_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"one label for each of the 3 points, not \(2,\)"):
        cluster_spread(torch.zeros(3, 2), torch.zeros(2))
    with pytest.raises(ValueError, match="activations of example 0 are not all finite"):
        cluster_spread(torch.full((3, 2), torch.nan), torch.arange(3))


def test_centres_that_are_one_have_infinite_spread():
    points = torch.tensor([[-1.0], [1.0], [-2.0], [2.0]])
    assert cluster_spread(points, torch.tensor([0, 0, 1, 1])) == math.inf


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
        (np.zeros((3, 2)), "the three points are equal, so they are not a triangle"),
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
