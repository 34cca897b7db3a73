from __future__ import annotations

import torch

from benchmarks.calibration import logits
from benchmarks.calibration.logits import made_up

CPU = torch.device("cpu")


def test_the_same_examples_every_time():
    first, second = made_up(50, 7, CPU), made_up(50, 7, CPU)
    assert torch.equal(first.logits, second.logits)
    assert torch.equal(first.labels, second.labels)
    assert first.logits.dtype == torch.float32
    assert first.logits.shape == (50, 7)


def test_pieces_cover_every_row(monkeypatch):
    monkeypatch.setattr(logits, "PIECE", 30)
    made = made_up(23, 10, CPU)
    assert made.logits.std(1).min() > 0.5
    assert len(torch.unique(made.logits)) == made.logits.numel()  # no row twice


def test_the_net_is_mostly_right_and_about_calibrated():
    made = made_up(4000, 1000, CPU)
    p = made.logits.double().softmax(1)
    confidence, top = p.max(1)
    accuracy = (top == made.labels).double().mean()
    assert 0.7 < accuracy < 0.85
    assert abs(confidence.mean() - accuracy) < 0.03


def test_a_part_is_the_beginning():
    made = made_up(9, 3, CPU)
    part = made.first(4)
    assert torch.equal(part.logits, made.logits[:4])
    assert len(part.labels) == 4
