from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from softtargets.models import AlexNet
from softtargets.models.alexnet import local_response_norm, same_max_pool

from .looking import layers, size


def normalised(maps, radius, bias, alpha, beta):
    """tf.nn.lrn as its documentation has it: sums of squares of the channels around each channel."""
    found = maps.clone()
    channels = maps.shape[1]
    for n in range(maps.shape[0]):
        for y in range(maps.shape[2]):
            for x in range(maps.shape[3]):
                pixel = maps[n, :, y, x].tolist()
                for c in range(channels):
                    around = pixel[max(0, c - radius) : c + radius + 1]
                    total = sum(value * value for value in around)
                    found[n, c, y, x] = pixel[c] / (bias + alpha * total) ** beta
    return found


def pooled(plane):
    """TensorFlow's "SAME": ceil(n / 2) windows, the padding split evenly, the odd pixel of it at the end."""
    height, width = len(plane), len(plane[0])
    rows, columns = (height + 1) // 2, (width + 1) // 2
    top = max((rows - 1) * 2 + 3 - height, 0) // 2
    left = max((columns - 1) * 2 + 3 - width, 0) // 2
    return [
        [
            max(
                plane[y][x]
                for y in range(2 * row - top, 2 * row - top + 3)
                for x in range(2 * column - left, 2 * column - left + 3)
                if 0 <= y < height and 0 <= x < width
            )
            for column in range(columns)
        ]
        for row in range(rows)
    ]


@pytest.mark.parametrize("channels", [1, 3, 9, 20])
@pytest.mark.parametrize("options", [{}, {"radius": 1, "bias": 2.0, "alpha": 0.5, "beta": 0.3}])
def test_local_response_norm_against_loops(channels, options):
    maps = 30 * torch.randn(2, channels, 3, 2, dtype=torch.float64)
    known = {"radius": 4, "bias": 1.0, "alpha": 0.001 / 9, "beta": 0.75} | options
    torch.testing.assert_close(
        local_response_norm(maps, **options), normalised(maps, **known), rtol=1e-13, atol=0
    )


def test_local_response_norm_is_torchs_with_alpha_times_the_window():
    maps = 30 * torch.randn(2, 64, 4, 4, dtype=torch.float64)
    expected = functional.local_response_norm(maps, size=9, alpha=0.001, beta=0.75, k=1.0)
    torch.testing.assert_close(local_response_norm(maps), expected, rtol=1e-13, atol=0)


@pytest.mark.parametrize("sides", [(4, 4), (5, 5), (24, 24), (6, 9), (7, 4), (1, 2), (3, 1)])
def test_pooling_against_loops(sides):
    maps = torch.randn(2, 3, *sides, dtype=torch.float64)  # negative values too: padding must not win
    expected = [[pooled(plane) for plane in image] for image in maps.tolist()]
    assert same_max_pool(maps).tolist() == expected


@pytest.mark.parametrize(
    ("sides", "flat"), [((24, 24), 2304), ((32, 32), 4096), ((28, 28), 3136), ((9, 6), 384)]
)
def test_the_layers(sides, flat):
    height, width = sides
    half = ((height + 1) // 2, (width + 1) // 2)
    assert layers(AlexNet((3, *sides), 10), (3, *sides)) == [
        (3, 64, 5, 1, 1, sides, True),
        (64, 64, 5, 1, 1, half, True),
        (flat, 384),
        (384, 192),
        (192, 10),
    ]


def test_the_size_of_the_tutorials_net():
    weights = 5 * 5 * 3 * 64 + 5 * 5 * 64 * 64 + 6 * 6 * 64 * 384 + 384 * 192 + 192 * 10
    assert size(AlexNet((3, 24, 24), 10)) == weights + 64 + 64 + 384 + 192 + 10 == 1_068_298


@pytest.mark.parametrize("sides", [(24, 24), (11, 6)])
def test_the_net_step_by_step(sides):
    torch.manual_seed(0)
    net = AlexNet((3, *sides), 10).double()
    images = torch.randn(2, 3, *sides, dtype=torch.float64)
    held = dict(net.named_parameters())
    constants = (4, 1.0, 0.001 / 9, 0.75)

    def pool(maps):
        return torch.tensor([[pooled(p) for p in image] for image in maps.tolist()], dtype=torch.float64)

    maps = functional.conv2d(images, held["conv1.weight"], held["conv1.bias"], padding="same").clamp(min=0)
    maps = normalised(pool(maps), *constants)
    maps = functional.conv2d(maps, held["conv2.weight"], held["conv2.bias"], padding="same").clamp(min=0)
    row = pool(normalised(maps.detach(), *constants)).reshape(2, -1)
    for name in ("local3", "local4"):
        row = (row @ held[f"{name}.weight"].T + held[f"{name}.bias"]).clamp(min=0)
    torch.testing.assert_close(net.features(images), row, rtol=1e-10, atol=1e-12)


def test_the_initial_weights():
    torch.manual_seed(0)
    net = AlexNet((3, 24, 24), 10)
    # name: standard deviation before the cut, bias
    table = {
        "conv1": (0.05, 0.0),
        "conv2": (0.05, 0.1),
        "local3": (0.04, 0.1),
        "local4": (0.04, 0.1),
        "head": (1 / 192, 0.0),
    }
    for name, (std, bias) in table.items():
        layer = net.get_submodule(name)
        weights = layer.weight.detach().double().flatten()
        assert weights.abs().max() <= 2 * std * (1 + 1e-6)
        assert weights.abs().max() > 1.9 * std
        assert layer.bias.unique().tolist() == pytest.approx([bias])
        tolerance = 5 / len(weights) ** 0.5  # five standard errors and a little
        assert weights.std().item() / std == pytest.approx(0.8796, rel=tolerance)
        assert abs(weights.mean().item()) / std < tolerance


def test_the_layers_whose_weights_decay_have_the_tutorials_names():
    names = {name for name, _ in AlexNet((3, 24, 24), 10).named_parameters()}
    assert {"local3.weight", "local4.weight"} <= names


@pytest.mark.parametrize(("height", "width"), [(3, 24), (24, 3)])
def test_images_of_which_nothing_would_be_left_are_refused(height, width):
    with pytest.raises(ValueError, match=f"images of {height} x {width} are too small: two poolings need"):
        AlexNet((3, height, width), 10)
