from __future__ import annotations

import math
import re

import pytest
import torch
from torch.nn import functional as F

from softtargets.losses import LogitSmoothing

from .checking import (
    check_edges,
    check_every_form,
    check_gradient,
    check_nothing_moved,
    check_pack,
    check_precisions,
)
from .making import batch, matrix, shaped, weighted_cross_entropy


def oracle(alpha, table):
    def losses_of(rows, targets, weight):
        losses = []
        for row, target in zip(rows, targets, strict=True):
            smoothed = [
                (1 - alpha) * own
                + alpha * sum(share * value for share, value in zip(shares, row, strict=True))
                for own, shares in zip(row, table, strict=True)
            ]
            losses.append(0.0 if target is None else weighted_cross_entropy(target, smoothed, weight))
        return losses

    return losses_of


@pytest.mark.parametrize("alpha", [0.0, 0.1, 1.0])
def test_every_form_of_call_against_loops(alpha):
    table = matrix(4)
    check_every_form(
        lambda **more: LogitSmoothing(alpha, matrix=table, **more), oracle(alpha, table.tolist())
    )
    check_every_form(lambda **more: LogitSmoothing(alpha, **more), oracle(alpha, [[0.25] * 4] * 4))


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.5, 1.0])
def test_uniform_smoothing_is_a_temperature(alpha):
    logits, labels = batch(6, 5)
    torch.testing.assert_close(
        LogitSmoothing(alpha)(logits, labels), F.cross_entropy((1 - alpha) * logits, labels)
    )
    uniform = LogitSmoothing(alpha, matrix=torch.full((5, 5), 0.2, dtype=torch.float64))
    torch.testing.assert_close(LogitSmoothing(alpha)(logits, labels), uniform(logits, labels))


def test_the_matrix_multiplies_from_the_left():
    """Class 0 takes over the logit of class 1; were it the other way round, class 1 would change."""
    table = torch.tensor([[0.0, 1.0], [0.0, 1.0]])
    loss = LogitSmoothing(1.0, matrix=table, reduction="none")
    assert loss(torch.tensor([[5.0, -3.0]]), torch.tensor([1])).item() == pytest.approx(math.log(2))


def test_gradients():
    check_gradient(LogitSmoothing(0.3, matrix=matrix(4)))
    check_gradient(LogitSmoothing(0.3))


def test_edges():
    check_nothing_moved(LogitSmoothing(0, matrix=matrix(4)))
    check_edges(LogitSmoothing)
    check_edges(lambda **more: LogitSmoothing(0.1, matrix=torch.eye(4), **more))
    assert LogitSmoothing()(torch.zeros(1, 1), torch.tensor([0])).item() == 0
    huge = torch.tensor([[1e4, -1e4]])
    assert LogitSmoothing(0.1)(huge, torch.tensor([1])).item() == pytest.approx(0.9 * 2e4)


def test_precisions():
    check_precisions(LogitSmoothing)
    check_precisions(lambda **more: LogitSmoothing(0.4, matrix=matrix(4), **more))


def test_the_product_is_not_taken_in_half_precision_under_autocast():
    logits, labels = batch(6, 4, torch.float32)
    loss = LogitSmoothing(0.5, matrix=matrix(4))
    expected = loss(logits, labels)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(loss(logits, labels), expected)


def test_a_pack_is_each_of_its_runs():
    check_pack(LogitSmoothing, {"alpha": [0.0, 0.1, 1.0]})
    check_pack(lambda alpha: LogitSmoothing(alpha, matrix=matrix(4)), {"alpha": [0.0, 0.1, 1.0]})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 2}, "alpha must be between 0 and 1, not 2"),
        ({"matrix": torch.ones(2, 2)}, "matrix must have rows that sum to 1, but row 0 sums to 2;"),
        (
            {"matrix": torch.ones(2, 3) / 3},
            "matrix must be square, one row and one column per class, not (2, 3)",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        LogitSmoothing(**options)


def test_a_matrix_for_other_classes_is_refused():
    logits, labels, _ = shaped((5,), 4)
    with pytest.raises(ValueError, match="matrix is for 3 classes, but the logits have 4"):
        LogitSmoothing(matrix=torch.eye(3))(logits, labels)


def test_the_matrix_travels_with_the_state_and_is_printed():
    table = matrix(4).float()
    loss = LogitSmoothing(0.2, matrix=table)
    assert torch.equal(loss.state_dict()["matrix"], table)
    assert repr(loss) == "LogitSmoothing(alpha=0.2, matrix=<4 classes>)"
    assert repr(LogitSmoothing()) == "LogitSmoothing(alpha=0.1)"
