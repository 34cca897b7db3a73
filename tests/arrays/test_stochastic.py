"""One check of distributions for noise, theory, losses and recipes, and one table of what may be off."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from softtargets import noise, recipes, theory
from softtargets.arrays import as_numbers, as_stochastic, check_distributions
from softtargets.arrays.stochastic import wrong_row
from softtargets.arrays.tolerances import BY_PRECISION, TARGET, WRITTEN
from softtargets.exceptions import RecipeError
from softtargets.losses import LabelSmoothing


def off_by(by: float) -> list[list[float]]:
    return [[0.75 + by, 0.25], [0.0, 1.0]]


TAKERS = {
    "noise": (lambda m: noise.class_conditional_transitions(m, 2), 1e-3),
    "theory": (lambda m: theory.optimal_matrix(m, "alpha"), 1e-3),
    "loss": (lambda m: LabelSmoothing(1.0, matrix=torch.tensor(m, dtype=torch.float64)), 1e-4),
    "recipe of a loss": (
        lambda m: recipes.LabelSmoothing(alpha=1.0, matrix=tuple(map(tuple, m))).check(),
        1e-4,
    ),
    "recipe of noise": (lambda m: recipes.ClassConditional(matrix=tuple(map(tuple, m))).check(), 1e-3),
}


@pytest.mark.parametrize("name", TAKERS)
@pytest.mark.parametrize("sign", [1, -1])
def test_every_room_takes_what_the_table_says_and_no_more(name, sign):
    take, tolerance = TAKERS[name]
    take(off_by(0.9 * sign * tolerance))
    with pytest.raises((ValueError, RecipeError), match=r"row 0|matrix\.0"):
        take(off_by(1.1 * sign * tolerance))


def test_what_people_write_is_taken_and_divided():
    found = as_stochastic("T", [[0.333, 0.333, 0.333]] * 3)
    assert found.tolist() == [[1 / 3] * 3] * 3


def test_the_first_wrong_row_of_a_stack_is_named():
    stack = np.stack([np.eye(3)] * 4)
    stack[2, 1] = [0.5, 0.25, 0.5]
    with pytest.raises(ValueError, match=r"T must have rows that sum to 1, but row 1 sums to 1\.25; divide"):
        as_stochastic("T", stack)
    for value, words in ((np.nan, "row 2, column 0 has nan"), (np.inf, "but row 2 sums to inf")):
        stack[1, 2, 0] = value
        with pytest.raises(ValueError, match=words):
            as_stochastic("T", stack)


def test_only_a_matrix_whose_columns_add_up_is_to_be_transposed():
    with pytest.raises(ValueError, match="pass the transpose"):
        as_stochastic("T", [[0.9, 0.3], [0.1, 0.7]])
    with pytest.raises(ValueError, match="divide each row"):
        as_stochastic("T", [[0.9, 0.3], [0.2, 0.7]])


def test_a_distribution_alone_has_no_rows():
    with pytest.raises(ValueError, match="q must hold probabilities, at least 0, but class 2 has -1"):
        check_distributions("q", as_numbers("q", [1.0, 1.0, -1.0]), TARGET, rows=False)


def test_plain_rows_without_numpy():
    assert wrong_row([[1.0, 0.0], [0.0, 1.0]], WRITTEN) is None
    assert wrong_row([[1.0, 0.0], [1.0]], WRITTEN) == (1, "has 1 numbers, not one for each of 2 rows")


def test_the_coarser_a_precision_the_more_may_be_off():
    assert sorted(BY_PRECISION, key=BY_PRECISION.__getitem__) == ["float64", "float32", "float16", "bfloat16"]
    for name, allowed in BY_PRECISION.items():
        kind = getattr(torch, name)
        p = (3 * torch.randn(200, 1000, generator=torch.Generator().manual_seed(0))).softmax(1).to(kind)
        off = float((p.double().sum(1) - 1).abs().max())
        assert off <= allowed, (name, off)
