"""Losses made from recipes: a smoothing matrix, alone, in packs, and for the wrong classes."""

from __future__ import annotations

import copy
import math
from functools import partial

import numpy as np
import pytest
import torch

from softtargets.exceptions import RecipeError
from softtargets.recipes import LabelSmoothing
from softtargets.runs import RunStore
from softtargets.training import train as train_anywhere
from softtargets.training.building import build_loss, free_numbers
from softtargets.training.pack_loss import StackedLoss, kind_of_loss

from .making import CPU, advanced, finished, same, started, states
from .test_pack import assert_near

train = partial(train_anywhere, device="cpu")


def targets(seed: int, classes: int = 10) -> list[list[float]]:
    """A matrix whose rows are far from each other and from those of other seeds."""
    return np.random.default_rng(seed).dirichlet(np.full(classes, 0.3), classes).tolist()


def smoothed(recipe, seed, alpha=1.0, classes=10):
    return recipe.replace({"regulariser": LabelSmoothing(alpha=alpha, matrix=targets(seed, classes))})


@pytest.mark.parametrize("alpha", [1.0, 0.3])
@pytest.mark.parametrize("spread", ["all", "others"])
def test_the_target_of_a_label_is_its_row_by_plain_loops(recipe, alpha, spread):
    matrix = targets(1)
    part = LabelSmoothing(alpha=alpha, spread=spread, matrix=matrix)
    logits = torch.randn(6, 10, generator=torch.Generator().manual_seed(0))
    labels = [0, 3, 9, 4, 4, 7]
    expected = 0.0
    for row, label in zip(logits.double().tolist(), labels, strict=True):
        total = math.log(sum(math.exp(value) for value in row))
        for k in range(10):
            q = matrix[label][k]
            if spread == "others":
                q = 0.0 if k == label else q / (1 - matrix[label][label])
            mass = (1 - alpha) * (k == label) + alpha * q
            expected += mass * (total - row[k]) / 6
    for as_tensors in (False, True):
        loss = build_loss(recipe.replace({"regulariser": part}), 10, as_tensors)
        assert loss.matrix.dtype == torch.float32
        assert float(loss(logits, torch.tensor(labels))) == pytest.approx(expected, rel=1e-5)


def test_a_matrix_for_other_classes_is_refused_before_anything_is_trained(recipe, tmp_path):
    """Also behind one for the right classes, which is of the same kind but for its size."""
    good, wrong, store = smoothed(recipe, 0), smoothed(recipe, 0, classes=3), RunStore(tmp_path)
    for recipes in ([wrong], [good, wrong]):
        with pytest.raises(RecipeError) as caught:
            train(recipes, store)
        assert str(caught.value) == "regulariser.matrix: is for 3 classes, but digits has 10"
    assert store.entries() == []


def test_matrices_are_numbers_that_each_run_has_its_own_of(recipe):
    one, other, plain = smoothed(recipe, 0), smoothed(recipe, 1, alpha=0.5), recipe
    assert free_numbers(one.regulariser) == {"alpha", "matrix"}
    assert free_numbers(plain.regulariser) == {"alpha"}
    assert kind_of_loss(one) == kind_of_loss(other)
    assert kind_of_loss(one) != kind_of_loss(plain)
    assert kind_of_loss(one) != kind_of_loss(smoothed(recipe, 0, classes=3))
    groups = StackedLoss([one, plain, other], 10, CPU)._groups
    assert [group.runs for group in groups] == [[0, 2], [1]]


def test_runs_with_different_matrices_train_as_one(recipe):
    kinds = [
        LabelSmoothing(alpha=1, matrix=targets(0)),
        LabelSmoothing(alpha=0.2),
        LabelSmoothing(alpha=0.6, matrix=targets(1)),
        "cross_entropy",
        LabelSmoothing(alpha=0.4, spread="others", matrix=targets(2)),
        LabelSmoothing(alpha=1, matrix=targets(3)),
    ]
    recipes = [recipe.replace({"regulariser": kind}) for kind in kinds]
    together = finished(started(*recipes))
    ends = [states(together, run) for run in range(len(recipes))]
    for each, end in zip(recipes, ends, strict=True):
        assert_near(states(finished(started(each))), end)
    # Nothing but the loss differs between them: so the comparison above can fail.
    weights = [end["model.head.weight"] for end in ends]
    assert all(not torch.allclose(weights[0], other, atol=1e-3) for other in weights[1:])


def test_a_matrix_survives_a_power_cut_in_a_pack(recipe):
    recipes = [smoothed(recipe, seed).replace({"seed": seed}) for seed in range(3)]
    whole = finished(started(*recipes))
    saved = [copy.deepcopy(advanced(started(*recipes), 7).save(run)) for run in range(3)]
    second = finished(started(recipes[2], recipes[0], checkpoints=[saved[2], saved[0]]))
    for place, run in enumerate((2, 0)):
        assert same(states(second, place), states(whole, run))
