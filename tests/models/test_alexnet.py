from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from softtargets.models import AlexNet
from softtargets.models.alexnet import LocalResponseNorm, local_response_norm

from .looking import layers, same_pooled, size

CONSTANTS = {"radius": 4, "bias": 1.0, "alpha": 0.001 / 9, "beta": 0.75}


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


@pytest.mark.parametrize("channels", [1, 3, 9, 20])
@pytest.mark.parametrize("options", [CONSTANTS, {"radius": 1, "bias": 2.0, "alpha": 0.5, "beta": 0.3}])
def test_local_response_norm_against_loops(channels, options):
    maps = 30 * torch.randn(2, channels, 3, 2, dtype=torch.float64)
    found = local_response_norm(maps, **options)
    torch.testing.assert_close(found, normalised(maps, **options), rtol=1e-13, atol=0)


def test_the_layer_has_the_tutorials_constants():
    maps = 30 * torch.randn(2, 11, 3, 2, dtype=torch.float64)
    torch.testing.assert_close(LocalResponseNorm()(maps), normalised(maps, **CONSTANTS), rtol=1e-13, atol=0)


def test_local_response_norm_is_torchs_with_alpha_times_the_window():
    maps = 30 * torch.randn(2, 64, 4, 4, dtype=torch.float64)
    expected = functional.local_response_norm(maps, size=9, alpha=0.001, beta=0.75, k=1.0)
    torch.testing.assert_close(local_response_norm(maps, **CONSTANTS), expected, rtol=1e-13, atol=0)


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
    maps = functional.conv2d(images, held["conv1.weight"], held["conv1.bias"], padding="same").clamp(min=0)
    maps = normalised(same_pooled(maps), **CONSTANTS)
    maps = functional.conv2d(maps, held["conv2.weight"], held["conv2.bias"], padding="same").clamp(min=0)
    row = same_pooled(normalised(maps.detach(), **CONSTANTS)).reshape(2, -1)
    for name in ("local3", "local4"):
        row = (row @ held[f"{name}.weight"].T + held[f"{name}.bias"]).clamp(min=0)
    torch.testing.assert_close(net.features(images), row, rtol=1e-10, atol=1e-12)


def test_the_tutorials_order_would_have_the_same_gradients():
    """It has the first activation before the pooling."""
    torch.manual_seed(0)
    net = AlexNet((3, 8, 9), 10)
    images = torch.randn(4, 3, 8, 9)
    maps = net.norm(net.pool(net.conv1(images).relu()))
    maps = net.pool(net.norm(net.conv2(maps).relu()))
    expected = net.head(net.local4(net.local3(maps.flatten(1)).relu()).relu())
    logits = net(images)
    assert torch.equal(logits, expected)
    wanted = torch.autograd.grad(expected.square().sum(), list(net.parameters()))
    found = torch.autograd.grad(logits.square().sum(), list(net.parameters()))
    assert all(torch.equal(one, other) for one, other in zip(found, wanted, strict=True))


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


def test_the_replications_start_of_the_last_layer_is_one_number():
    torch.manual_seed(0)
    usual = AlexNet((3, 24, 24), 10)
    torch.manual_seed(0)
    equal = AlexNet((3, 24, 24), 10, head="equal")
    assert equal.head.weight.unique().tolist() == pytest.approx([-1 / 96])
    assert torch.equal(usual.local4.weight, equal.local4.weight)
    logits = equal(torch.randn(4, 3, 24, 24))
    assert (logits - logits[:, :1]).abs().max().item() < 1e-6  # every class has the same
    with pytest.raises(ValueError, match="no start of the head 'same'; allowed: random, equal"):
        AlexNet((3, 24, 24), 10, head="same")


def test_weaker_response_norms():
    maps = 30 * torch.randn(2, 11, 3, 2, dtype=torch.float64)
    net = AlexNet((3, 24, 24), 10, lrn=1 / 8)
    weaker = normalised(maps, radius=4, bias=1.0, alpha=0.001 / 72, beta=0.75)
    torch.testing.assert_close(net.norm(maps), weaker, rtol=1e-13, atol=0)
    torch.testing.assert_close(AlexNet((3, 24, 24), 10, lrn=0.0).norm(maps), maps)
    # In the middle of many equal channels the replication's window, of 8 instead of 9, makes all the difference.
    flat = torch.full((1, 64, 1, 1), 30.0, dtype=torch.float64)
    theirs = functional.local_response_norm(flat, size=8, alpha=0.001 / 9, beta=0.75, k=1.0)[0, 32]
    torch.testing.assert_close((net.norm(flat) / flat)[0, 32], (theirs / 30), rtol=0.01, atol=0)


def test_the_layers_whose_weights_decay_have_the_tutorials_names():
    names = {name for name, _ in AlexNet((3, 24, 24), 10).named_parameters()}
    assert {"local3.weight", "local4.weight"} <= names


@pytest.mark.parametrize(("height", "width"), [(3, 24), (24, 3)])
def test_images_of_which_nothing_would_be_left_are_refused(height, width):
    with pytest.raises(ValueError, match=f"images of {height} x {width} are too small: two poolings need"):
        AlexNet((3, height, width), 10)
