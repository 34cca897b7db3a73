from __future__ import annotations

import numpy as np
import pytest
import torch

from softtargets.arrays import as_labels, as_logits, as_probabilities

GOOD = [[0.25, 0.75], [1.0, 0.0]]


@pytest.mark.parametrize("make", [torch.tensor, lambda rows: np.array(rows), lambda rows: np.float16(rows)])
def test_torch_and_numpy_are_taken_and_keep_their_precision(make):
    given = make(GOOD)
    for take in (as_logits, as_probabilities):
        found = take(given)
        assert found.tolist() == GOOD
        assert str(found.dtype).removeprefix("torch.") == str(given.dtype).removeprefix("torch.")


def test_nothing_is_copied():
    given = np.array(GOOD)
    assert as_probabilities(given).data_ptr() == given.ctypes.data
    tensor = torch.tensor(GOOD)
    assert as_logits(tensor) is tensor


def test_whole_numbers_are_numbers():
    assert as_logits(torch.tensor([[1, 2]])).dtype == torch.float64


@pytest.mark.parametrize("shape", [(3,), (0, 2), (2, 0), (2, 2, 2), ()])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match=r"must be \(examples, classes\)"):
        as_logits(torch.zeros(shape))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_what_is_no_number_is_named_with_its_place(value):
    logits = torch.zeros(5, 4)
    logits[3, 2] = value
    with pytest.raises(ValueError, match=f"logits of example 3 are not all finite: {value} for class 2"):
        as_logits(logits)


@pytest.mark.parametrize("values", [np.array([[True, False]]), np.array([[1j, 0]])], ids=["bool", "complex"])
def test_other_kinds_of_numbers_are_refused(values):
    with pytest.raises(ValueError, match="must be real numbers"):
        as_logits(values)


def test_logits_are_not_taken_for_probabilities():
    with pytest.raises(ValueError, match="example 1 has -3 to 4; pass softmax"):
        as_probabilities(torch.tensor([[0.5, 0.5], [-3.0, 4.0]]))


def test_a_negative_number_is_no_probability_though_the_row_adds_up():
    with pytest.raises(ValueError, match=r"example 0 has -0\.2 to 0\.6; pass softmax"):
        as_probabilities(torch.tensor([[-0.2, 0.6, 0.6]]))


def test_probabilities_must_add_up():
    with pytest.raises(ValueError, match=r"those of example 1 add up to 0\.9;"):
        as_probabilities(torch.tensor([[0.5, 0.5], [0.5, 0.4]]))


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
@pytest.mark.parametrize("classes", [2, 10, 1000])
def test_what_softmax_gives_is_taken_in_every_precision(dtype, classes):
    logits = 5 * torch.randn(50, classes, generator=torch.Generator().manual_seed(0))
    given = logits.softmax(-1).to(dtype)
    assert as_probabilities(given) is given


def test_labels_become_int64_whatever_they_were():
    for dtype in (np.int8, np.uint8, np.int32, np.int64):
        found = as_labels(np.array([1, 0], dtype=dtype), 2, 2)
        assert found.dtype == torch.int64
        assert found.tolist() == [1, 0]


@pytest.mark.parametrize("labels", [[0, 1], [[0, 1, 1]], 0])
def test_there_is_one_label_for_each_example(labels):
    with pytest.raises(ValueError, match="one label for each of the 3 examples"):
        as_labels(torch.tensor(labels), 3, 2)


@pytest.mark.parametrize("label", [-1, 2, -100])
def test_labels_out_of_range_are_named(label):
    with pytest.raises(
        ValueError, match=f"must lie between 0 and 1 for 2 classes, but that of example 1 is {label}"
    ):
        as_labels(torch.tensor([0, label]), 2, 2)


def test_labels_that_a_file_made_floating_are_taken_if_they_are_whole():
    assert as_labels(np.array([1.0, 0.0]), 2, 2).tolist() == [1, 0]
    for label in (0.5, float("nan")):
        with pytest.raises(ValueError, match=f"must be whole numbers, but that of example 1 is {label}"):
            as_labels(np.array([0.0, label]), 2, 2)
    with pytest.raises(ValueError, match="must lie between 0 and 1 for 2 classes"):
        as_labels(np.array([0.0, float("inf")]), 2, 2)


@pytest.mark.parametrize("labels", [torch.tensor([1j, 0]), torch.tensor([True, False])])
def test_other_kinds_of_labels_are_refused(labels):
    with pytest.raises(ValueError, match="must be whole numbers"):
        as_labels(labels, 2, 2)
