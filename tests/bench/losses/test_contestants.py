from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest
import torch
from torch.nn import functional as F

from benchmarks.failures import Absent
from benchmarks.losses import contestants
from benchmarks.losses.contestants import contestant, linear_contestant
from benchmarks.losses.grid import LINEAR_RIVALS, RIVALS
from benchmarks.losses.textbook import COMPARED

CPU, GPU = torch.device("cpu"), torch.device("cuda")
PLAIN, SMOOTH, LABO = (COMPARED[name] for name in ("cross_entropy", "label_smoothing", "labo"))


def projection():
    generator = torch.Generator().manual_seed(3)
    hidden, weight = (torch.randn(rows, 8, generator=generator, requires_grad=True) for rows in (40, 24))
    return hidden, weight, torch.randint(24, (40,), generator=generator)


def agrees(call, reference):
    found = []
    for function in (call, reference):
        hidden, weight, target = projection()
        loss = function(hidden, weight, target)
        found.append((loss.detach(), *torch.autograd.grad(loss, (hidden, weight))))
    for ours, theirs in zip(*found, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["ours", "materialised", "eager"])
@pytest.mark.parametrize("loss", ["cross_entropy", "label_smoothing", "labo"])
def test_every_projection_computes_the_text_book_loss(name, loss):
    compared = COMPARED[loss]
    call = linear_contestant(name, compared, "fp32", CPU).call
    agrees(call, lambda hidden, weight, target: compared.textbook(hidden @ weight.T, target))


@pytest.mark.skipif(not hasattr(F, "linear_cross_entropy"), reason="torch 2.13 has linear_cross_entropy")
def test_torchs_own_projection_is_called_in_chunks():
    call = linear_contestant("torch", PLAIN, "fp32", CPU).call
    agrees(call, lambda hidden, weight, target: F.cross_entropy(hidden @ weight.T, target))
    with pytest.raises(Absent, match="torch does not compute this in chunks; whole it is what eager does"):
        linear_contestant("torch", SMOOTH, "fp32", CPU)


def test_an_older_torch_has_no_projection(monkeypatch):
    monkeypatch.delattr(F, "linear_cross_entropy", raising=False)
    with pytest.raises(Absent, match=r"torch .* has no linear_cross_entropy \(2\.13 has\)"):
        linear_contestant("torch", PLAIN, "fp32", CPU)


def test_liger_gets_the_weight_first(monkeypatch):
    class Fused:
        def __init__(self, label_smoothing=0.0):
            self.alpha = label_smoothing

        def __call__(self, weight, hidden, target):
            return F.cross_entropy(hidden @ weight.T, target, label_smoothing=self.alpha)

    module = ModuleType("liger_kernel.transformers")
    module.LigerFusedLinearCrossEntropyLoss = Fused
    monkeypatch.setitem(sys.modules, "liger_kernel", ModuleType("liger_kernel"))
    monkeypatch.setitem(sys.modules, "liger_kernel.transformers", module)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    call = linear_contestant("liger", SMOOTH, "bf16", GPU).call
    agrees(call, lambda hidden, weight, target: SMOOTH.textbook(hidden @ weight.T, target))


def test_cut_cross_entropy_gets_hidden_states_weight_and_target(monkeypatch):
    module = ModuleType("cut_cross_entropy")
    module.linear_cross_entropy = lambda e, c, targets: F.cross_entropy(e @ c.T, targets)
    monkeypatch.setitem(sys.modules, "cut_cross_entropy", module)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())
    call = linear_contestant("cce", PLAIN, "bf16", GPU).call
    agrees(call, lambda hidden, weight, target: F.cross_entropy(hidden @ weight.T, target))


@pytest.mark.parametrize(
    ("name", "compared", "dtype", "device", "reason"),
    [
        ("liger", LABO, "bf16", GPU, "Liger has no such loss"),
        ("liger", SMOOTH, "bf16", CPU, "Liger needs a GPU"),
        ("torch", LABO, "bf16", GPU, "torch has no such loss after a projection"),
        ("cce", SMOOTH, "bf16", GPU, "Cut Cross-Entropy has plain cross-entropy only"),
        ("cce", LABO, "bf16", GPU, "Cut Cross-Entropy has plain cross-entropy only"),
        ("cce", PLAIN, "fp32", GPU, "Cut Cross-Entropy takes bf16 and fp16 only"),
        ("cce", PLAIN, "bf16", CPU, "Cut Cross-Entropy needs a GPU"),
    ],
)
def test_who_cannot_do_a_case_says_so(name, compared, dtype, device, reason):
    with pytest.raises(Absent, match=reason):
        linear_contestant(name, compared, dtype, device)


@pytest.mark.parametrize("name", ["liger", "cce"])
def test_a_package_that_is_not_there_says_how_to_get_it(name, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda package: None)
    with pytest.raises(Absent, match=r"is not installed \(pip install (liger-kernel|cut-cross-entropy)\)"):
        linear_contestant(name, PLAIN, "bf16", GPU)


def test_who_overwrites_its_logits_is_marked(monkeypatch):
    monkeypatch.setattr(contestants, "_liger", lambda *_: None)
    found = {name: contestant(name, SMOOTH, None, CPU) for name in ("ours", "ours in place", *RIVALS)}
    assert [name for name, each in found.items() if each.overwrites] == ["ours in place", "liger"]
    assert set(LINEAR_RIVALS) == {*RIVALS, "torch", "cce"}
