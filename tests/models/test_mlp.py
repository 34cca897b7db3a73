from __future__ import annotations

import pytest
import torch
from torch import nn

from softtargets.models import MLP, Dropout


def dense(row, layer):
    return [
        sum(w * value for w, value in zip(weights, row, strict=True)) + bias
        for weights, bias in zip(layer.weight.tolist(), layer.bias.tolist(), strict=True)
    ]


@pytest.mark.parametrize("hidden", [(), (5,), (6, 3), (4, 5, 6)])
def test_the_net_against_loops(hidden):
    torch.manual_seed(1)
    net = MLP((2, 2, 3), 4, hidden=hidden).double()
    images = torch.randn(3, 2, 2, 3, dtype=torch.float64)
    layers = [module for module in net.body if isinstance(module, nn.Linear)]
    assert [layer.out_features for layer in layers] == list(hidden)
    for image, features, logits in zip(images, net.features(images), net(images), strict=True):
        row = [value for channel in image.tolist() for line in channel for value in line]
        for layer in layers:
            row = [max(0.0, value) for value in dense(row, layer)]
        assert features.tolist() == pytest.approx(row, rel=1e-12)
        assert logits.tolist() == pytest.approx(dense(row, net.head), rel=1e-12)


def test_the_default_is_the_teacher_of_hinton():
    net = MLP((1, 28, 28), 10)
    expected = (784 + 1) * 1200 + (1200 + 1) * 1200 + (1200 + 1) * 10
    assert sum(weight.numel() for weight in net.parameters()) == expected
    assert not any(isinstance(module, (nn.Dropout, Dropout)) for module in net.modules())


def test_dropout_follows_every_hidden_layer():
    net = MLP((1, 4, 4), 10, hidden=(8, 8, 8), dropout=0.3)
    kinds = [type(module).__name__ for module in net.body]
    assert kinds == ["Flatten"] + ["Linear", "ReLU", "Dropout"] * 3
    assert {module.p for module in net.body if isinstance(module, Dropout)} == {0.3}


@pytest.mark.parametrize("width", [1200, 800])
def test_the_nets_of_mueller_draw_weights_and_biases_from_one_normal_distribution(width):
    torch.manual_seed(0)
    net = MLP((1, 28, 28), 10, hidden=[width, width], dropout=0.5, init_std=0.03)
    shapes = [(width, 784), (width,), (width, width), (width,), (10, width), (10,)]
    assert [tuple(weight.shape) for weight in net.parameters()] == shapes
    for weight in net.parameters():
        values = weight.detach().double().flatten()
        tolerance = 5 / len(values) ** 0.5  # five standard errors of a mean, seven of a standard deviation
        assert values.std().item() / 0.03 == pytest.approx(1, abs=tolerance)
        assert abs(values.mean().item()) / 0.03 < tolerance
    assert (net.head.weight.abs() > 2.5 * 0.03).any()  # not cut


def test_without_a_standard_deviation_the_initial_weights_are_torchs():
    torch.manual_seed(0)
    net = MLP((1, 4, 4), 10, hidden=(8,))
    torch.manual_seed(0)
    layer, head = nn.Linear(16, 8), nn.Linear(8, 10)
    expected = [*layer.parameters(), *head.parameters()]
    assert all(torch.equal(a, b) for a, b in zip(net.parameters(), expected, strict=True))
