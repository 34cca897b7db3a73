"""Environments that are not what torchrun makes are refused in one line."""

from __future__ import annotations

import pytest
import torch

from softtargets.exceptions import SofttargetsError
from softtargets.training.distributed import seat
from softtargets.training.distributed.seat import device_of

WHOLE = {"RANK": "2", "WORLD_SIZE": "4", "LOCAL_RANK": "1", "MASTER_ADDR": "host", "MASTER_PORT": "1"}


def test_a_process_knows_its_place():
    found = seat(WHOLE | {"TORCHELASTIC_MAX_RESTARTS": "3"})
    assert (found.rank, found.ranks, found.local, found.host, found.restarts) == (2, 4, 1, "host", 3)
    assert not found.leads
    assert seat({}) is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"MASTER_ADDR": ""}, "RANK is 2, so this is one of several processes, but MASTER_ADDR is not set"),
        ({"WORLD_SIZE": "", "MASTER_PORT": ""}, "but WORLD_SIZE, MASTER_PORT are not set"),
        ({"RANK": "two"}, "RANK=two, WORLD_SIZE=4, LOCAL_RANK=1: these must be whole numbers"),
        ({"RANK": "4"}, "RANK is 4 and WORLD_SIZE 4: ranks are counted from 0"),
    ],
)
def test_what_is_missing_or_wrong_is_named(changes, said):
    with pytest.raises(SofttargetsError) as error:
        seat(WHOLE | changes)
    assert said in str(error.value)
    assert "torchrun --nproc-per-node N" in str(error.value)


def test_one_process_on_each_machine_speaks_when_the_leader_is_gone():
    seats = [seat(WHOLE | {"RANK": str(rank), "LOCAL_RANK": str(rank % 2)}) for rank in range(4)]
    assert [own.speaks for own in seats] == [False, True, True, False]


def test_every_rank_takes_the_gpu_of_its_number(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    own = seat(WHOLE)
    assert device_of(own, "auto") == device_of(own, "cuda") == torch.device("cuda", 1)
    assert device_of(own, "cpu") == torch.device("cpu")
    with pytest.raises(SofttargetsError, match=r"device 'cuda:0' can only be used by one process"):
        device_of(own, "cuda:0")
    third = seat(WHOLE | {"LOCAL_RANK": "2"})
    with pytest.raises(SofttargetsError, match=r"which has 2 GPUs, .* give torchrun --nproc-per-node 2"):
        device_of(third, "auto")
