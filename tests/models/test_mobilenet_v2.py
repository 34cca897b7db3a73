from __future__ import annotations

import pytest
import torch
from torch.nn import functional

from softtargets.models import MobileNetV2

from .looking import Held, exercised, layers, size

# Sandler et al. 2018, table 2, with the strides of the CIFAR form: input channels, expansion, channels, stride.
BLOCKS = [
    (32, 1, 16, 1),
    (16, 6, 24, 2),
    (24, 6, 24, 1),
    (24, 6, 32, 2),
    *[(32, 6, 32, 1)] * 2,
    (32, 6, 64, 2),
    *[(64, 6, 64, 1)] * 3,
    (64, 6, 96, 1),
    *[(96, 6, 96, 1)] * 2,
    (96, 6, 160, 1),
    *[(160, 6, 160, 1)] * 2,
    (160, 6, 320, 1),
]


def table(channels, sides, classes, kernel):
    # A border of one pixel around 1 x 1 makes the maps larger by two.
    height, width = (side + 2 - (kernel - 1) for side in sides)
    rows = [(channels, 32, kernel, 1, 1, (height, width), False)]
    for before, expansion, after, stride in BLOCKS:
        inner = before * expansion
        rows.append((before, inner, 1, 1, 1, (height, width), False))
        height, width = -(-height // stride), -(-width // stride)
        rows.append((inner, inner, 3, stride, inner, (height, width), False))
        rows.append((inner, after, 1, 1, 1, (height, width), False))
    rows.append((320, 1280, 1, 1, 1, (height, width), False))
    return [*rows, (1280, classes)]


@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 9, 14)])
@pytest.mark.parametrize(("stem", "kernel"), [("1x1", 1), ("3x3", 3)])
def test_the_layers(shape, stem, kernel):
    assert layers(MobileNetV2(shape, 10, stem=stem), shape) == table(shape[0], shape[1:], 10, kernel)


@pytest.mark.parametrize(("classes", "known"), [(10, 2_237_002), (100, 2_352_292)])
def test_the_sizes(classes, known):
    *convolutions, _ = table(3, (32, 32), classes, 1)
    total = sum(a // groups * b * kernel**2 + 2 * b for a, b, kernel, _, groups, _, _ in convolutions)
    assert size(MobileNetV2((3, 32, 32), classes)) == total + 1281 * classes == known


def test_the_net_step_by_step():
    torch.manual_seed(0)
    net = MobileNetV2((3, 16, 16), 10).double()
    images = torch.randn(4, 3, 16, 16, dtype=torch.float64)
    net = exercised(net, images)
    held = Held(net)

    def conv(maps, name, norm, stride=1, groups=1):
        return held.norm(held.conv(maps, name, stride, groups), norm)

    maps = conv(functional.pad(images, (1, 1, 1, 1)), "stem.0", "stem.1").clamp(0, 6)
    for block, (before, expansion, after, stride) in enumerate(BLOCKS):
        name = f"body.{block}.residual"
        inner = conv(maps, f"{name}.0", f"{name}.1").clamp(0, 6)
        inner = conv(inner, f"{name}.3", f"{name}.4", stride, groups=before * expansion).clamp(0, 6)
        inner = conv(inner, f"{name}.6", f"{name}.7")
        maps = maps + inner if stride == 1 and before == after else inner
    maps = conv(maps, "last.0", "last.1").clamp(0, 6)
    torch.testing.assert_close(net.features(images), maps.sum((2, 3)) / 9, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("height", "width"), [(7, 32), (32, 7)])
def test_images_of_which_nothing_would_be_left_are_refused(height, width):
    with pytest.raises(ValueError, match=f"images of {height} x {width} are too small: three halvings need"):
        MobileNetV2((3, height, width), 10)


def test_an_unknown_stem_is_refused():
    with pytest.raises(ValueError, match="no stem '5x5'; allowed: 1x1, 3x3"):
        MobileNetV2((3, 32, 32), 10, stem="5x5")
