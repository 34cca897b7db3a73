from __future__ import annotations

import pytest
import torch
from torch import nn

from softtargets.models import ResNeXt29

from .looking import Held, exercised, layers, size


def table(channels, sides, classes, cardinality, width):
    """Xie et al. 2017, appendix A: 29 layers are a stem, three stages of three blocks of three, and the last."""
    height, wide = sides
    rows = [(channels, 64, 3, 1, 1, sides, False)]
    before = 64
    for after, factor, first in ((256, 1, 1), (512, 2, 2), (1024, 4, 2)):
        inner = cardinality * width * factor
        for stride in (first, 1, 1):
            rows.append((before, inner, 1, 1, 1, (height, wide), False))
            height, wide = -(-height // stride), -(-wide // stride)
            rows.append((inner, inner, 3, stride, cardinality, (height, wide), False))
            rows.append((inner, after, 1, 1, 1, (height, wide), False))
            if before != after:
                rows.append((before, after, 1, stride, 1, (height, wide), False))
            before = after
    return [*rows, (1024, classes)]


@pytest.mark.parametrize(
    ("shape", "cardinality", "width"), [((3, 32, 32), 8, 64), ((3, 32, 32), 32, 4), ((1, 9, 14), 3, 2)]
)
def test_the_layers(shape, cardinality, width):
    found = layers(ResNeXt29(shape, 10, cardinality=cardinality, base_width=width), shape)
    expected = table(shape[0], shape[1:], 10, cardinality, width)
    assert sorted(found[:-1]) == sorted(expected[:-1])
    assert (found[0], found[-1]) == (expected[0], expected[-1])
    assert len(found) == 29 + 3  # projections do not count as layers


# The paper counts 34.4 million for 8 x 64d.
@pytest.mark.parametrize(
    ("cardinality", "width", "classes", "known"),
    [(8, 64, 10, 34_426_698), (8, 64, 100, 34_518_948), (32, 4, 10, 4_775_754)],
)
def test_the_sizes(cardinality, width, classes, known):
    *convolutions, _ = table(3, (32, 32), classes, cardinality, width)
    total = sum(a // groups * b * kernel**2 + 2 * b for a, b, kernel, _, groups, _, _ in convolutions)
    net = ResNeXt29((3, 32, 32), classes, cardinality=cardinality, base_width=width)
    assert size(net) == total + 1025 * classes == known


def test_the_net_step_by_step():
    torch.manual_seed(0)
    net = ResNeXt29((3, 8, 8), 10, cardinality=2, base_width=3).double()
    images = torch.randn(4, 3, 8, 8, dtype=torch.float64)
    net = exercised(net, images)
    held = Held(net)

    def conv(maps, name, norm, stride=1, groups=1):
        return held.norm(held.conv(maps, name, stride, groups), norm)

    maps = conv(images, "stem.0", "stem.1").clamp(min=0)
    for block in range(9):
        stride = 2 if block in (3, 6) else 1
        name = f"body.{block}"
        inner = conv(maps, f"{name}.residual.0", f"{name}.residual.1").clamp(min=0)
        inner = conv(inner, f"{name}.residual.3", f"{name}.residual.4", stride, groups=2).clamp(min=0)
        inner = conv(inner, f"{name}.residual.6", f"{name}.residual.7")
        if block in (0, 3, 6):
            maps = conv(maps, f"{name}.shortcut.0", f"{name}.shortcut.1", stride)
        maps = (maps + inner).clamp(min=0)
    torch.testing.assert_close(net.features(images), maps.sum((2, 3)) / 4, rtol=1e-10, atol=1e-12)


def test_the_initial_weights():
    torch.manual_seed(0)
    net = ResNeXt29((3, 32, 32), 100, cardinality=4, base_width=8)
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            fan_out = module.out_channels * module.kernel_size[0] ** 2
            tolerance = 5 / module.weight.numel() ** 0.5
            assert module.weight.std().item() == pytest.approx((2 / fan_out) ** 0.5, rel=tolerance)
        elif isinstance(module, nn.BatchNorm2d):
            assert module.weight.unique().tolist() == [1]
            assert module.bias.unique().tolist() == [0]
    assert net.head.weight.std().item() == pytest.approx((2 / 1024) ** 0.5, rel=0.02)
    assert net.head.bias.unique().tolist() == [0]


@pytest.mark.parametrize(("height", "width"), [(3, 32), (32, 3)])
def test_images_of_which_nothing_would_be_left_are_refused(height, width):
    with pytest.raises(ValueError, match=f"images of {height} x {width} are too small: two halvings need"):
        ResNeXt29((3, height, width), 10)
