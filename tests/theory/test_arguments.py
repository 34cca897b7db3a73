from __future__ import annotations

import numpy as np
import pytest
import torch

from softtargets.arrays import as_numbers, as_stochastic
from softtargets.theory.arguments import as_classes, as_prior, as_rate


@pytest.mark.parametrize("kind", [torch.float64, torch.float32, torch.bfloat16, torch.int64])
def test_tensors_of_any_kind_are_taken(kind):
    found = as_numbers("x", torch.tensor([1, 0], dtype=kind))
    assert (found.dtype, found.tolist()) == (np.float64, [1, 0])


def test_what_is_given_is_not_changed_nor_kept():
    values = np.array([[0.5, 0.5], [0.0, 1.0]])
    as_stochastic("T", values)[0, 0] = 9
    as_numbers("x", values)[0, 0] = 9
    assert values[0, 0] == 0.5


def test_places_in_tables_are_named():
    with pytest.raises(
        ValueError, match=r"p must lie strictly between 0 and 1, but at index \(1, 0\) it is 2"
    ):
        as_rate("p", [[0.5, 0.5], [2.0, 0.5]], limits=False)
    with pytest.raises(ValueError, match=r"but at index 1 it is 2.5"):
        as_classes([2, 2.5])
    with pytest.raises(ValueError, match="x must be a number or an array of numbers, not an array of bool"):
        as_numbers("x", [True])
    with pytest.raises(ValueError, match="not None"):
        as_numbers("x", None)


def test_equal_frequencies_unless_others_are_given():
    assert as_prior(None, 4).tolist() == [0.25] * 4
    assert as_prior(torch.tensor([0.75, 0.25]), 2).tolist() == [0.75, 0.25]
    assert as_prior([0.333, 0.333, 0.333], 3).tolist() == [1 / 3] * 3  # divided by their sum
