from __future__ import annotations

import pytest
import torch
from torch import nn

from softtargets.models import MLP


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
    assert not any(isinstance(module, nn.Dropout) for module in net.modules())


def test_dropout_follows_every_hidden_layer():
    net = MLP((1, 4, 4), 10, hidden=(8, 8, 8), dropout=0.3)
    kinds = [type(module).__name__ for module in net.body]
    assert kinds == ["Flatten"] + ["Linear", "ReLU", "Dropout"] * 3
    assert {module.p for module in net.body if isinstance(module, nn.Dropout)} == {0.3}
