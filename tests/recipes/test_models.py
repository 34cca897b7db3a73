from __future__ import annotations

import inspect

import pytest
import torch

from softtargets.models import MODELS, Classifier
from softtargets.recipes import CNN, MLP, Model, build

from .making import NAMES


def test_every_model_a_recipe_names_is_built_in_the_models_room():
    assert set(MODELS) == set(NAMES[Model])


@pytest.mark.parametrize("part", NAMES[Model].values(), ids=lambda part: part.name)
def test_the_net_takes_exactly_the_fields_with_the_same_defaults(part):
    parameters = dict(inspect.signature(MODELS[part.name]).parameters)
    assert list(parameters)[:2] == ["shape", "classes"]
    defaults = {name: value.default for name, value in list(parameters.items())[2:]}
    assert defaults == vars(part())


@pytest.mark.parametrize(
    "part",
    [MLP(hidden=[7]), MLP(hidden=[]), MLP(hidden=[5, 4, 3], dropout=0.5), CNN(channels=[2, 3], hidden=5)],
)
def test_the_fields_of_a_model_build_a_net(part):
    net = MODELS[part.name]((1, 8, 8), 10, **vars(part))
    assert isinstance(net, Classifier)
    assert net(torch.zeros(2, 1, 8, 8)).shape == (2, 10)


def test_whole_floats_become_whole_numbers_so_that_layers_can_be_built():
    widths = build(Model, {"name": "mlp", "hidden": [64.0, 32.0]}).hidden
    assert [type(width) for width in widths] == [int, int]
