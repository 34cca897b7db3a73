"""Checks that every loss must pass, given the losses of its rows as plain loops would compute them."""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

from .making import one_hot, reduced, rows, shaped

WEIGHT = [0.5, 2.0, 1.0, 0.25]


def check_every_form(make, losses_of, *, given=None, probabilities=True):
    """Shapes, kinds of target, ignored rows, class weights and reductions.

    `make(**options)` makes the loss for four classes. `losses_of(rows, targets, weight, given)` says what each row
    should cost; an ignored row has the target None. `given(logits)` makes the third argument of the call.
    """
    for shape in [(), (5,), (3, 2)]:
        logits, labels, soft = shaped(shape, 4)
        if shape:
            labels.view(-1)[1] = -100
        third = [] if given is None else [given(logits)]
        for target in [labels, soft] if probabilities else [labels]:
            listed = None if target is soft else labels.reshape(-1).tolist()
            if listed is None:
                targets = rows(soft)
            else:
                targets = [None if label == -100 else one_hot(label, 4) for label in listed]
            for weight in (None, WEIGHT):
                options = {"weight": None if weight is None else torch.tensor(weight, dtype=torch.float64)}
                torch.manual_seed(0)
                expected = losses_of(rows(logits), targets, weight, *map(rows, third))
                for reduction in ("none", "sum", "mean"):
                    torch.manual_seed(0)
                    found = make(reduction=reduction, **options)(logits, target, *third)
                    assert found.shape == (shape if reduction == "none" else ())
                    wanted = torch.tensor(reduced(expected, listed, reduction, weight), dtype=torch.float64)
                    torch.testing.assert_close(found.reshape(wanted.shape), wanted, rtol=1e-11, atol=1e-12)


def check_gradient(loss, *rest, classes=4, count=3):
    """Against finite differences, for labels with an ignored row and for probabilities."""
    logits, labels, soft = shaped((count,), classes, seed=3)
    labels[-1] = -100
    for target in (labels, soft):
        assert torch.autograd.gradcheck(
            lambda z, target=target: loss(z, target, *rest), logits.clone().requires_grad_()
        )


def check_edges(make, classes=4):
    """Nothing to learn from: the mean is NaN and the sum 0, as in torch, and nothing is pulled anywhere."""
    for logits, target in [
        (torch.zeros(0, classes), torch.zeros(0, dtype=torch.int64)),
        (torch.randn(3, classes), torch.full((3,), -100)),
    ]:
        logits.requires_grad_()
        assert math.isnan(make()(logits, target).item())
        total = make(reduction="sum")(logits, target)
        assert total.item() == 0
        (gradient,) = torch.autograd.grad(total, logits)
        assert not gradient.any()
        assert make(reduction="none")(logits, target).tolist() == [0.0] * len(target)


def check_precisions(make, *rest):
    """Single precision is close to double, and half precision is computed in single."""
    logits, labels, _ = shaped((64,), 4, seed=5)
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 1e-2)):
        rounded = logits.to(dtype)
        third = [value.to(dtype) for value in rest]
        torch.manual_seed(0)
        found = make()(rounded, labels, *third)
        assert found.dtype == dtype
        torch.manual_seed(0)
        exact = make()(rounded.float(), labels, *[value.float() for value in third])
        torch.testing.assert_close(found.float(), exact, rtol=tolerance, atol=tolerance)


def check_pack(kind, options, *rest, size=3, count=7, classes=4):
    """One call with a value per run is what one call for each run gives, gradients included.

    `options` holds for each hyper-parameter its value in every run; `rest` further arguments, stacked.
    """
    logits, labels, _ = shaped((size, count), classes, seed=7)
    logits = logits.movedim(1, -1).contiguous().requires_grad_()
    labels[0, 2] = -100
    packed = kind(**{name: torch.tensor(values, dtype=torch.float64) for name, values in options.items()})
    together = packed(logits, labels, *rest)
    alone = torch.stack(
        [
            kind(**{name: values[run] for name, values in options.items()})(
                logits[run], labels[run], *[value[run] for value in rest]
            )
            for run in range(size)
        ]
    )
    torch.testing.assert_close(together, alone, rtol=1e-12, atol=1e-12)
    gradients = [torch.autograd.grad(losses.sum(), logits)[0] for losses in (together, alone)]
    torch.testing.assert_close(*gradients, rtol=1e-11, atol=1e-12)


def check_nothing_moved(loss):
    """With a strength of nothing it is cross-entropy, also where a class is impossible."""
    logits = torch.tensor([[0.5, -math.inf, 1.0, 0.0], [2.0, 1.0, -math.inf, 0.0]], requires_grad=True)
    labels = torch.tensor([0, 0])
    found, expected = loss(logits, labels), F.cross_entropy(logits, labels)
    torch.testing.assert_close(found, expected)
    gradients = [torch.autograd.grad(value, logits)[0] for value in (found, expected)]
    torch.testing.assert_close(*gradients)
