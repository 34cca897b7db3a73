from __future__ import annotations

import numpy as np
import pytest
import torch

from softtargets.selection import POWERS, less_than_certain, normalised_logits
from softtargets.selection.confidence import normalised_by_powers

LOGITS = 3 * torch.randn(200, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def test_it_is_the_maximum_probability_less_one():
    expected = LOGITS.softmax(1).amax(1)
    assert less_than_certain(LOGITS, from_logits=True) + 1 == pytest.approx(expected)
    assert less_than_certain(LOGITS.softmax(1), from_logits=False) + 1 == pytest.approx(expected)


def test_order_is_kept_where_probabilities_are_one_in_their_precision():
    logits = torch.tensor([[30.0, 0.0, 0.0], [60.0, 0.0, 0.0], [20.0, 0.0, 0.0]])
    assert (logits.softmax(1).amax(1) == 1).all()
    assert less_than_certain(logits, from_logits=True).argsort().tolist() == [2, 0, 1]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_half_precision_is_widened(dtype):
    few = LOGITS[:20].to(dtype)
    found = less_than_certain(few, from_logits=True)
    assert found.dtype == torch.float64
    assert found == pytest.approx(less_than_certain(few.double(), from_logits=True), rel=1e-5)


@pytest.mark.parametrize("p", [1, 2, 3.5, 10])
def test_normalised_logits_by_their_formula(p):
    for row, found in zip(LOGITS.numpy(), normalised_logits(LOGITS, p).tolist(), strict=True):
        centred = row - row.mean()
        assert found == pytest.approx(centred.max() / (np.abs(centred) ** p).sum() ** (1 / p), rel=1e-12)


def test_all_powers_at_once_are_those_one_by_one():
    found = normalised_by_powers(LOGITS)
    for column, p in enumerate(POWERS):
        assert found[:, column] == pytest.approx(normalised_logits(LOGITS, p), rel=1e-12)


def test_a_constant_and_a_factor_do_not_matter_so_that_log_probabilities_serve():
    found = normalised_logits(LOGITS, 4)
    assert normalised_logits(LOGITS.log_softmax(1), 4) == pytest.approx(found, rel=1e-10)
    assert normalised_logits(LOGITS / 7 + 1000, 4) == pytest.approx(found, rel=1e-8)
    assert normalised_logits(LOGITS * 1e150, 10) == pytest.approx(normalised_logits(LOGITS, 10))


def test_logits_that_are_all_alike_come_last():
    z = torch.stack([torch.ones(4), torch.tensor([1.0, 0.0, 0.0, 0.0]), torch.zeros(4)])
    assert normalised_logits(z, 2).tolist() == pytest.approx([0, (3 / 4) ** 0.5, 0])
    assert (normalised_by_powers(z)[[0, 2]] == 0).all()


def test_leading_shapes_and_half_precision():
    z = LOGITS.view(10, 20, 7)
    assert normalised_logits(z, 2).shape == (10, 20)
    assert normalised_logits(z.half(), 2).dtype == torch.float32


@pytest.mark.parametrize("p", [0, -1, float("inf"), float("nan")])
def test_a_p_that_is_none_is_refused(p):
    with pytest.raises(ValueError, match="p must be a positive number"):
        normalised_logits(LOGITS, p)


def test_nan_is_refused():
    with pytest.raises(ValueError, match="example 1 are not all finite"):
        normalised_logits(torch.tensor([[0.0, 1.0], [float("nan"), 0.0]]), 2)
