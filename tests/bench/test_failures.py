from __future__ import annotations

import importlib.util

import pytest
import torch

from benchmarks import failures
from benchmarks.failures import Absent, admit, explain, installed
from benchmarks.results import CaseEntry

CPU = torch.device("cpu")


def test_reasons_are_one_line():
    assert explain(Absent("not here")) == "not here"
    assert explain(ValueError("")) == "ValueError"
    assert len(explain(RuntimeError("x" * 1000))) == 240
    assert explain(RuntimeError("[enforce fail] not enough memory: you tried")) == "out of memory"


def test_whoever_breaks_or_is_absent_is_written_down_and_the_others_go_on():
    def enter(name):
        if name == "absent":
            raise Absent("not here")
        if name == "broken":
            raise RuntimeError("no luck")
        return CaseEntry(name)

    found, dead = admit(("absent", "broken", "fine"), enter, CaseEntry, CPU)
    assert dead == ""
    assert list(found.values()) == [
        CaseEntry("absent", "absent", "not here"),
        CaseEntry("broken", "failed", "RuntimeError: no luck"),
        CaseEntry("fine"),
    ]


def test_after_one_that_takes_the_device_along_nobody_is_tried(monkeypatch):
    tried = []

    def enter(name):
        tried.append(name)
        return CaseEntry(name)

    monkeypatch.setattr(failures, "device_error", lambda device: "illegal memory access")
    found, dead = admit(("first", "second"), enter, CaseEntry, CPU)
    assert tried == ["first"]
    assert found["second"].reason == "not run: the device had failed before (illegal memory access)"
    assert dead == "illegal memory access"


def test_who_is_not_installed_is_absent_and_says_how_to_get_it(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda package: None)
    with pytest.raises(Absent, match=r"Liger is not installed \(pip install liger-kernel\)"):
        installed("liger_kernel.transformers", "liger-kernel", "Liger")
    with pytest.raises(Absent, match=r"netcal is not installed \(pip install netcal\)"):
        installed("netcal.metrics")
