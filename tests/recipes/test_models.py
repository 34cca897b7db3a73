from __future__ import annotations

import inspect

import pytest
import torch

from softtargets.exceptions import RecipeError
from softtargets.models import MODELS, Classifier
from softtargets.recipes import (
    CNN,
    MLP,
    AlexNet,
    InceptionV4,
    MobileNetV2,
    Model,
    Own,
    PreActResNet,
    Recipe,
    ResNet,
    ResNet18,
    ResNeXt29,
    Timm,
    Transformer,
    build,
    kinds,
)

PLAIN = "data: digits\nepochs: 1\n"


def test_every_model_a_recipe_names_is_built_in_the_models_room():
    assert kinds(Model) == {
        "mlp": MLP,
        "cnn": CNN,
        "alexnet": AlexNet,
        "preact_resnet": PreActResNet,
        "resnet18": ResNet18,
        "resnet": ResNet,
        "inception_v4": InceptionV4,
        "mobilenet_v2": MobileNetV2,
        "resnext29": ResNeXt29,
        "timm": Timm,
        "own": Own,
        "transformer": Transformer,
    }
    assert list(MODELS) == list(kinds(Model))


@pytest.mark.parametrize("part", kinds(Model).values(), ids=lambda part: part.name)
def test_the_net_takes_exactly_the_fields_with_the_same_defaults(part):
    parameters = dict(inspect.signature(MODELS[part.name]).parameters)
    given_by_the_task = ["vocabulary"] if part is Transformer else ["shape", "classes"]
    assert list(parameters)[: len(given_by_the_task)] == given_by_the_task
    defaults = {name: value.default for name, value in list(parameters.items())[len(given_by_the_task) :]}
    required = {name for name, value in defaults.items() if value is inspect.Parameter.empty}
    assert required == ({"net"} if part in (Timm, Own) else set())
    given = dict.fromkeys(required, "some:Thing")
    assert defaults | given == vars(part(**given))


@pytest.mark.parametrize(
    "part",
    [
        MLP(hidden=[7]),
        MLP(hidden=[]),
        MLP(hidden=[5, 4, 3], dropout=0.5, init_std=0.03),
        CNN(channels=[2, 3], hidden=5),
        AlexNet(),
        PreActResNet(depth=8, stages=[2, 3, 4], stem_channels=2, stem=7, variant="tensor2tensor"),
        PreActResNet(depth=8.0, stages=[2, 3, 4]),
        ResNet18(width=2),
        MobileNetV2(stem="3x3"),
        ResNeXt29(cardinality=2, base_width=2),
    ],
)
def test_the_fields_of_a_model_build_a_net(part):
    net = MODELS[part.name]((1, 8, 8), 10, **vars(part))
    assert isinstance(net, Classifier)
    assert net(torch.zeros(2, 1, 8, 8)).shape == (2, 10)


def test_a_transformer_is_built_for_a_vocabulary():
    part = Transformer(width=8, heads=2, inner=16, encoder_layers=1, decoder_layers=2, norm="pre", longest=5)
    net = MODELS[part.name](vocabulary=11, **vars(part))
    assert net(torch.ones(2, 5, dtype=torch.int64), torch.ones(2, 3, dtype=torch.int64)).shape == (2, 3, 11)


@pytest.mark.parametrize(("width", "heads"), [(10, 4), (9, 3)])
def test_a_transformer_whose_heads_do_not_fit_is_refused(width, heads):
    message = rf"^width: {width} is not even and a multiple of the {heads} heads$"
    with pytest.raises(RecipeError, match=message):
        Transformer(width=width, heads=heads)
    with pytest.raises(ValueError, match=rf"^width {width} must be even and a multiple of the {heads} heads"):
        MODELS["transformer"](9, width=width, heads=heads)


def test_whole_floats_become_whole_numbers_so_that_layers_can_be_built():
    widths = build(Model, {"name": "mlp", "hidden": [64.0, 32.0]}).hidden
    assert [type(width) for width in widths] == [int, int]


def test_an_option_added_later_leaves_old_recipes_as_they_were():
    assert MLP().canonical() == {"name": "mlp"}
    assert MLP(init_std=0.03).canonical() == {"name": "mlp", "init_std": 0.03}


@pytest.mark.parametrize(
    "value", ["timm:resnet50", {"name": "timm:resnet50"}, {"name": "timm", "net": "resnet50"}]
)
def test_a_net_of_timm_can_be_named_in_short(value):
    part = build(Model, value)
    assert part == Timm(net="resnet50")
    assert part.canonical() == {"name": "timm", "net": "resnet50"}
    assert build(Model, part.to_dict()) == part


def test_the_short_form_works_wherever_a_model_is_named():
    recipe = Recipe.from_yaml(PLAIN + "model: timm:resnet50.a1_in1k")
    assert recipe.model == Timm(net="resnet50.a1_in1k")
    assert recipe.id == Recipe.from_yaml(PLAIN + "model: {name: timm, net: resnet50.a1_in1k}").id
    changed = recipe.replace({"model": "timm:vit:tiny", "model.pretrained": True})
    assert changed.model == Timm(net="vit:tiny", pretrained=True)  # only the first colon parts
    other = build(Model, {"name": "timm:resnet18", "pretrained": True})
    assert other == Timm(net="resnet18", pretrained=True)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("timm", "net: is required"),
        ("timm:", "net: is empty; give the name of a network of timm, such as resnet50"),
        ({"name": "timm", "net": 18}, "net: 18 is not text"),
        ("mlp:64", "'mlp:64' is not known (did you mean 'mlp'?); allowed: "),
        ("tim:resnet18", "'tim:resnet18' is not known"),
        (":", "':' is not known"),
        ({"name": "timm:resnet18", "net": "resnet50"}, "'timm:resnet18' is not known"),
    ],
)
def test_the_short_form_is_for_timm_alone_and_says_one_thing(value, message):
    with pytest.raises(RecipeError) as caught:
        build(Model, value)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("depth", [1, 2, 7, 18, 55, 110 + 1])
def test_depths_that_no_net_has_are_refused_before_anything_is_trained(depth):
    with pytest.raises(RecipeError, match=rf"^depth: {depth} is not 6n \+ 2, such as 20, 32, 44 or 56$"):
        PreActResNet(depth=depth)
    with pytest.raises(ValueError, match="is not 6n"):
        MODELS["preact_resnet"]((3, 32, 32), 10, depth=depth)


def test_even_stems_are_refused():
    with pytest.raises(
        RecipeError, match=r"^stem: 4 is even; the kernel must be odd to have a middle, such as 3 or 7$"
    ):
        PreActResNet(stem=4)


@pytest.mark.parametrize("depth", [8, 20, 56, 110])
def test_depths_that_exist_are_taken(depth):
    assert PreActResNet(depth=depth).depth == depth
