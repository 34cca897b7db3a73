from __future__ import annotations

import math

import pytest
import torch

from benchmarks.calibration import check
from benchmarks.calibration.check import Reference, complaint, reference
from benchmarks.calibration.logits import Examples, made_up
from benchmarks.calibration.results import OTHERS_WITHIN, OURS_WITHIN


def by_hand(examples) -> float:
    """Example after example, as the formula has it."""
    bins = [[0, 0.0, 0] for _ in range(15)]
    for row, label in zip(examples.logits.double().tolist(), examples.labels.tolist(), strict=True):
        highest = max(row)
        confidence = 1 / math.fsum(math.exp(value - highest) for value in row)
        found = bins[min(int(confidence * 15), 14)]
        found[0] += 1
        found[1] += confidence
        found[2] += row.index(highest) == label
    return sum(n / len(examples.labels) * abs(c / n - right / n) for n, c, right in bins if n)


def test_the_reference_is_the_formula(monkeypatch):
    examples = made_up(300, 6, torch.device("cpu"))
    wanted = by_hand(examples)
    assert wanted > 0.01
    assert reference(examples) == pytest.approx((wanted, 0.0), abs=1e-12)
    monkeypatch.setattr(check, "PIECE", 60)
    assert reference(examples) == pytest.approx((wanted, 0.0), abs=1e-12)


def test_an_example_that_rounding_puts_into_another_bin_is_allowed_for():
    # Logits whose confidence lies on an edge, a little to either side in single precision.
    at_edge = torch.log(torch.tensor([[k / 15, 1 - k / 15] for k in range(8, 15)] * 50))
    examples = Examples(at_edge + torch.linspace(-3, 3, 350)[:, None], torch.zeros(350, dtype=torch.int64))
    single = (examples.logits.softmax(1).amax(1).double() * 15).long()
    double = (examples.logits.double().softmax(1).amax(1) * 15).long()
    moved = int((single != double).sum())
    assert moved > 0
    assert reference(examples).rounding == pytest.approx(2 * moved / 350)


def test_ours_must_be_closer_than_the_others():
    between = (OURS_WITHIN + OTHERS_WITHIN) / 2
    wanted = Reference(0.1, 0.0)
    assert "off by" in complaint("ours", 0.1 + between, wanted)
    assert "off by" in complaint("ours streamed", 0.1 + between, wanted)
    assert complaint("torchmetrics", 0.1 + between, wanted) == ""
    assert complaint("ours", 0.1 + OURS_WITHIN / 2, wanted) == ""
    assert complaint("ours", 0.1 + between, Reference(0.1, between)) == ""
    assert complaint("netcal", float("nan"), wanted) == "its ECE is nan"
