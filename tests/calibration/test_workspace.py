from __future__ import annotations

import copy
import os
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from softtargets.calibration.workspace import Workspace, ahead, one_thread


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


@pytest.fixture
def helpers():
    with ThreadPoolExecutor(3) as pool:
        yield pool


@pytest.mark.parametrize("count", [0, 1, 3])
@pytest.mark.parametrize("tasks", [0, 1, 2, 40])
def test_results_come_in_the_order_of_their_tasks(tasks, count, helpers):
    def work(task):
        time.sleep(0.002 * (task % 3))
        return 10 * task

    assert list(ahead(work, range(tasks), helpers, count)) == [10 * task for task in range(tasks)]


def test_helpers_do_some_of_the_work_with_one_thread_each(helpers):
    meeting = threading.Barrier(3, timeout=30)

    def work(task):
        meeting.wait()  # passes only if three work at the same time
        return threading.get_ident(), torch.get_num_threads()

    found = list(ahead(work, range(3), helpers, 2))
    assert len({who for who, _ in found}) == 3
    assert {threads for _, threads in found} == {1}


@pytest.mark.parametrize("bad", [0, 7, 19])
def test_what_goes_wrong_in_a_task_is_raised(bad, helpers):
    def work(task):
        time.sleep(0.001)
        if task == bad:
            raise ValueError(f"task {task} is bad")
        return task

    with pytest.raises(ValueError, match=f"task {bad} is bad"):
        list(ahead(work, range(20), helpers, 2))


def test_nobody_goes_on_when_the_results_are_no_longer_wanted(helpers):
    done = []

    def work(task):
        time.sleep(0.001)
        done.append(task)

    results = ahead(work, range(1000), helpers, 2)
    next(results)
    results.close()
    seen = len(done)
    time.sleep(0.02)
    assert len(done) == seen < 50


def test_one_thread_and_as_many_as_before():
    before = torch.get_num_threads()
    with one_thread() as outside:
        assert (torch.get_num_threads(), outside) == (1, before)
    assert torch.get_num_threads() == before


def test_one_task_is_under_way_while_another_is_used():
    begun = [threading.Event() for _ in range(5)]

    def work(task):
        begun[task].set()
        return 10 * task

    with ThreadPoolExecutor(1) as pool:
        for task, found in enumerate(ahead(work, range(5), pool, 1)):
            assert found == 10 * task
            assert begun[min(task + 1, 4)].wait(30)
            assert not any(event.is_set() for event in begun[task + 2 :])
        assert list(ahead(work, [], pool, 1)) == []


def test_what_goes_wrong_ahead_is_raised_in_its_turn(helpers):
    found = ahead(lambda task: 1 // task, [1, 0], helpers, 1)
    assert next(found) == 1
    with pytest.raises(ZeroDivisionError):
        next(found)
