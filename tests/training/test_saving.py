from __future__ import annotations

import threading

import pytest
import torch

from softtargets.exceptions import StorageError
from softtargets.runs import Checkpoint, RunStore
from softtargets.training.saving import Saver

CPU = torch.device("cpu")


class Slow:
    """A writer that waits until it is allowed to write."""

    def __init__(self):
        self.go, self.written = threading.Event(), []

    def checkpoint(self, checkpoint):
        assert self.go.wait(30)
        self.written.append(checkpoint.progress["step"])


def saved(step):
    return Checkpoint({"x": torch.full((3,), float(step))}, {"step": step})


def test_in_the_background_nobody_waits_for_the_disk():
    writer = Slow()
    with Saver(CPU, in_background=True) as saver:
        saver.save([(writer, saved(1))])
        assert saver.busy
        assert writer.written == []
        writer.go.set()
        saver.save([(writer, saved(2))])  # after the one before
        saver.wait()
        assert not saver.busy
        assert writer.written == [1, 2]


def test_leaving_waits_for_what_is_being_written():
    writer = Slow()
    with Saver(CPU, in_background=True) as saver:
        saver.save([(writer, saved(1))])
        writer.go.set()
    assert writer.written == [1]


def test_an_error_is_raised_by_the_next_call(recipe, tmp_path):
    class Full:
        def checkpoint(self, checkpoint):
            raise StorageError("the disk is full")

    with Saver(CPU, in_background=True) as saver:
        saver.save([(Full(), saved(1))])
        with pytest.raises(StorageError, match="the disk is full"):
            saver.wait()
        saver.wait()  # said once
    with Saver(CPU) as saver, pytest.raises(StorageError):
        saver.save([(Full(), saved(1))])


@pytest.mark.parametrize("in_background", [False, True])
def test_what_was_saved_can_be_read(recipe, tmp_path, in_background):
    store = RunStore(tmp_path)
    with store.claim(recipe) as writer, Saver(CPU, in_background) as saver:
        for step in range(5):
            saver.save([(writer, saved(step))])
        saver.wait()
        restored = writer.restore()
    assert restored.progress == {"step": 4}
    assert restored.tensors["x"].tolist() == [4.0] * 3
