from __future__ import annotations

import importlib.util

import pytest
import torch

from benchmarks.calibration.check import complaint, reference
from benchmarks.calibration.contestants import contestant
from benchmarks.calibration.grid import RIVALS
from benchmarks.calibration.logits import made_up
from benchmarks.calibration.results import ALL_OURS
from benchmarks.failures import Absent

CPU = torch.device("cpu")


@pytest.mark.parametrize("name", [*ALL_OURS, *RIVALS])
def test_everybody_computes_the_same_and_leaves_the_logits_alone(name):
    examples = made_up(500, 20, CPU)
    before = examples.logits.clone()
    try:
        run = contestant(name, CPU, batch=64).call  # 500 is not a multiple
    except Absent:
        pytest.skip(f"{name} is not installed")
    assert complaint(name, run(examples), reference(examples)) == ""
    assert run(examples) == run(examples)
    assert torch.equal(examples.logits, before)


def test_netcal_is_absent_on_a_gpu(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda package: object())
    with pytest.raises(Absent, match="netcal works on the CPU only"):
        contestant("netcal", torch.device("cuda"), batch=64)
