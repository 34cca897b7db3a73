from __future__ import annotations

import pytest
import torch
from torch import nn

from softtargets.models import MODELS, Classifier


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


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(("shape", "classes"), [((1, 8, 8), 10), ((3, 12, 9), 7)])
def test_every_net_is_features_then_head(name, shape, classes):
    torch.manual_seed(0)
    net = MODELS[name](shape, classes).double().eval()
    images = torch.rand(4, *shape, dtype=torch.float64)
    features, logits = net.features(images), net(images)
    assert net.templates.shape == (classes, features.shape[1])
    for row, scores in zip(features.tolist(), logits.tolist(), strict=True):
        for k in range(classes):
            template, bias = net.templates[k].tolist(), net.head.bias[k].item()
            assert scores[k] == pytest.approx(sum(a * b for a, b in zip(row, template, strict=True)) + bias)


@pytest.mark.parametrize("name", MODELS)
def test_features_are_never_negative_and_gradients_reach_every_weight(name):
    torch.manual_seed(0)
    net = MODELS[name]((1, 8, 8), 10)
    images = torch.rand(16, 1, 8, 8)
    assert net.features(images).min() >= 0
    net(images).square().sum().backward()
    assert all(weight.grad.abs().sum() > 0 for weight in net.parameters())


@pytest.mark.parametrize("name", MODELS)
def test_dropout_acts_in_training_only(name):
    torch.manual_seed(0)
    net = MODELS[name]((1, 8, 8), 10, dropout=0.5)
    images = torch.rand(8, 1, 8, 8)
    assert not torch.equal(net(images), net(images))
    net.eval()
    assert torch.equal(net(images), net(images))


@pytest.mark.parametrize("name", MODELS)
def test_without_dropout_training_and_evaluation_agree(name):
    net = MODELS[name]((1, 8, 8), 10)
    images = torch.rand(8, 1, 8, 8)
    assert torch.equal(net.train()(images), net.eval()(images))


@pytest.mark.parametrize("name", MODELS)
def test_dropout_adds_no_weights(name):
    plain, dropping = (MODELS[name]((1, 8, 8), 10, dropout=dropout) for dropout in (0.0, 0.5))
    assert [w.shape for w in plain.parameters()] == [w.shape for w in dropping.parameters()]
