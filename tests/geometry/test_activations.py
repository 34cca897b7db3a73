from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from softtargets.geometry import activations as module
from softtargets.geometry.activations import (
    LabelledActivations,
    as_activations,
    as_real,
    as_templates,
    evenly,
    three_classes,
)


def test_chunks_put_together_are_the_examples_without_padding(monkeypatch):
    monkeypatch.setattr(module, "CHUNK", 12)  # four examples of three numbers
    values = torch.arange(60, dtype=torch.float32).view(4, 5, 3)
    labels = torch.arange(20).view(4, 5) % 7
    labels[1, 2] = labels[3] = 9
    found = LabelledActivations(values, labels, classes=9, ignore_index=9)
    chunks = list(found.chunks())
    assert [len(part) for part, _ in chunks] == [4, 4, 4, 2]
    kept = labels.flatten() != 9
    assert torch.equal(torch.cat([part for part, _ in chunks]), values.view(-1, 3)[kept].double())
    assert torch.equal(torch.cat([part for _, part in chunks]), labels.flatten()[kept])
    some = torch.tensor([13, 0, 5])
    assert torch.equal(next(found.chunks(some))[0], values.view(-1, 3)[kept][some].double())
    assert [len(part) for part, _ in found.chunks(width=12)] == [1] * 14


def test_a_mapped_file_is_read_in_chunks_without_a_warning(tmp_path):
    values = np.random.default_rng(0).standard_normal((50, 4)).astype(np.float16)
    np.save(tmp_path / "h.npy", values)
    mapped = np.load(tmp_path / "h.npy", mmap_mode="r")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = LabelledActivations(mapped, np.arange(50) % 3, classes=3)
        found.check()
        (chunk, _), *rest = found.chunks()
    assert not rest
    assert np.array_equal(chunk.numpy(), values.astype(np.float64))


def test_padding_may_hold_anything_but_examples_may_not():
    values, labels = torch.zeros(2, 2, 3), torch.tensor([[0, 1], [2, -100]])
    values[1, 1] = torch.nan
    LabelledActivations(values, labels, classes=3).check()
    values[1, 0, 2] = torch.inf
    with pytest.raises(ValueError, match="activations of example 2 are not all finite: inf in dimension 2"):
        LabelledActivations(values, labels, classes=3).check()


@pytest.mark.parametrize(
    ("values", "labels", "words"),
    [
        (torch.zeros(4), torch.zeros(4), r"activations must be \(examples, dimensions\), not \(4,\)"),
        (torch.zeros(4, 2), torch.zeros(4), "activations have 2 dimensions, but the last layer takes 3"),
        (torch.zeros(4, 3), torch.zeros(5), r"labels are \(5,\), activations \(4, 3\)"),
        (torch.zeros(2, 2, 3), torch.zeros(4), r"labels are \(4,\), activations \(2, 2, 3\)"),
        (torch.zeros(2, 3), torch.tensor([-100, 6]), "labels must lie between 0 and 5 .* example 1 is 6"),
        (torch.zeros(2, 3), torch.tensor([0, -1]), "labels must lie between 0 and 5 .* example 1 is -1"),
        (torch.zeros(2, 3), torch.tensor([0.5, 1]), "labels must be whole numbers"),
    ],
)
def test_what_does_not_fit_together_is_refused(values, labels, words):
    with pytest.raises(ValueError, match=words):
        LabelledActivations(values, labels, classes=6, size=3)


@given(count=st.integers(0, 300), most=st.integers(1, 300))
def test_evenly_spaced_places(count, most):
    found = evenly(count, most).tolist()
    assert len(found) == min(count, most)
    assert found == sorted(set(found))
    assert all(0 <= place < count for place in found)
    gaps = np.diff(found)
    assert len(gaps) == 0 or gaps.max() - gaps.min() <= 1


def test_all_places_and_none():
    assert evenly(5, None).tolist() == evenly(5, 5).tolist() == [0, 1, 2, 3, 4]
    assert evenly(5, 1).tolist() == [2]
    with pytest.raises(ValueError, match="need at least one example of each, not 0"):
        evenly(5, 0)
    assert list(LabelledActivations(torch.zeros(2, 1), torch.tensor([-100, -100]), classes=1).chunks()) == []


def test_values_keep_their_precision_and_lose_their_gradient():
    layer = torch.nn.Linear(4, 3)
    found = as_templates(layer.weight)
    assert found.dtype == torch.float32
    assert not found.requires_grad
    assert torch.equal(found, layer.weight)
    assert as_templates(np.eye(3, dtype=np.float32)).dtype == torch.float32
    assert as_templates(np.eye(3, dtype=np.int64)).dtype == torch.float64


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.zeros(3), r"need weights \(K, D\) with D of at least 1, not \(3,\)"),
        (np.zeros((0, 3)), r"not \(0, 3\)"),
        (np.array([[0.0, 1.0], [2.0, np.nan]]), "weights contain NaN or infinite values: nan for class 1"),
        (np.array([[True]]), "weights must be real numbers, not torch.bool"),
        (np.array([[1j]]), "weights must be real numbers, not torch.complex128"),
    ],
)
def test_templates_that_are_none_are_refused(values, words):
    with pytest.raises(ValueError, match=words):
        as_templates(values)


@pytest.mark.parametrize(
    ("values", "size", "words"),
    [
        (np.zeros(3), None, r"activations must be \(examples, dimensions\), not \(3,\)"),
        (np.zeros((3, 0)), None, r"not \(3, 0\)"),
        (np.zeros((3, 2)), 5, "activations have 2 dimensions, but the last layer takes 5"),
        (np.array([[0.0, -np.inf]]), 2, "activations of example 0 are not all finite: -inf in dimension 1"),
    ],
)
def test_activations_that_are_none_are_refused(values, size, words):
    with pytest.raises(ValueError, match=words):
        as_activations(values, size)


def test_three_classes_of_any_kind_of_integer():
    assert three_classes((np.int64(2), 0, torch.tensor(1)), 3) == [2, 0, 1]
    with pytest.raises(ValueError, match=r"need three different classes from 0 to 1, not \[0, 1, 2\]"):
        three_classes([0, 1, 2], 2)


def test_half_precision_stays():
    assert as_real(torch.zeros(2, dtype=torch.bfloat16), "x").dtype == torch.bfloat16
