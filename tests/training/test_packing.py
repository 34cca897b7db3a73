from __future__ import annotations

import pytest
import torch

from softtargets.recipes import CNN, Adam, Distillation, LabelSmoothing, Multi30k, Recipe, Transformer
from softtargets.training.packing import (
    CPU_RUNS,
    CPU_WEIGHTS,
    GPU_RUNS,
    GPU_STREAMS,
    arrangement,
    kind_of_run,
)

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 3},
        {"epochs": 9},
        {"regulariser": LabelSmoothing(alpha=0.4)},
        {"regulariser": "labo"},
        {"regulariser": LabelSmoothing(alpha=1, matrix=[[0.8, 0.2], [0.1, 0.9]])},
        {"noise": "pair"},
        {"optimiser.lr": 0.7},
        {"optimiser.momentum": 0.3},
        {"schedule": "cosine"},
        {"multiplier": 3.0},
        {"measure_every": 2},
        {"measure_epochs": 2},
    ],
    ids=str,
)
def test_runs_that_train_together(recipe, changes):
    assert kind_of_run(recipe) == kind_of_run(recipe.replace(changes))


def test_translations_whose_losses_want_logits_do_not_share_what_gives_states():
    smoothed = Recipe(data=Multi30k(), model=Transformer(), epochs=1, batch=4096)
    online = smoothed.replace({"regulariser": "online_label_smoothing"})
    assert kind_of_run(smoothed) != kind_of_run(online)
    assert kind_of_run(smoothed) == kind_of_run(smoothed.replace({"regulariser": "labo"}))


@pytest.mark.parametrize(
    "changes",
    [
        {"model.hidden": [16]},
        {"model": CNN()},
        {"data.limit": 100},
        {"data.standardise": "image"},
        {"batch": 16},
        {"augmentation": []},
        {"precision": "bf16"},
        {"optimiser": Adam()},
        {"optimiser.nesterov": True, "optimiser.dampening": 0.0},
        {"clip": 1.0},
        {"average": 0.9},
        {"regulariser": "cs_kd"},
        {"regulariser": "disturb_label"},
    ],
    ids=str,
)
def test_runs_that_do_not(recipe, changes):
    assert kind_of_run(recipe) != kind_of_run(recipe.replace(changes))


def test_students_shown_augmented_images_need_teachers_of_one_shape(recipe):
    def student(**changes):
        return recipe.replace({"regulariser": Distillation(teacher=recipe.replace({"seed": 5, **changes}))})

    assert kind_of_run(student()) == kind_of_run(student(epochs=7))
    assert kind_of_run(student()) != kind_of_run(student(**{"model.hidden": [16]}))
    assert kind_of_run(student()) != kind_of_run(recipe)
    bare = student().replace({"augmentation": []})
    assert kind_of_run(bare) == kind_of_run(recipe.replace({"augmentation": []}))


def test_how_many_at_a_time(recipe):
    assert arrangement(recipe, 1000, CPU) == (CPU_RUNS, True)
    assert arrangement(recipe, CPU_WEIGHTS + 1, CPU) == (1, False)
    assert arrangement(recipe.replace({"model": CNN()}), 1000, CPU) == (1, False)
    assert arrangement(recipe.replace({"regulariser": "cs_kd"}), 1000, CPU) == (1, False)
    assert arrangement(recipe, 10_000_000, CUDA) == (GPU_RUNS, True)
    for name in ("cnn", "alexnet"):
        convolving = recipe.replace({"model": name})
        assert arrangement(convolving, 1000, CUDA) == (GPU_STREAMS, False)
        assert arrangement(convolving.replace({"precision": "bf16"}), 1000, CUDA) == (GPU_RUNS, True)
    assert arrangement(recipe.replace({"model": "resnet18"}), 11_000_000, CUDA) == (GPU_STREAMS, False)
    assert arrangement(recipe.replace({"regulariser": "cs_kd"}), 1000, CUDA) == (GPU_STREAMS, False)
    assert arrangement(recipe.replace({"regulariser": "disturb_label"}), 1000, CUDA) == (1, False)
