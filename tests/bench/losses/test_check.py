from __future__ import annotations

import math

import pytest
import torch

from benchmarks.losses import check
from benchmarks.losses.check import Errors, Outcome, compare, reference, sampled, worst
from benchmarks.losses.textbook import COMPARED


def test_rows_from_the_first_to_the_last():
    device = torch.device("cpu")
    assert sampled(3, device).tolist() == [0, 1, 2]
    assert sampled(1, device).tolist() == [0]
    many = sampled(262144, device).tolist()
    assert (many[0], many[-1], len(set(many))) == (0, 262143, 16)


@pytest.mark.parametrize("name", ["labo", "distillation", "prior", "matrix"])
def test_blocks_and_single_rows_give_the_whole(name, monkeypatch):
    monkeypatch.setattr(check, "BLOCK", 50)
    generator = torch.Generator().manual_seed(2)
    logits = torch.randn(23, 7, generator=generator)
    target = torch.randint(7, (23,), generator=generator)
    subject = COMPARED[name]
    given = {
        "": None,
        "teacher": torch.randn(23, 7, generator=generator),
        "prior": torch.rand(7, generator=generator).softmax(-1),
        "matrix": torch.rand(7, 7, generator=generator).softmax(-1),
    }[subject.given]
    found = reference(subject.textbook, logits, target, given, subject.given == "teacher")
    leaf = logits.double().requires_grad_()
    whole = subject.textbook(leaf, target, *([] if given is None else [given.double()]))
    whole.backward()
    assert found.loss == pytest.approx(whole.item(), rel=1e-12)
    torch.testing.assert_close(found.gradient, leaf.grad[sampled(23, torch.device("cpu"))])


def test_errors_are_relative_to_the_largest_of_a_row():
    wanted = Outcome(2.0, torch.tensor([[1.0, -4.0], [0.1, 0.0]], dtype=torch.float64))
    found = Outcome(2.2, torch.tensor([[1.0, -4.2], [0.1, 0.01]], dtype=torch.float64))
    errors = compare(found, wanted)
    assert errors.loss == pytest.approx(0.1)
    assert errors.gradient == pytest.approx(0.1)
    assert compare(found, wanted, smallest=0.01).gradient == pytest.approx(0.19 / 4)


def test_the_worst_of_several_is_not_hidden_by_the_others():
    good, off, broken = (
        Outcome(1.0, torch.full((1, 2), value, dtype=torch.float64)) for value in (1, 1.5, math.nan)
    )
    assert worst([good, off], [good, good]).gradient == pytest.approx(0.5)
    for found in ([good, broken], [broken, good]):
        assert math.isnan(worst(found, [good, good]).gradient)


def test_what_is_wrong_in_words():
    assert Errors(1e-6, 1e-6).beyond(1e-4, "ours") == ""
    assert (
        Errors(0.0, 2e-3).beyond(1e-4, "ours") == "its gradient differs from ours by 2.0e-03 (allowed 1e-04)"
    )
    assert Errors(math.nan, 0.0).beyond(1e-4, "ours") == "its loss is not finite"
