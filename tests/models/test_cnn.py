from __future__ import annotations

import pytest
import torch
from torch import nn

from softtargets.models import CNN


def convolve(planes, layer):
    """3 x 3, zeros around, then ReLU."""
    height, width = len(planes[0]), len(planes[0][0])
    out = []
    for kernels, bias in zip(layer.weight.tolist(), layer.bias.tolist(), strict=True):
        plane = []
        for y in range(height):
            line = []
            for x in range(width):
                total = bias
                for source, kernel in zip(planes, kernels, strict=True):
                    for dy in range(3):
                        for dx in range(3):
                            if 0 <= y + dy - 1 < height and 0 <= x + dx - 1 < width:
                                total += kernel[dy][dx] * source[y + dy - 1][x + dx - 1]
                line.append(max(0.0, total))
            plane.append(line)
        out.append(plane)
    return out


def pool(planes):
    return [
        [
            [
                max(plane[2 * y + dy][2 * x + dx] for dy in (0, 1) for dx in (0, 1))
                for x in range(len(plane[0]) // 2)
            ]
            for y in range(len(plane) // 2)
        ]
        for plane in planes
    ]


@pytest.mark.parametrize("shape", [(1, 4, 4), (2, 9, 6), (3, 7, 11)])
def test_the_net_against_loops(shape):
    torch.manual_seed(2)
    net = CNN(shape, 3, channels=(2, 3), hidden=4).double()
    image = torch.randn(1, *shape, dtype=torch.float64)
    first, second = (module for module in net.body if isinstance(module, nn.Conv2d))
    (hidden,) = (module for module in net.body if isinstance(module, nn.Linear))
    planes = pool(convolve(pool(convolve(image[0].tolist(), first)), second))
    flat = [value for plane in planes for line in plane for value in line]
    features = [
        max(0.0, sum(w * value for w, value in zip(weights, flat, strict=True)) + bias)
        for weights, bias in zip(hidden.weight.tolist(), hidden.bias.tolist(), strict=True)
    ]
    assert net.features(image)[0].tolist() == pytest.approx(features, rel=1e-12)


def test_activations_before_the_pooling_would_have_the_same_gradients():
    torch.manual_seed(0)
    net = CNN((2, 9, 6), 3, channels=(4, 5), hidden=6)
    images = torch.randn(8, 2, 9, 6)
    conv, pool, relu, *_ = body = list(net.body)
    other = nn.Sequential(conv, relu, pool, body[3], relu, pool, *body[6:], net.head)
    logits, expected = net(images), other(images)
    assert torch.equal(logits, expected)
    wanted = torch.autograd.grad(expected.square().sum(), list(net.parameters()))
    for one, gradient in zip(
        torch.autograd.grad(logits.square().sum(), list(net.parameters())), wanted, strict=True
    ):
        assert torch.equal(one, gradient)


def test_the_default_size():
    net = CNN((1, 28, 28), 10)
    expected = (9 + 1) * 32 + (9 * 32 + 1) * 64 + (64 * 7 * 7 + 1) * 128 + (128 + 1) * 10
    assert sum(weight.numel() for weight in net.parameters()) == expected


@pytest.mark.parametrize(("height", "width"), [(3, 8), (8, 3), (1, 1)])
def test_images_that_two_poolings_would_erase_are_refused(height, width):
    message = f"images of {height} x {width} are too small: two poolings need at least 4 x 4"
    with pytest.raises(ValueError, match=message):
        CNN((1, height, width), 10)


def test_the_smallest_image_is_four_by_four():
    assert CNN((1, 4, 4), 10)(torch.zeros(1, 1, 4, 4)).shape == (1, 10)


def test_two_convolutions_and_two_linear_layers():
    kinds = [type(module).__name__ for module in CNN((1, 28, 28), 10).modules()]
    assert (kinds.count("Conv2d"), kinds.count("Linear")) == (2, 2)
