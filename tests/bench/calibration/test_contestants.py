from __future__ import annotations

import importlib.util

import pytest
import torch
from softtargets.bench.calibration.checking import complaint, reference
from softtargets.bench.calibration.contestants import contestant
from softtargets.bench.calibration.grid import RIVALS
from softtargets.bench.calibration.logits import made_up
from softtargets.bench.calibration.results import ALL_OURS
from softtargets.bench.failing import Absent

CPU = torch.device("cpu")


@pytest.mark.parametrize("name", [*ALL_OURS, *RIVALS])
def test_everybody_computes_the_same_and_leaves_the_logits_alone(name):
    examples = made_up(500, 20, CPU)
    before = examples.logits.clone()
    try:
        run = contestant(name, CPU, batch=64)  # 500 is not a multiple
    except Absent:
        pytest.skip(f"{name} is not installed")
    assert complaint(name, run(examples), reference(examples)) == ""
    assert run(examples) == run(examples)
    assert torch.equal(examples.logits, before)


@pytest.mark.parametrize("name", RIVALS)
def test_who_is_not_installed_is_absent_and_says_how_to_get_it(name, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda package: None)
    package = name.partition(" ")[0]
    with pytest.raises(Absent, match=rf"{package} is not installed \(pip install {package}\)"):
        contestant(name, CPU, batch=64)


def test_netcal_is_absent_on_a_gpu(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda package: object())
    with pytest.raises(Absent, match="netcal works on the CPU only"):
        contestant("netcal", torch.device("cuda"), batch=64)
