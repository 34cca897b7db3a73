from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from softtargets.exceptions import SofttargetsError
from softtargets.training import choose_device
from softtargets.training.devices import free_memory

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize(
    ("name", "message"), [("gpu", "there is no device 'gpu'"), ("meta", "is not supported")]
)
def test_unknown_devices_are_refused(name, message):
    with pytest.raises(SofttargetsError, match=message):
        choose_device(name)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_gpu_that_is_not_here_is_refused():
    with pytest.raises(SofttargetsError, match="torch sees 0 CUDA devices"):
        choose_device("cuda")
    assert choose_device("auto").type == "cpu"


def test_the_free_memory_of_this_machine():
    free = free_memory(CPU)
    if free is None:
        pytest.skip("this system does not say")
    assert 0 < free < os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_without_linux_the_system_is_asked_and_may_not_know(monkeypatch):
    def missing(self, **how):
        raise FileNotFoundError(self)

    monkeypatch.setattr(Path, "read_text", missing)
    monkeypatch.setattr(os, "sysconf", {"SC_AVPHYS_PAGES": 10, "SC_PAGE_SIZE": 4096}.__getitem__)
    assert free_memory(CPU) == 40960

    def unknown(name):
        raise ValueError("unrecognized configuration name")

    monkeypatch.setattr(os, "sysconf", unknown)
    assert free_memory(CPU) is None
    monkeypatch.delattr(os, "sysconf")
    assert free_memory(CPU) is None


def test_on_a_gpu_what_torch_holds_without_using_it_is_free(monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (1000, 5000))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 700)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 300)
    assert free_memory(CUDA) == 1400
