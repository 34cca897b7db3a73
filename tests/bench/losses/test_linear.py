from __future__ import annotations

import pytest
import torch

from benchmarks.clocks import WallClock
from benchmarks.losses import rounds
from benchmarks.losses.linear import measure_linear
from benchmarks.losses.results import LinearCase
from benchmarks.losses.rounds import LossSession
from benchmarks.results import Timing
from softtargets import losses

SESSION = LossSession(WallClock(torch.device("cpu")), copy_rate=1e9, number=0, seconds=0.0)
CASE = LinearCase("labo", 20, 8, 30, "fp32")


class Chunked(torch.nn.Module):
    """What a fused projection must look like from outside."""

    def __init__(self, loss):
        super().__init__()
        self.loss = loss

    def forward(self, hidden, weight, target):
        return self.loss(hidden @ weight.T, target)


class Wrong(Chunked):
    def forward(self, hidden, weight, target):
        return super().forward(hidden, weight.detach() + 0 * weight, target)


def test_materialised_and_text_book_agree_with_float64():
    result = measure_linear(CASE, ("materialised", "eager"), SESSION)
    assert result.floor > 0
    for entry in result.entries:
        assert entry.status == "ok"
        assert entry.time is not None
        assert entry.gradient_error < 1e-5


@pytest.mark.parametrize(("kind", "status"), [(Chunked, "ok"), (Wrong, "disagrees")])
def test_a_linear_loss_is_found_and_checked(monkeypatch, kind, status):
    monkeypatch.setattr(losses, "LinearLoss", kind, raising=False)
    entry = measure_linear(CASE, ("ours", "eager"), SESSION).entry("ours")
    assert entry.status == status
    assert entry.again is not None


def test_the_floor_is_three_products_and_gradients_are_not_counted(monkeypatch):
    def timed(clock, everybody, seconds):
        return {name: Timing(0.5, 0.4, 0.6, 7) for name in everybody}, {}

    monkeypatch.setattr(rounds, "interleave", timed)
    monkeypatch.setattr(rounds, "peak_memory", lambda device, run: 10_000)
    result = measure_linear(CASE, ("ours", "eager"), SESSION)
    assert result.floor == 1.5  # logits, gradient of the hidden states, gradient of the weight
    assert result.entry("ours").over(result.floor) == pytest.approx(1 / 3)
    for entry in result.entries:
        assert entry.memory == 10_000
        assert entry.lean == 10_000 - 4 * (20 * 8 + 30 * 8)
    assert result.logits_bytes == 4 * 20 * 30
