"""Measured at the end of every so many epochs only, a training is the same, and says the same where it is measured."""

from __future__ import annotations

import copy
import math

import pytest
import torch

from softtargets.recipes import CNN, MLP, SGD, Calibration, Digits, OnlineLabelSmoothing, Recipe
from softtargets.training.course import Course

from .making import advanced, finished, same, start_of, started, states

PER_EPOCH = 5  # steps, of the fixture's recipe


def measured_at(recipe, *steps):
    """The rows that the same training has after these steps if it is measured after every epoch."""
    rows = finished(started(recipe.replace({"measure_epochs": 1}))).slots[0].history
    return [row for row in rows if row["step"] in steps]


# --- when ---


@pytest.mark.parametrize(
    ("changes", "steps"),
    [
        ({"measure_epochs": 1}, [5, 10, 15, 20, 25, 30, 35]),
        ({"measure_epochs": 2}, [10, 20, 30, 35]),
        ({"measure_epochs": 3}, [15, 30, 35]),
        ({"measure_epochs": 7}, [35]),
        ({"measure_epochs": 1000}, [35]),  # more than there are: at the end only
        ({"measure_epochs": 3, "epochs": None, "steps": 33}, [15, 30, 33]),  # the last epoch is cut short
        ({"measure_epochs": 3, "epochs": None, "steps": 4}, [4]),
        ({"measure_epochs": 3, "measure_every": 10}, [10, 15, 20, 30, 35]),
        ({"measure_epochs": 4, "probes": [Calibration(every=8)]}, [8, 16, 20, 24, 32, 35]),
        ({"measure_epochs": 4, "average_last": 3}, [20, 25, 30, 35]),
        ({"measure_epochs": 4, "average_last": 2, "epochs": None, "steps": 32}, [20, 30, 32]),
    ],
    ids=str,
)
def test_when_a_net_is_measured(recipe, changes, steps):
    start = start_of(recipe.replace({"epochs": 7} | changes))
    course = Course(start.recipe, start.task)
    assert course.steps_per_epoch == PER_EPOCH
    assert [step for step in range(1, course.total_steps + 1) if course.is_measured_after(step)] == steps
    assert [row["step"] for row in finished(started(start.recipe)).slots[0].history] == steps


# --- the same training ---


STACKABLE = [
    {},
    {"regulariser": OnlineLabelSmoothing(alpha=0.5), "optimiser": SGD(lr=0.3, momentum=0.9)},
    {"average": 0.8, "clip": 1.0},
    {"model": CNN(channels=(4, 8), hidden=16, dropout=0.1)},
    {"measure_every": 7},
    {"noise.type": "beta"},
]
ALONE = [
    {"regulariser": "knowledge_refinery"},
    {"regulariser": {"name": "beta_smoothing", "decay": 0.9}},
    {"regulariser": "cs_kd"},
    {"regulariser": "disturb_label"},
]


@pytest.mark.parametrize(
    ("changes", "stacked"),
    [*((changes, False) for changes in STACKABLE + ALONE), *((changes, True) for changes in STACKABLE)],
    ids=str,
)
def test_weights_and_rows_have_the_bits_of_a_training_that_is_measured_more_often(recipe, changes, stacked):
    wanted = recipe.replace({"epochs": 7, **changes, "measure_epochs": 3})
    often = finished(started(wanted.replace({"measure_epochs": 1}), stacked=stacked))
    seldom = finished(started(wanted, stacked=stacked))
    assert same(states(seldom), states(often))
    assert same(seldom.weights(0), often.weights(0))
    steps = {15, 30, 35} | (set(range(7, 35, 7)) if "measure_every" in changes else set())
    assert seldom.slots[0].history == [row for row in often.slots[0].history if row["step"] in steps]
    assert len(seldom.slots[0].history) == len(steps)
    assert seldom.slots[0].units == often.slots[0].units == 7 * 150


def test_a_loss_hears_of_the_end_of_every_epoch(recipe):
    """Online label smoothing learns in one epoch what it teaches in the next."""
    wanted = recipe.replace({"regulariser": OnlineLabelSmoothing(), "measure_epochs": 3})
    pack = advanced(started(wanted), PER_EPOCH)
    loss = pack.on_device.loss.loss
    assert pack.slots[0].history == []
    assert float(loss.counts.sum()) == 0  # begun anew
    assert not torch.equal(loss.table, torch.full((10, 10), 0.1))
    before = loss.table.clone()
    advanced(pack, 1)
    assert float(loss.counts.sum()) > 0
    assert torch.equal(loss.table, before)
    advanced(pack, PER_EPOCH)
    assert not torch.equal(loss.table, before)


def test_the_loss_of_a_row_is_that_of_the_last_epoch_alone(recipe):
    seldom = recipe.replace({"measure_epochs": 2})
    pack = advanced(started(seldom), 2 * PER_EPOCH - 1)
    assert pack.advance() == [0]
    losses = pack.on_device._losses[0].double().tolist()
    pack.measure([0])
    (row,) = pack.slots[0].history
    assert (row["epoch"], row["step"]) == (2, 10)
    mean = sum(size * loss for size, loss in zip((32, 32, 32, 32, 22), losses, strict=True)) / 150
    assert row["train_loss"] == pytest.approx(mean, rel=1e-12)


# --- packs ---


def test_runs_of_a_pack_are_measured_when_they_would_be_alone(recipe):
    every = [1, 2, 3, 100]
    recipes = [
        recipe.replace({"seed": seed, "measure_epochs": epochs, "epochs": 6, "regulariser.alpha": 0.1 * seed})
        for seed, epochs in enumerate(every)
    ]
    together = finished(started(*recipes))
    for run, each in enumerate(recipes):
        alone = finished(started(each, stacked=True))
        assert same(states(alone), states(together, run))
        assert alone.slots[0].history == together.slots[run].history
    assert [len(slot.history) for slot in together.slots] == [6, 3, 2, 1]


def test_runs_of_a_pack_that_are_in_different_epochs(recipe):
    recipes = [
        recipe.replace({"seed": seed, "measure_epochs": epochs, "epochs": 7})
        for seed, epochs in enumerate((3, 2, 5))
    ]
    ends = (PER_EPOCH, 4 * PER_EPOCH)  # the first of them unmeasured, the second measured
    saved = [
        copy.deepcopy(advanced(started(each, stacked=True), steps).save(0))
        for each, steps in zip(recipes, ends, strict=False)
    ]
    together = finished(started(*recipes, checkpoints=[*saved, None]))
    for run, each in enumerate(recipes):
        alone = finished(started(each, stacked=True))
        assert alone.slots[0].history == together.slots[run].history


@pytest.mark.parametrize("changes", [{}, {"regulariser": OnlineLabelSmoothing()}], ids=str)
@pytest.mark.parametrize("steps", [3, 5, 7, 10, 12, 15, 17])
def test_resumed_between_two_measurements(recipe, changes, steps):
    wanted = recipe.replace({"measure_epochs": 3, "epochs": 7, **changes})
    whole = finished(started(wanted))
    saved = copy.deepcopy(advanced(started(wanted), steps).save(0))
    assert len(saved.progress["history"]) == (1 if steps >= 15 else 0)
    resumed = finished(started(wanted, checkpoints=[saved]))
    assert same(states(resumed), states(whole))
    assert resumed.slots[0].history == whole.slots[0].history == measured_at(wanted, 15, 30, 35)
    assert resumed.slots[0].units == whole.slots[0].units


def test_a_checkpoint_of_before_has_nothing_that_is_broken(recipe):
    saved = copy.deepcopy(advanced(started(recipe), 7).save(0))
    del saved.tensors["trace.broken"]
    resumed = finished(started(recipe, checkpoints=[saved]))
    assert resumed.slots[0].history == finished(started(recipe)).slots[0].history


# --- failure ---


@pytest.mark.parametrize("epochs", [2, 3, 4, 100])
def test_a_run_that_blew_up_says_in_which_step_as_if_it_were_measured_after_every_epoch(recipe, epochs):
    bad = recipe.replace({"optimiser.lr": 1e30, "epochs": 6})
    (slot,) = finished(started(bad)).slots
    assert slot.step == PER_EPOCH
    assert "at step 2" in slot.failure
    (later,) = finished(started(bad.replace({"measure_epochs": epochs}))).slots
    assert later.failure == slot.failure
    assert later.history == []
    assert later.step == min(epochs, 6) * PER_EPOCH
    saved = advanced(started(bad.replace({"measure_epochs": epochs})), PER_EPOCH + 2).save(0)
    (resumed,) = finished(started(bad.replace({"measure_epochs": epochs}), checkpoints=[saved])).slots
    assert resumed.failure == slot.failure


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_one_loss_that_is_no_number_is_enough_whatever_comes_after(recipe, value):
    pack = advanced(started(recipe.replace({"measure_epochs": 3})), PER_EPOCH + 2)
    pack.on_device._losses[0, 1] = value
    (slot,) = finished(pack).slots
    assert slot.failure == f"train_loss is {value} at step 7"
    assert slot.step == 3 * PER_EPOCH


def test_weights_that_are_no_numbers_after_an_unmeasured_epoch_are_noticed_in_the_next_step(recipe):
    pack = advanced(started(recipe.replace({"measure_epochs": 2})), PER_EPOCH)
    for parameter in pack.on_device.nets.parameters:
        parameter.data.fill_(math.nan)
    assert finished(pack).slots[0].failure == "train_loss is nan at step 6"


def test_the_neighbours_of_a_run_that_blew_up_go_on(recipe):
    recipes = [recipe.replace({"seed": seed, "measure_epochs": 1 + seed, "epochs": 6}) for seed in range(3)]
    recipes[1] = recipes[1].replace({"optimiser.lr": 1e30})
    together = finished(started(*recipes))
    assert "at step 2" in together.slots[1].failure
    for run in (0, 2):
        alone = finished(started(recipes[run], stacked=True))
        assert same(states(alone), states(together, run))
        assert alone.slots[0].history == together.slots[run].history


# --- what is kept ---

KEPT = Recipe(
    data=Digits(limit=300, validation=100), model=MLP(hidden=(16,), dropout=0.1), epochs=7, batch=64
).replace(
    {"optimiser.lr": 2.0, "optimiser.momentum": 0.9}
)  # so fast that the best epoch is not always the last


@pytest.mark.parametrize("length", [{}, {"epochs": None, "steps": 33}], ids=str)
def test_the_mean_of_the_last_epochs_is_that_of_all_of_them(length):
    recipe = KEPT.replace({"average_last": 3, **length})
    often = finished(started(recipe, stacked=False))
    seldom = finished(started(recipe.replace({"measure_epochs": 4}), stacked=False))
    assert same(seldom.weights(0), often.weights(0))
    rows = seldom.slots[0].history
    assert [row["epoch"] for row in rows] == [4, 5, 6, 7]
    assert [row["averaged_epochs"] for row in rows] == [0, 1, 2, 3]
    assert rows == often.slots[0].history[-4:]


def test_the_best_weights_are_the_best_of_those_that_were_measured():
    recipe = KEPT.replace({"best_by": "validation_loss", "measure_epochs": 2})
    plain = started(KEPT, stacked=False)
    ends = []
    for _ in range(KEPT.epochs):
        advanced(plain, PER_EPOCH)
        ends.append((plain.slots[0].history[-1], plain.weights(0)))
    row, weights = min((ends[place] for place in (1, 3, 5, 6)), key=lambda end: end[0]["validation_loss"])
    pack = finished(started(recipe, stacked=False))
    assert same(pack.weights(0), weights)
    assert pack.slots[0].history[-1]["best_step"] == row["step"]


# --- on a GPU ---


@pytest.mark.cuda
@pytest.mark.parametrize("model", [MLP(hidden=(32,)), CNN(channels=(4, 8), hidden=16)], ids=str)
def test_the_host_asks_a_gpu_nothing_between_two_measurements(recipe, model):
    wanted = recipe.replace({"model": model, "measure_epochs": 4, "epochs": 8, "precision": "bf16"})
    pack = advanced(started(wanted, device=torch.device("cuda")), PER_EPOCH)  # steps are recorded
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(3 * PER_EPOCH - 1):
            assert pack.advance() == []
    finally:
        torch.cuda.set_sync_debug_mode("default")
    advanced(pack, 1)
    assert len(pack.slots[0].history) == 1
