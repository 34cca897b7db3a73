from __future__ import annotations

import pytest
import torch

from benchmarks.losses.grid import LOSSES
from benchmarks.losses.textbook import COMPARED


def test_the_grid_names_every_subject():
    assert tuple(COMPARED) == LOSSES


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("scale", [0.1, 3.0])
def test_the_text_book_form_is_our_loss_in_value_and_gradient(name, scale):
    generator = torch.Generator().manual_seed(1)
    subject = COMPARED[name]
    rows, classes = 12, 7
    logits = torch.randn(rows, classes, dtype=torch.float64, generator=generator) * scale
    target = torch.randint(classes, (rows,), generator=generator)
    given = {
        "": None,
        "teacher": torch.randn(rows, classes, dtype=torch.float64, generator=generator),
        "prior": torch.rand(classes, dtype=torch.float64, generator=generator).softmax(-1),
        "matrix": torch.rand(classes, classes, dtype=torch.float64, generator=generator).softmax(-1),
    }[subject.given]
    loss = subject.ours(**({"table": given} if subject.given in ("prior", "matrix") else {}))
    found = []
    for call, extras in (
        (loss, [given] if subject.given == "teacher" else []),
        (subject.textbook, [] if given is None else [given]),
    ):
        leaf = logits.clone().requires_grad_()
        value = call(leaf, target, *extras)
        value.backward()
        found.append((value.detach(), leaf.grad))
    (ours, our_gradient), (theirs, their_gradient) = found
    # The tables of our losses may be kept in single precision.
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-9)
    torch.testing.assert_close(our_gradient, their_gradient, rtol=1e-6, atol=1e-9)


def test_half_precision_is_summed_in_single():
    logits = torch.randn(4, 9, dtype=torch.bfloat16)
    target = torch.tensor([0, 1, 2, 3])
    assert COMPARED["labo"].textbook(logits, target).dtype == torch.float32
