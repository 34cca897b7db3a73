from __future__ import annotations

import pytest
import torch

from softtargets.exceptions import TargetError
from softtargets.losses import CrossEntropy
from softtargets.losses.batch import Batch

from .making import log_softmax, shaped

WEIGHT = torch.tensor([0.5, 2.0, 1.0], dtype=torch.float64)


@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (2, 3, 2)])
def test_rows_follow_the_examples_in_order(shape):
    logits, labels, probabilities = shaped(shape, 3)
    batch = Batch(logits, labels, None, -100)
    assert batch.shape == shape
    assert batch.classes == 3
    assert batch.logits.shape == (max(1, labels.numel()), 3)
    assert torch.equal(batch.labels, labels.reshape(-1))
    given = Batch(logits, probabilities, None, -100)
    assert given.labels is None
    assert given.kept is None
    for place, index in enumerate(
        torch.cartesian_prod(*map(torch.arange, shape)).reshape(-1, len(shape)) if shape else [()]
    ):
        first, rest = (tuple(map(int, index[:1])), tuple(map(int, index[1:])))
        where = (*first, slice(None), *rest) if shape else (slice(None),)
        assert torch.equal(batch.logits[place], logits[where])
        assert torch.equal(given.probabilities[place], probabilities[where])
        assert batch.log_p[place].tolist() == pytest.approx(log_softmax(logits[where].tolist()), rel=1e-12)


def test_ignored_rows_are_marked_and_given_some_label():
    logits, labels, _ = shaped((4,), 3)
    labels[1] = -100
    batch = Batch(logits, labels, WEIGHT, -100)
    assert batch.kept.tolist() == [True, False, True, True]
    assert 0 <= batch.labels[1] < 3
    kept = [labels[i].item() for i in (0, 2, 3)]
    assert batch.total_weight().item() == sum(WEIGHT[y].item() for y in kept)
    assert Batch(logits, labels, None, -100).total_weight().item() == 3


def test_the_weight_of_an_example():
    logits, labels, probabilities = shaped((4,), 3)
    by_label = Batch(logits, labels, WEIGHT, -100).example_weight
    assert by_label.tolist() == [WEIGHT[y].item() for y in labels.tolist()]
    by_mass = Batch(logits, probabilities, WEIGHT, -100).example_weight
    expected = [
        sum(w * t for w, t in zip(WEIGHT.tolist(), row, strict=True)) for row in probabilities.tolist()
    ]
    assert by_mass.tolist() == pytest.approx(expected)
    assert Batch(logits, labels, None, -100).example_weight == 1
    assert Batch(logits, probabilities, WEIGHT, -100).total_weight() == 4


def test_the_rows_of_a_table():
    logits, labels, probabilities = shaped((4,), 3)
    table = torch.arange(9.0).reshape(3, 3)
    found = Batch(logits, labels, None, -100).rows_of(table)
    assert found.dtype == torch.float64
    assert found.tolist() == [table[y].tolist() for y in labels.tolist()]
    expected = [
        [sum(t * table[y, k].item() for y, t in enumerate(row)) for k in range(3)]
        for row in probabilities.tolist()
    ]
    found = Batch(logits, probabilities, None, -100).rows_of(table)
    assert found.flatten().tolist() == pytest.approx([value for row in expected for value in row])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_widened(dtype):
    logits, _, probabilities = shaped((4,), 3, dtype)
    batch = Batch(logits, probabilities, WEIGHT, -100)
    assert batch.raw.dtype == dtype
    assert (
        batch.logits.dtype
        == batch.log_p.dtype
        == batch.probabilities.dtype
        == batch.weight.dtype
        == torch.float32
    )


def test_other_shapes_than_that_of_the_logits_are_refused_by_name():
    logits, labels, _ = shaped((4,), 3)
    with pytest.raises(
        ValueError, match=r"teacher must have the shape of the logits, \(4, 3\), not \(4, 2\)"
    ):
        Batch(logits, labels, None, -100).rows(logits[:, :2], "teacher")


def test_square_logits_with_labels_for_every_place():
    """(N, C, C) logits with (N, C) labels: integers, so they are not probabilities."""
    logits, labels, _ = shaped((2, 3), 3)
    batch = Batch(logits, labels, None, -100)
    assert batch.by_index
    assert batch.shape == (2, 3)


def test_images_of_another_size_are_refused_with_advice():
    logits, target = torch.zeros(2, 5, 8, 8), torch.zeros(2, 32, 32, dtype=torch.long)
    line = r"logits = torch.nn.functional.interpolate\(logits, size=target.shape\[-2:\], mode=\"bilinear\"\)"
    with pytest.raises(ValueError, match=line):
        CrossEntropy()(logits, target)
    with pytest.raises(ValueError, match=line):
        CrossEntropy()(logits, torch.full((2, 5, 32, 32), 0.2))


def test_a_label_of_255_may_mean_that_there_is_none():
    with pytest.raises(TargetError, match="Where 255 marks pixels without a label, set ignore_index=255"):
        CrossEntropy()(torch.zeros(2, 5, 8, 8), torch.full((2, 8, 8), 255))
    with pytest.raises(TargetError, match=r"-100 to ignore$"):
        CrossEntropy()(torch.zeros(2, 5, 8, 8), torch.full((2, 8, 8), 254))
