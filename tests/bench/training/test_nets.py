from __future__ import annotations

import pytest
import torch

from benchmarks.training.eager import EagerLoop
from benchmarks.training.images import Images
from benchmarks.training.nets import CLASSES, TRAINED, TRAININGS
from softtargets.recipes import Linear
from softtargets.training.packing import GPU_MODELS

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("net", "weights"),
    # Counted by hand from the layers: 784-1200-1200-10; 9*32, 9*32*64, 3136*128, 128*10 and biases; and so on.
    [("fcn", 2_395_210), ("cnn", 421_642), ("alexnet", 1_068_298), ("resnet56", None), ("resnet18", None)],
)
def test_each_net_is_the_one_it_says(net, weights):
    subject = TRAINED[net]
    loop = EagerLoop(subject.recipe, Images.random(subject.shape, 2, 2, CLASSES, CPU))
    if weights is not None:
        assert sum(weight.numel() for weight in loop.net.parameters()) == weights
    seen = loop._centre(loop.images.train).shape[-1]
    assert subject.title.endswith(f"{seen} x {seen}")


def test_stacks_are_for_the_nets_that_the_engine_stacks():
    from benchmarks.training.grid import STACKED

    assert {TRAINED[net].recipe.model.name for net in STACKED} == set(GPU_MODELS)
    others = {subject.recipe.model.name for net, subject in TRAINED.items() if net not in STACKED}
    assert not others & set(GPU_MODELS)


def test_trainings_to_compare_accuracies_end_with_a_rate_of_zero():
    for name, recipe in TRAININGS.items():
        assert recipe.data.name == name
        assert recipe.schedule == Linear()
        assert recipe.epochs < 100
