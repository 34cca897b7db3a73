from __future__ import annotations

import math
import re

import pytest
import torch
from torch.nn import functional as F

from softtargets.losses import ForwardCorrection

from .checking import check_edges, check_every_form, check_gradient, check_nothing_moved, check_precisions
from .making import batch, matrix, shaped, softmax


def oracle(table):
    def losses_of(rows, targets, weight):
        losses = []
        for row, target in zip(rows, targets, strict=True):
            p = softmax(row)
            noisy = [sum(p[i] * table[i][j] for i in range(len(p))) for j in range(len(p))]
            losses.append(
                0.0
                if target is None
                else -sum(
                    (weight[j] if weight else 1.0) * part * math.log(noisy[j])
                    for j, part in enumerate(target)
                    if part
                )
            )
        return losses

    return losses_of


def test_every_form_of_call_against_loops():
    table = matrix(4)
    check_every_form(lambda **more: ForwardCorrection(table, **more), oracle(table.tolist()))


def test_without_noise_it_is_cross_entropy_exactly_however_large_the_logits():
    for scale in (1.0, 1e4):
        logits = scale * torch.tensor([[1.0, -1.0, 0.5], [-1.0, 1.0, 0.0]])
        loss = ForwardCorrection(torch.eye(3), reduction="none")
        for labels in (torch.tensor([1, 0]), torch.tensor([0, 2])):
            ours, theirs = (logits.clone().requires_grad_() for _ in range(2))
            found, expected = loss(ours, labels), F.cross_entropy(theirs, labels, reduction="none")
            assert torch.equal(found, expected)
            found.sum().backward()
            expected.sum().backward()
            assert torch.equal(ours.grad, theirs.grad)
            soft = F.one_hot(labels, 3).float()
            assert torch.equal(loss(logits, soft), expected.detach())


def test_a_sure_net_pays_no_more_than_the_noise_allows():
    flips = torch.tensor([[0.8, 0.2], [0.2, 0.8]], dtype=torch.float64)
    loss = ForwardCorrection(flips)
    for size in (1e2, 1e4):
        sure = torch.tensor([[size, -size]], dtype=torch.float64)
        assert loss(sure, torch.tensor([1])).item() == pytest.approx(-math.log(0.2), rel=1e-12)
        assert loss(sure, torch.tensor([0])).item() == pytest.approx(-math.log(0.8), rel=1e-12)


def test_rows_are_clean_and_columns_are_noisy_labels():
    """Clean 0 always becomes 1, so a net that is sure of 0 expects the label 1."""
    loss = ForwardCorrection(torch.tensor([[0.0, 1.0], [0.5, 0.5]]))
    assert loss(torch.tensor([[50.0, 0.0]]), torch.tensor([1])).item() == pytest.approx(0, abs=1e-6)


def test_the_minimum_is_at_the_clean_label():
    """With symmetric noise the expected loss over noisy labels is smallest for the clean distribution."""
    table = torch.full((3, 3), 0.15, dtype=torch.float64).fill_diagonal_(0.7)
    clean = torch.tensor([0.6, 0.3, 0.1], dtype=torch.float64)
    logits = clean.log().unsqueeze(0).requires_grad_()
    ForwardCorrection(table)(logits, (clean @ table).unsqueeze(0)).backward()
    assert logits.grad.abs().max().item() < 1e-15


def test_an_impossible_label_costs_infinitely_much_and_pulls_nowhere():
    table = torch.tensor([[0.5, 0.5, 0.0], [0.5, 0.5, 0.0], [0.5, 0.5, 0.0]])
    logits = torch.randn(2, 3, requires_grad=True)
    losses = ForwardCorrection(table, reduction="none")(logits, torch.tensor([2, 1]))
    assert losses[0].item() == math.inf
    assert math.isfinite(losses[1].item())
    losses.sum().backward()
    assert not logits.grad[0].any()
    assert logits.grad.isfinite().all()
    soft = torch.tensor([[0.5, 0.5, 0.0]])
    assert math.isfinite(ForwardCorrection(table)(logits[:1], soft).item())
    assert ForwardCorrection(table)(logits[:1], soft.flip(-1)).item() == math.inf


def test_gradients():
    check_gradient(ForwardCorrection(matrix(4)))
    check_gradient(ForwardCorrection(torch.eye(4, dtype=torch.float64)))


def test_edges():
    check_nothing_moved(ForwardCorrection(torch.eye(4)))
    check_edges(lambda **more: ForwardCorrection(torch.eye(4), **more))
    assert ForwardCorrection(torch.eye(1))(torch.zeros(1, 1), torch.tensor([0])).item() == 0
    nan = torch.tensor([[math.nan, 0.0]])
    assert math.isnan(ForwardCorrection(torch.eye(2))(nan, torch.tensor([1])).item())


def test_precisions():
    check_precisions(lambda **more: ForwardCorrection(matrix(4), **more))


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (torch.ones(2, 2), "matrix must have rows that sum to 1, but row 0 sums to 2;"),
        (
            torch.tensor([[1.5, -0.5], [0.0, 1.0]]),
            "matrix must hold probabilities, at least 0, but row 0, column 1",
        ),
        (torch.ones(2), "matrix must be 2-D (one row per class), not of shape (2,)"),
    ],
)
def test_what_is_no_transition_matrix_is_refused(table, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        ForwardCorrection(table)


def test_a_matrix_for_other_classes_is_refused():
    logits, labels, _ = shaped((5,), 4)
    with pytest.raises(ValueError, match="matrix is for 3 classes, but the logits have 4"):
        ForwardCorrection(torch.eye(3))(logits, labels)


def test_the_matrix_travels_with_the_state_and_is_printed():
    loss = ForwardCorrection(matrix(4))
    other = ForwardCorrection(torch.eye(4, dtype=torch.float64))
    other.load_state_dict(loss.state_dict())
    logits, labels = batch(5, 4)
    assert torch.equal(loss(logits, labels), other(logits, labels))
    assert repr(loss) == "ForwardCorrection(matrix=<4 classes>)"
