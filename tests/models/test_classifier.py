from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch import nn

from softtargets.models import MODELS, Classifier, Dropout
from softtargets.models.classifier import check_size
from softtargets.randomness import key_words

from .looking import check_compiles, check_stack, exercised


class Doubling(Classifier):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(2, 3)

    def features(self, images):
        return 2 * images


def test_a_logit_is_the_inner_product_with_a_template_plus_a_bias():
    net = Doubling().double()
    image = torch.tensor([[0.5, -1.5]], dtype=torch.float64)
    bias = net.head.bias.tolist()
    expected = [a * 1.0 + b * -3.0 + bias[k] for k, (a, b) in enumerate(net.head.weight.tolist())]
    assert net(image).squeeze(0).tolist() == pytest.approx(expected, rel=1e-14)


def test_templates_are_the_rows_of_the_last_layer_without_gradient():
    net = Doubling()
    assert torch.equal(net.templates, net.head.weight)
    assert not net.templates.requires_grad
    with torch.no_grad():
        net.head.weight.fill_(7)
    assert net.templates.unique().tolist() == [7]


def test_a_net_without_features_says_so():
    with pytest.raises(NotImplementedError, match="features"):
        Classifier().features(torch.zeros(1, 2))


# As small as they go; timm's nets have their own test, with a timm of ours, and so has the Transformer, with text,
# and so have nets for photographs, which these images are too small for.
SMALL = {
    "mlp": {"hidden": (24, 16)},
    "cnn": {"channels": (4, 6), "hidden": 16},
    "alexnet": {},
    "preact_resnet": {"depth": 8, "stages": (4, 6, 8), "stem_channels": 4},
    "resnet18": {"width": 4},
    "mobilenet_v2": {},
    "resnext29": {"cardinality": 2, "base_width": 4},
}
DROPPING = ("mlp", "cnn")
LINKED = ["preact_resnet", "resnet18", "mobilenet_v2", "resnext29"]
PLACE = torch.cat((key_words(0, "dropout"), torch.tensor([3])))


def make(name, shape=(1, 8, 8), classes=10, **options):
    return MODELS[name](shape, classes, **SMALL[name] | options)


def test_every_net_is_looked_at():
    assert set(SMALL) == set(MODELS) - {"timm", "transformer", "resnet", "inception_v4", "own"}


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize(("shape", "classes"), [((1, 8, 8), 10), ((3, 12, 9), 7)])
def test_every_net_is_features_then_head(name, shape, classes):
    torch.manual_seed(0)
    net = make(name, shape, classes).double().eval()
    images = torch.rand(4, *shape, dtype=torch.float64)
    features, logits = net.features(images), net(images)
    assert net.templates.shape == (classes, features.shape[1])
    for row, scores in zip(features.tolist(), logits.tolist(), strict=True):
        for k in range(classes):
            template, bias = net.templates[k].tolist(), net.head.bias[k].item()
            assert scores[k] == pytest.approx(sum(a * b for a, b in zip(row, template, strict=True)) + bias)


@pytest.mark.parametrize("name", SMALL)
def test_features_are_never_negative_and_gradients_reach_every_weight(name):
    torch.manual_seed(0)
    net = make(name)
    images = torch.rand(16, 1, 8, 8)
    assert net.features(images).min() >= 0
    net(images).square().sum().backward()
    assert all(weight.grad.abs().sum() > 0 for weight in net.parameters())


def test_the_deep_nets_have_links_and_the_others_have_none():
    assert [name for name in SMALL if make(name).links] == LINKED


@pytest.mark.parametrize("name", LINKED)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(("shape", "classes"), [((1, 8, 8), 10), ((3, 12, 9), 7)])
def test_the_links_one_after_another_are_the_net(name, training, shape, classes):
    torch.manual_seed(0)
    net = exercised(make(name, shape, classes), torch.rand(4, *shape)).train(training)
    other = deepcopy(net)
    values = images = torch.rand(4, *shape)
    for link in other.links:
        values = link(values)
    assert torch.equal(values, net(images))
    for (key, one), (_, linked) in zip(net.named_buffers(), other.named_buffers(), strict=True):
        assert torch.equal(one, linked), key


@pytest.mark.parametrize("name", LINKED)
def test_every_weight_and_buffer_belongs_to_one_link(name):
    net = make(name)
    held = [id(value) for link in net.links for value in (*link.parameters(), *link.buffers())]
    assert len(set(held)) == len(held)
    assert set(held) == {id(value) for value in (*net.parameters(), *net.buffers())}
    assert net.links[-1] is net.head


@pytest.mark.parametrize("variant", ["he", "tensor2tensor"])
def test_both_variants_of_the_resnet_have_links(variant):
    torch.manual_seed(0)
    net = make("preact_resnet", variant=variant).eval()
    values = images = torch.rand(4, 1, 8, 8)
    for link in net.links:
        values = link(values)
    assert torch.equal(values, net(images))


@pytest.mark.parametrize("name", DROPPING)
def test_dropout_acts_in_training_only(name):
    torch.manual_seed(0)
    net = make(name, dropout=0.5)
    images = torch.rand(8, 1, 8, 8)
    assert not torch.equal(net(images), net(images))
    net.eval()
    assert torch.equal(net(images), net(images))


@pytest.mark.parametrize("name", ["mlp", "cnn", "alexnet"])
def test_without_dropout_or_batch_norm_training_and_evaluation_agree(name):
    net = make(name)
    images = torch.rand(8, 1, 8, 8)
    assert torch.equal(net.train()(images), net.eval()(images))


@pytest.mark.parametrize("name", DROPPING)
def test_dropout_adds_no_weights_and_no_other_names(name):
    plain, dropping = (make(name, dropout=dropout) for dropout in (0.0, 0.5))
    assert [w.shape for w in plain.parameters()] == [w.shape for w in dropping.parameters()]
    dropping.draw_from(PLACE)
    assert set(dropping.state_dict()) == {key for key, _ in dropping.named_parameters()}


@pytest.mark.parametrize("name", DROPPING)
def test_a_net_that_draws_from_a_place_draws_the_same_there_and_other_things_elsewhere(name):
    net, images = make(name, dropout=0.5), torch.rand(8, 1, 8, 8)
    place = PLACE.clone()
    net.draw_from(place)
    first = net(images)
    assert torch.equal(net(images), first)
    place[2] += 1  # the net keeps the tensor itself
    second = net(images)
    assert not torch.equal(second, first)
    net.draw_from(None)
    torch.manual_seed(1)
    third = net(images)
    torch.manual_seed(1)
    assert torch.equal(net(images), third)
    assert not torch.equal(third, second)


def test_dropouts_are_numbered_in_order_when_the_net_is_made():
    net = MODELS["mlp"]((1, 8, 8), 10, hidden=(9, 9, 9), dropout=0.5)
    dropouts = [module for module in net.modules() if isinstance(module, Dropout)]
    assert [dropout.layer for dropout in dropouts] == [0, 1, 2]
    net.draw_from(PLACE)
    masks = [dropout(torch.ones(64)) for dropout in dropouts]
    assert not any(torch.equal(masks[a], masks[b]) for a, b in [(0, 1), (0, 2), (1, 2)])


def test_dropouts_of_a_net_that_forgot_to_number_them_are_numbered_when_they_get_a_place():
    net = Doubling()
    net.body = nn.Sequential(Dropout(0.5), Dropout(0.5))
    net.draw_from(PLACE)
    assert [(dropout.layer, dropout.place is PLACE) for dropout in net.body] == [(0, True), (1, True)]


@pytest.mark.parametrize("name", SMALL)
def test_in_a_stack_each_net_does_what_it_does_alone(name):
    torch.manual_seed(0)
    check_stack([make(name) for _ in range(3)], (1, 8, 8))


@pytest.mark.parametrize("name", DROPPING)
def test_in_a_stack_each_net_drops_what_it_drops_alone(name):
    torch.manual_seed(0)
    nets = [make(name, dropout=0.5) for _ in range(3)]
    for seed, net in enumerate(nets):
        net.draw_from(torch.cat((key_words(seed, "dropout"), torch.tensor([seed]))))
    check_stack(nets, (1, 8, 8))


@pytest.mark.parametrize("name", SMALL)
def test_every_net_compiles_whole(name):
    options = {"dropout": 0.5} if name in DROPPING else {}
    net = make(name, **options)
    net.draw_from(PLACE)
    check_compiles(net, (1, 8, 8))


@pytest.mark.parametrize(("height", "width"), [(7, 8), (8, 7), (1, 100)])
def test_the_message_has_both_sides_the_reason_and_the_limit(height, width):
    with pytest.raises(
        ValueError, match=f"^images of {height} x {width} are too small: pools need at least 8 x 8$"
    ):
        check_size((3, height, width), 8, "pools")


def test_the_limit_itself_is_allowed_and_channels_do_not_count():
    check_size((1, 8, 8), 8, "pools")
