from __future__ import annotations

import math

import pytest

from softtargets.bench.calibration import checking
from softtargets.bench.calibration.checking import complaint, reference
from softtargets.bench.calibration.limits import OTHERS_WITHIN, OURS_WITHIN
from softtargets.bench.calibration.logits import made_up


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
    import torch

    examples = made_up(300, 6, torch.device("cpu"))
    wanted = by_hand(examples)
    assert wanted > 0.01
    assert reference(examples) == pytest.approx(wanted, abs=1e-12)
    monkeypatch.setattr(checking, "PIECE", 60)
    assert reference(examples) == pytest.approx(wanted, abs=1e-12)


def test_ours_must_be_closer_than_the_others():
    between = (OURS_WITHIN + OTHERS_WITHIN) / 2
    assert "off by" in complaint("ours", 0.1 + between, 0.1)
    assert "off by" in complaint("ours streamed", 0.1 + between, 0.1)
    assert complaint("torchmetrics", 0.1 + between, 0.1) == ""
    assert complaint("ours", 0.1 + OURS_WITHIN / 2, 0.1) == ""
    assert complaint("netcal", float("nan"), 0.1) == "its ECE is nan"
