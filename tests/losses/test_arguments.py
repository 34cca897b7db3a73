from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import nn

from softtargets.losses import CrossEntropy
from softtargets.losses.arguments import (
    choice,
    class_weights,
    distribution,
    hyperparameter,
    stochastic,
    whole_number,
)


@pytest.mark.parametrize(
    "value", [0, 0.25, 1, True + 0.0, np.float32(0.5), np.float64(0.5), np.int64(1), Fraction(1, 2)]
)
def test_any_real_number_becomes_a_float(value):
    found = hyperparameter("alpha", value, 0, 1)
    assert type(found) is float
    assert found == float(value)


@pytest.mark.parametrize("value", [None, "0.1", True, [0.1], 1j, np.array([0.1])])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(TypeError, match="alpha must be a number or a tensor of them, not"):
        hyperparameter("alpha", value, 0, 1)


@pytest.mark.parametrize(
    ("bounds", "inside", "outside", "words"),
    [
        ({}, [0, 1e30], [-1e-9, math.inf, -math.inf, math.nan], "at least 0"),
        ({"low": -1}, [-1, 1e9], [-1.1, math.inf, math.nan], "at least -1"),
        ({"low": 0, "open_low": True}, [1e-300], [0, -1], "above 0"),
        ({"low": 0, "high": 1}, [0, 1], [-0.1, 1.1], "between 0 and 1"),
        ({"low": 0, "high": 1, "open_low": True}, [1], [0, 1.1], "above 0 and at most 1"),
        ({"low": 0.5, "high": 1.5, "open_low": True}, [1, 1.5], [0.5, 1.6], "above 0.5 and at most 1.5"),
    ],
)
def test_bounds_are_kept_and_named(bounds, inside, outside, words):
    for value in inside:
        assert hyperparameter("x", value, **bounds) == value
        tensor = torch.tensor(float(value), dtype=torch.float64)
        assert hyperparameter("x", tensor, **bounds) is tensor
    for value in outside:
        with pytest.raises(ValueError, match=f"^x must be {words}, not {value}$"):
            hyperparameter("x", value, **bounds)
        among = torch.tensor([*map(float, inside), float(value)], dtype=torch.float64)
        with pytest.raises(ValueError, match=f"^x must be {words}, not {float(value):g}$"):
            hyperparameter("x", among, **bounds)


@pytest.mark.parametrize(
    "value", [torch.tensor(1), torch.zeros(2, 2), torch.zeros(0), torch.tensor(True), torch.tensor(1j)]
)
def test_tensors_must_hold_one_number_or_one_per_run(value):
    with pytest.raises(
        TypeError, match="alpha must be a number, or a floating-point tensor with one value or one per run"
    ):
        hyperparameter("alpha", value)


def test_a_parameter_stays_a_parameter():
    parameter = nn.Parameter(torch.tensor(0.1))
    assert hyperparameter("alpha", parameter, 0, 1) is parameter


@pytest.mark.parametrize(("value", "low"), [(0, 0), (3, 0), (1, 1)])
def test_whole_numbers(value, low):
    assert whole_number("steps", value, low) == value


@pytest.mark.parametrize("value", [1.0, "1", None, True, torch.tensor(1)])
def test_what_is_no_whole_number_is_refused(value):
    with pytest.raises(TypeError, match="steps must be a whole number, not"):
        whole_number("steps", value)


@pytest.mark.parametrize(("value", "low"), [(-1, 0), (0, 1)])
def test_too_few(value, low):
    with pytest.raises(ValueError, match=f"steps must be at least {low}, not {value}"):
        whole_number("steps", value, low)


def test_names_and_the_nearest_to_a_misspelt_one():
    assert choice("spread", "all", ("all", "others")) == "all"
    with pytest.raises(ValueError, match=r"^how must be 'a', 'b' or 'c', not 'zzz'$"):
        choice("how", "zzz", "abc")
    with pytest.raises(ValueError, match=r"did you mean 'others'\?"):
        choice("spread", "other", ("all", "others"))
    for value in (None, 3, ["all"], ("all",), True):
        with pytest.raises(ValueError, match="spread must be 'all' or 'others', not"):
            choice("spread", value, ("all", "others"))


@pytest.mark.parametrize("size", [1, 7, 262_144])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_distributions_of_any_size_pass(size, dtype):
    generator = torch.Generator().manual_seed(size)
    values = torch.softmax(torch.randn(size, generator=generator, dtype=dtype), -1)
    assert torch.equal(distribution("prior", values), values)


def test_the_first_mistake_is_named():
    with pytest.raises(ValueError, match="q must hold probabilities, at least 0, but class 2 has -1"):
        distribution("q", [0.5, 0.5, -1.0, 1.0])
    with pytest.raises(
        ValueError, match="S must hold probabilities, at least 0, but row 0, column 1 has nan"
    ):
        stochastic("S", torch.tensor([[1.0, math.nan], [2.0, 2.0]]))
    with pytest.raises(ValueError, match=r"S must have rows that sum to 1, but row 0 sums to 0\.5"):
        stochastic("S", torch.tensor([[0.5, 0.0], [2.0, 2.0]]))
    with pytest.raises(ValueError, match="weight must be finite for every class, but class 1 has -inf"):
        class_weights([1.0, -math.inf, math.nan])


def test_rows_are_summed_and_not_columns():
    table = torch.tensor([[0.9, 0.1], [0.8, 0.2]])
    assert torch.equal(stochastic("S", table), table)
    with pytest.raises(ValueError, match="rows that sum to 1"):
        stochastic("S", table.T)


def test_weights_may_be_any_finite_numbers():
    assert class_weights([0.0, 2.5]).tolist() == [0.0, 2.5]
    assert not class_weights(torch.ones(2, requires_grad=True)).requires_grad


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8])
def test_whole_numbers_of_numpy_are_whole_numbers(kind):
    assert type(whole_number("classes", kind(3))) is int
    assert CrossEntropy(ignore_index=np.int64(-100)).ignore_index == -100
    with pytest.raises(TypeError, match="ignore_index must be a whole number, not True"):
        CrossEntropy(ignore_index=True)
