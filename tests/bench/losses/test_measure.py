from __future__ import annotations

import pytest
import torch

from benchmarks.bench import Contestant
from benchmarks.clocks import WallClock, clock_for
from benchmarks.failures import Absent
from benchmarks.losses import contestants, measure
from benchmarks.losses.grid import LOSSES
from benchmarks.losses.measure import Inputs, measure_loss
from benchmarks.losses.results import LossCase
from benchmarks.losses.rounds import LossSession
from benchmarks.losses.textbook import COMPARED, ComparedLoss

CPU = torch.device("cpu")
SESSION = LossSession(WallClock(CPU), copy_rate=1e9, number=0, seconds=0.0)


@pytest.mark.parametrize("name", LOSSES)
def test_a_case_has_everybody_checked_and_timed(name):
    result = measure_loss(LossCase(name, 6, 11, "fp32"), ("ours", "eager"), SESSION)
    ours, eager = result.entries
    for entry in (ours, eager):
        assert (entry.status, entry.reason) == ("ok", "")
        assert entry.time.median > 0
        assert entry.call > 0
        assert entry.loss_error < 1e-5
        assert entry.gradient_error < 1e-5
        assert entry.memory is None
    assert ours.again is not None
    assert eager.again is None


def test_the_floor_is_what_must_be_moved():
    logits = 6 * 11 * 4
    assert measure_loss(LossCase("labo", 6, 11, "fp32"), ("ours",), SESSION).floor == 2 * logits / 1e9
    assert measure_loss(LossCase("distillation", 6, 11, "fp32"), ("ours",), SESSION).floor == 3 * logits / 1e9
    assert measure_loss(LossCase("matrix", 6, 11, "fp32"), ("ours",), SESSION).floor == 3 * logits / 1e9
    assert measure_loss(LossCase("prior", 6, 11, "fp32"), ("ours",), SESSION).floor == (2 * logits + 44) / 1e9


def test_logits_are_random_and_the_same_for_the_same_case():
    case = LossCase("labo", 5, 7, "bf16")
    first, second = (Inputs.draw(case, COMPARED["labo"], CPU) for _ in range(2))
    assert torch.equal(first.logits, second.logits)
    assert first.logits.dtype == torch.bfloat16
    assert first.logits.is_leaf
    assert first.logits.std() > 1


def rigged(monkeypatch, **calls):
    """Replace rivals by other functions."""
    honest = contestants.contestant

    def contestant(name, compared, given, device):
        if name in calls:
            return calls[name] if isinstance(calls[name], Contestant) else Contestant(name, calls[name])
        return honest(name, compared, given, device)

    monkeypatch.setattr(measure, "contestant", contestant)


def test_who_computes_something_else_is_found_out(monkeypatch):
    rigged(monkeypatch, eager=lambda z, y: 1.01 * COMPARED["labo"].textbook(z, y))
    entry = measure_loss(LossCase("labo", 6, 11, "fp32"), ("ours", "eager"), SESSION).entry("eager")
    assert entry.status == "disagrees"
    assert entry.reason == "its loss differs from ours by 1.0e-02 (allowed 1e-04)"
    assert entry.time is not None


def test_when_we_are_wrong_it_says_so(monkeypatch):
    rigged(monkeypatch, ours=lambda z, y: 1.01 * COMPARED["labo"].textbook(z, y))
    entry = measure_loss(LossCase("labo", 6, 11, "fp32"), ("ours",), SESSION).entry("ours")
    assert entry.reason == "its loss differs from float64 by 1.0e-02 (allowed 1e-04)"


def test_who_fails_is_written_down_and_the_others_are_measured(monkeypatch):
    def full(z, y):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 9 GiB")

    rigged(monkeypatch, eager=full)
    result = measure_loss(LossCase("labo", 6, 11, "fp32"), ("ours", "eager", "liger"), SESSION)
    assert [(entry.name, entry.status) for entry in result.entries] == [
        ("ours", "ok"),
        ("eager", "failed"),
        ("liger", "absent"),
    ]
    assert result.entry("eager").reason == "out of memory"
    assert result.entry("liger").reason == "Liger has no such loss"


def test_who_overwrites_the_logits_spoils_nobody_elses(monkeypatch):
    def overwriting(z, y):
        def spoil(_):
            z.data.fill_(torch.nan)

        value = COMPARED["labo"].textbook(z, y)
        value.register_hook(spoil)
        return value

    rigged(monkeypatch, liger=Contestant("liger", overwriting, overwrites=True))
    result = measure_loss(LossCase("labo", 6, 11, "fp32"), ("liger", "ours", "eager"), SESSION)
    assert [entry.status for entry in result.entries] == ["ok"] * 3


def test_a_matrix_that_fits_nowhere_is_not_made():
    result = measure_loss(LossCase("matrix", 6, 131072, "fp32"), ("ours", "eager"), SESSION)
    assert {entry.status for entry in result.entries} == {"absent"}
    assert result.entries[0].reason == "a matrix of 131072 x 131072 would take 69 GB"


def test_in_place_is_found_by_the_signature(monkeypatch):
    class Overwriting(torch.nn.Module):
        def __init__(self, inplace=False):
            super().__init__()
            self.inplace = inplace

        def forward(self, logits, target):
            assert self.inplace
            return COMPARED["labo"].textbook(logits, target)

    class Plain(torch.nn.Module):
        pass

    subject = ComparedLoss(COMPARED["labo"].textbook, Overwriting)
    found = contestants.contestant("ours in place", subject, None, CPU)
    assert found.overwrites
    found.call(torch.zeros(2, 3), torch.tensor([0, 1]))
    with pytest.raises(Absent, match="Plain cannot overwrite its logits"):
        contestants.contestant("ours in place", ComparedLoss(subject.textbook, Plain), None, CPU)


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
def test_a_case_on_a_gpu(dtype):
    device = torch.device("cuda")
    session = LossSession(clock_for(device), 4e12, 0, 0.02)
    result = measure_loss(LossCase("labo", 512, 4096, dtype), ("ours", "eager", "compile"), session)
    assert [entry.status for entry in result.entries] == ["ok"] * 3
    eager = result.entry("eager")
    assert eager.memory > 2 * result.logits_bytes
    assert eager.time.median > result.floor
