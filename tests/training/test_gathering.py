"""Weights that are kept in the place of the last ones: the best, or the mean of several epochs."""

from __future__ import annotations

import pytest
import torch

from softtargets.exceptions import RecipeError
from softtargets.recipes import MLP, Digits, Recipe

from .making import advanced, finished, same, started

RECIPE = Recipe(
    data=Digits(limit=300, validation=100), model=MLP(hidden=(16,), dropout=0.1), epochs=6, batch=64
).replace(
    {"optimiser.lr": 2.0, "optimiser.momentum": 0.9}
)  # so fast that the best epoch is not always the last


def at_the_ends(recipe):
    """The weights and the row of metrics at the end of each epoch, of a training that keeps the last weights."""
    pack = started(recipe.replace({"average_last": None, "best_by": None}), stacked=False)
    found = []
    for _ in range(recipe.epochs):
        advanced(pack, pack.slots[0].course.steps_per_epoch)
        found.append((pack.weights(0), pack.slots[0].history[-1]))
    return found


@pytest.mark.parametrize("stacked", [False, True])
def test_the_mean_of_the_weights_of_the_last_epochs(stacked):
    recipe = RECIPE.replace({"average_last": 3})
    pack = finished(started(recipe, stacked=stacked))
    ends = [weights for weights, _ in at_the_ends(recipe)][-3:]
    for name, value in pack.weights(0).items():
        expected = torch.stack([weights[name].double() for weights in ends]).mean(0)
        torch.testing.assert_close(value.double(), expected, rtol=1e-4, atol=1e-5)
    assert [row["averaged_epochs"] for row in pack.slots[0].history] == [0, 0, 0, 1, 2, 3]


def test_an_epoch_that_is_cut_short_is_one_of_the_last_epochs():
    recipe = RECIPE.replace({"epochs": None, "steps": 18, "average_last": 2})  # five steps make an epoch
    pack, plain = finished(started(recipe, stacked=False)), started(RECIPE, stacked=False)
    ends = [advanced(plain, steps).weights(0) for steps in (15, 3)]
    for name, value in pack.weights(0).items():
        expected = torch.stack([weights[name].double() for weights in ends]).mean(0)
        torch.testing.assert_close(value.double(), expected, rtol=1e-4, atol=1e-5)
    assert [row["averaged_epochs"] for row in pack.slots[0].history] == [0, 0, 1, 2]


@pytest.mark.parametrize(("column", "best"), [("validation_loss", min), ("validation_accuracy", max)])
def test_the_weights_with_the_best_number(column, best):
    pack = finished(started(RECIPE.replace({"best_by": column}), stacked=False))
    ends = at_the_ends(RECIPE)
    weights, row = best(ends, key=lambda end: end[1][column])
    assert row["epoch"] < RECIPE.epochs  # else the last weights would do
    assert same(pack.weights(0), weights)
    assert pack.slots[0].history[-1]["best_step"] == row["step"]
    plain = [{k: v for k, v in row.items() if k != "best_step"} for row in pack.slots[0].history]
    assert plain == [row for _, row in ends]


@pytest.mark.parametrize("changes", [{"average_last": 4}, {"best_by": "validation_loss"}])
@pytest.mark.parametrize("steps", [3, 12, 17, 21])
def test_a_training_that_was_cut_gathers_the_same(changes, steps):
    recipe = RECIPE.replace(changes)
    whole = finished(started(recipe, stacked=False))
    saved = advanced(started(recipe, stacked=False), steps).save(0)
    gone_on = finished(started(recipe, stacked=False, checkpoints=[saved]))
    assert same(gone_on.weights(0), whole.weights(0))
    assert gone_on.slots[0].history == whole.slots[0].history


def test_an_average_of_decay_is_gathered_as_it_is_measured():
    recipe = RECIPE.replace({"average": 0.9, "best_by": "validation_loss"})
    pack = finished(started(recipe, stacked=False))
    best = min(pack.slots[0].history, key=lambda row: row["validation_loss"])
    again = started(recipe.replace({"best_by": None}), stacked=False)
    assert same(advanced(again, best["step"]).weights(0), pack.weights(0))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"average_last": 7}, "average_last: 7 is more than the recipe's 6 epochs"),
        (
            {"average_last": 2, "average": 0.9},
            "average_last: 2 and average both decide which weights are kept",
        ),
        ({"average_last": 2, "best_by": "validation_loss"}, "average_last: 2 and best_by both decide"),
        ({"best_by": "validation_loss", "data.validation": 0}, "best_by: there is no validation split"),
        ({"best_by": "validation_bleu"}, "best_by: validation_bleu needs a probe that measures it"),
        (
            {"best_by": "validation_loss", "measure_epochs": 6},
            "measure_epochs: 6 with 6 epochs measures the model only at the end, so that best_by has nothing to choose "
            "from; give less than 6, or leave best_by out",
        ),
        ({"best_by": "validation_loss", "measure_epochs": 7}, "measure_epochs: 7 with 6 epochs measures"),
    ],
)
def test_what_makes_no_sense_together_is_refused(changes, says):
    with pytest.raises(RecipeError, match=says):
        RECIPE.replace(changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"measure_epochs": 5},
        {"measure_epochs": 6, "measure_every": 7},
        {"measure_epochs": 6, "probes": [{"name": "calibration", "every": 7}]},
        {"measure_epochs": 6, "epochs": None, "steps": 30},  # how many epochs that is, only the data say
        {"epochs": 1},
    ],
)
def test_there_is_something_to_choose_from(changes):
    assert RECIPE.replace({"best_by": "validation_loss", **changes}).best_by == "validation_loss"
