from __future__ import annotations

import math
import re

import pytest
import torch
from torch.nn import functional as F

from softtargets.losses import CSKD, same_class_partners

from .checking import (
    check_edges,
    check_every_form,
    check_gradient,
    check_nothing_moved,
    check_pack,
    check_precisions,
)
from .making import batch, log_softmax, shaped, softmax, weight_of, weighted_cross_entropy


def apart(taught, row, temperature):
    q = softmax([value / temperature for value in taught])
    log_p = log_softmax([value / temperature for value in row])
    return sum(a * (math.log(a) - b) for a, b in zip(q, log_p, strict=True) if a)


def oracle(temperature, strength):
    def losses_of(rows, targets, weight, partners=None):
        losses = []
        for place, (row, target) in enumerate(zip(rows, targets, strict=True)):
            if target is None:
                losses.append(0.0)
                continue
            if partners is None:
                # The next row with the same target, going round once.
                for step in range(1, len(rows) + 1):
                    partner = rows[(place + step) % len(rows)]
                    if targets[(place + step) % len(rows)] == target:
                        break
            else:
                partner = partners[place]
            extra = strength * temperature**2 * apart(partner, row, temperature)
            losses.append(weighted_cross_entropy(target, row, weight) + weight_of(target, weight) * extra)
        return losses

    return losses_of


@pytest.mark.parametrize("options", [(4.0, 1.0), (1.0, 3.0), (0.5, 0.0)])
def test_every_form_of_call_against_loops(options):
    def make(**more):
        return CSKD(*options, **more)

    check_every_form(make, oracle(*options), probabilities=False)
    check_every_form(make, oracle(*options), given=lambda logits: torch.sin(7 * logits))


def test_it_is_what_the_released_code_computes():
    logits, labels = batch(8, 5)
    partners, _ = batch(8, 5, seed=1)
    apart = F.kl_div(F.log_softmax(logits / 4, 1), F.softmax(partners / 4, 1), reduction="batchmean")
    torch.testing.assert_close(CSKD()(logits, labels, partners), F.cross_entropy(logits, labels) + 16 * apart)


def test_partners_in_the_batch_go_round_and_leave_out_ignored_rows():
    labels = torch.tensor([1, 0, -100, 1, 2, 0, 1, -100])
    logits = torch.randn(8, 3, dtype=torch.float64)
    partner = [3, 5, None, 6, 4, 1, 0, None]  # of row 0 it is row 3, ...; row 4 is alone
    expected = [
        0.0
        if other is None
        else F.cross_entropy(logits[row], labels[row]).item()
        + 16 * apart(logits[other].tolist(), logits[row].tolist(), 4)
        for row, other in enumerate(partner)
    ]
    found = CSKD(reduction="none")(logits, labels)
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64))


def test_alone_it_is_cross_entropy():
    logits, _ = batch(4, 4)
    labels = torch.arange(4)
    torch.testing.assert_close(CSKD()(logits, labels), F.cross_entropy(logits, labels))


def test_no_gradient_reaches_the_partners():
    logits, labels = batch(4, 3)
    partners = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    CSKD()(logits.requires_grad_(), labels, partners).backward()
    assert partners.grad is None
    # Within the batch a row is pulled towards its partner, and not the partner towards the row.
    pair = torch.tensor([[1.0, 0.0], [0.0, 0.0]], dtype=torch.float64, requires_grad=True)
    loss = CSKD(temperature=1.0, strength=1.0, reduction="none")
    (gradient,) = torch.autograd.grad(loss(pair, torch.tensor([0, 0]))[0], pair)
    assert gradient[0].any()
    assert not gradient[1].any()


def test_gradients():
    partners, _ = batch(3, 4, seed=9)
    check_gradient(CSKD(2.0, 0.7), partners)


def test_edges():
    check_nothing_moved(CSKD(strength=0))
    check_edges(CSKD)
    logits = torch.tensor([[0.0, 1.0, -math.inf], [1.0, 0.0, -math.inf]], requires_grad=True)
    loss = CSKD()(logits, torch.tensor([0, 0]))  # a class that both exclude costs nothing
    loss.backward()
    assert math.isfinite(loss.item())
    assert logits.grad.isfinite().all()


def test_precisions():
    check_precisions(CSKD)
    check_precisions(CSKD, torch.randn(64, 4, dtype=torch.float64))


def test_a_pack_is_each_of_its_runs():
    options = {"temperature": [4.0, 1.0, 0.5], "strength": [1.0, 3.0, 0.0]}
    check_pack(CSKD, options)
    check_pack(CSKD, options, torch.randn(3, 7, 4, dtype=torch.float64))


def test_probabilities_have_no_partners_in_the_batch():
    logits, _, soft = shaped((5,), 4)
    with pytest.raises(
        ValueError, match=r"target has probabilities, .*: give partner_logits, or class indices"
    ):
        CSKD()(logits, soft)


def test_partners_of_another_shape_are_refused():
    with pytest.raises(
        ValueError, match=r"partner_logits must have the shape of the logits, \(2, 3\), not \(3, 3\)"
    ):
        CSKD()(torch.zeros(2, 3), torch.tensor([0, 1]), torch.zeros(3, 3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": -4}, "temperature must be above 0, not -4"),
        ({"strength": -0.1}, "strength must be at least 0, not -0.1"),
    ],
)
def test_what_makes_no_sense_is_refused(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        CSKD(**options)


def test_drawn_partners_have_the_label_and_are_equally_likely():
    pool = torch.tensor([3, 1, 3, 0, 3, 1])
    labels = torch.tensor([3, 1, 0]).repeat(4000)
    drawn = same_class_partners(labels, pool, torch.Generator().manual_seed(0))
    assert torch.equal(pool[drawn], labels)
    for label, examples in [(3, [0, 2, 4]), (1, [1, 5]), (0, [3])]:
        of_label = drawn[labels == label]
        for example in examples:
            share = (of_label == example).double().mean().item()
            assert share == pytest.approx(1 / len(examples), abs=0.04)
    again = same_class_partners(labels, pool, torch.Generator().manual_seed(0))
    assert torch.equal(drawn, again)
    assert not torch.equal(drawn, same_class_partners(labels, pool, torch.Generator().manual_seed(1)))


def test_a_label_that_the_pool_lacks_is_refused():
    generator = torch.Generator()
    with pytest.raises(ValueError, match="labels has 2, but pool_labels has no example of that class"):
        same_class_partners(torch.tensor([0, 2]), torch.tensor([0, 1]), generator)
    assert len(same_class_partners(torch.tensor([], dtype=torch.int64), torch.tensor([0]), generator)) == 0


def test_it_prints_its_options():
    assert repr(CSKD()) == "CSKD(temperature=4.0, strength=1.0)"
