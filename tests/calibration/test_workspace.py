from __future__ import annotations

import copy
import os
import pickle

import torch

from softtargets.calibration.workspace import Workspace


def test_buffers_are_lent_to_one_at_a_time_and_used_again():
    workspace, piece = Workspace(), torch.zeros(4, 3)
    with workspace.lend(piece) as (a, b), workspace.lend(piece) as (c, d):
        assert a.shape == b.shape == c.shape == d.shape == (4, 3)
        for number, buffer in enumerate((a, b, c, d)):
            buffer.fill_(number)
        assert [float(buffer.sum()) for buffer in (a, b, c, d)] == [0, 12, 24, 36]
        places = {a.data_ptr(), c.data_ptr()}
    with workspace.lend(piece[:2]) as (first, _):
        assert first.data_ptr() in places
        assert first.is_contiguous()


def test_other_precisions_and_larger_pieces_get_other_buffers():
    workspace = Workspace()
    for shape, dtype in (((2, 3), torch.float32), ((9, 3), torch.float32), ((2, 3), torch.float64)):
        with workspace.lend(torch.zeros(shape, dtype=dtype)) as buffers:
            assert all(buffer.shape == shape and buffer.dtype == dtype for buffer in buffers)
    assert len(workspace._idle) == 1


def test_threads_are_kept_until_more_are_needed():
    workspace = Workspace()
    pool = workspace.helpers(0)
    assert workspace.helpers(1) is pool
    larger = workspace.helpers(3)
    assert larger is not pool
    assert workspace.helpers(2) is larger
    assert larger.submit(lambda: 5).result() == 5


def test_a_forked_process_gets_threads_of_its_own(monkeypatch):
    workspace = Workspace()
    pool = workspace.helpers(1)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert workspace.helpers(1) is not pool


def test_copies_begin_empty():
    workspace = Workspace()
    with workspace.lend(torch.zeros(1000, 1000)):
        pass
    workspace.helpers(2)
    assert len(pickle.dumps(workspace)) < 1000
    assert copy.deepcopy(workspace)._idle == []
