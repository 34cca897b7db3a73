from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from benchmarks.training import accuracy
from benchmarks.training.accuracy import check_data, compare_accuracy
from benchmarks.training.nets import TRAININGS
from benchmarks.training.results import AccuracyCase
from softtargets.exceptions import SofttargetsError
from softtargets.recipes import MLP

CPU = torch.device("cpu")
CASE = AccuracyCase("digits", epochs=6, precision="fp32", seeds=3)


@pytest.fixture
def small(monkeypatch):
    """A smaller net, on which the test does not wait."""
    monkeypatch.setitem(TRAININGS, "digits", replace(TRAININGS["digits"], model=MLP(hidden=(48,))))


def test_both_sides_reach_the_same(small):
    item = compare_accuracy(CASE, 0, CPU, None)
    assert (item.status, item.reason) == ("ok", "")
    assert len(item.ours) == len(item.eager) == 3
    assert len(set(item.ours)) > 1
    assert min(item.ours + item.eager) > 0.8  # chance is 0.1
    assert abs(item.difference) < 0.03


def test_a_training_that_fails_is_written_down(small, monkeypatch):
    def broken(*_, **__):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(accuracy, "train", broken)
    item = compare_accuracy(CASE, 0, CPU, None)
    assert (item.status, item.reason) == ("failed", "out of memory")
    assert item.ours == item.eager == ()
    assert item.agrees is None


def test_a_run_that_diverges_is_a_failure(small, monkeypatch):
    recipe = TRAININGS["digits"]
    monkeypatch.setitem(TRAININGS, "digits", replace(recipe, optimiser=replace(recipe.optimiser, lr=1e9)))
    item = compare_accuracy(CASE, 0, CPU, None)
    assert item.status == "failed"
    assert item.reason.startswith("RuntimeError: a run failed: train_loss is")


def test_data_that_is_not_there_is_missed_at_once(tmp_path):
    check_data(CASE, tmp_path)
    with pytest.raises(
        SofttargetsError, match=r"--data mnist is not there: get it with softtargets data fetch mnist"
    ):
        check_data(AccuracyCase("mnist", 1, "fp32", 2), tmp_path)
