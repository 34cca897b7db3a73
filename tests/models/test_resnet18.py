from __future__ import annotations

import pytest
import torch

from softtargets.models import ResNet18

from .looking import Held, exercised, layers, size


def table(channels, sides, classes, width):
    """Convolutions in the order in which they run, and the last layer: He et al. 2016, table 1, for small images."""
    height, wide = sides
    rows = [(channels, width, 3, 1, 1, sides, False)]
    before = width
    for stage in range(4):
        after = width * 2**stage
        for block in range(2):
            stride = 2 if stage > 0 and block == 0 else 1
            height, wide = -(-height // stride), -(-wide // stride)
            rows.append((before, after, 3, stride, 1, (height, wide), False))
            rows.append((after, after, 3, 1, 1, (height, wide), False))
            if stride == 2:
                rows.append((before, after, 1, 2, 1, (height, wide), False))
            before = after
    return [*rows, (before, classes)]


def counted(rows):
    """Weights of the convolutions, two numbers of batch norm for each of their channels, and the last layer."""
    *convolutions, (before, classes) = rows
    total = sum(a * b * kernel * kernel // groups + 2 * b for a, b, kernel, _, groups, _, _ in convolutions)
    return total + (before + 1) * classes


@pytest.mark.parametrize(("shape", "width"), [((3, 32, 32), 64), ((1, 28, 28), 16), ((3, 9, 14), 5)])
def test_the_layers(shape, width):
    # Shortcuts run before the branch in one line of code and after it in another: compare without the order.
    found = layers(ResNet18(shape, 10, width=width), shape)
    expected = table(shape[0], shape[1:], 10, width)
    assert sorted(found[:-1]) == sorted(expected[:-1])
    assert (found[0], found[-1]) == (expected[0], expected[-1])


@pytest.mark.parametrize(
    ("width", "classes", "known"), [(64, 10, 11_173_962), (64, 100, 11_220_132), (19, 10, 988_257)]
)
def test_the_sizes(width, classes, known):
    rows = table(3, (32, 32), classes, width)
    assert size(ResNet18((3, 32, 32), classes, width=width)) == counted(rows) == known


def test_no_width_comes_nearer_to_a_million_than_19():
    sizes = {width: counted(table(3, (32, 32), 10, width)) for width in range(10, 30)}
    assert min(sizes, key=lambda width: abs(sizes[width] - 1_000_000)) == 19


def test_the_net_step_by_step():
    torch.manual_seed(0)
    net = ResNet18((3, 16, 16), 10, width=4).double()
    images = torch.randn(4, 3, 16, 16, dtype=torch.float64)
    net = exercised(net, images)
    held = Held(net)
    conv, norm = held.conv, held.norm
    maps = norm(conv(images, "stem.0"), "stem.1").clamp(min=0)
    for block in range(8):
        stride = 2 if block in (2, 4, 6) else 1
        name = f"body.{block}"
        inner = norm(conv(maps, f"{name}.conv1", stride), f"{name}.norm1").clamp(min=0)
        inner = norm(conv(inner, f"{name}.conv2"), f"{name}.norm2")
        if stride == 2:
            maps = norm(conv(maps, f"{name}.shortcut.0", 2), f"{name}.shortcut.1")
        maps = (maps + inner).clamp(min=0)
    torch.testing.assert_close(net.features(images), maps.sum((2, 3)) / 4, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("height", "width"), [(7, 32), (32, 7)])
def test_images_of_which_nothing_would_be_left_are_refused(height, width):
    with pytest.raises(ValueError, match=f"images of {height} x {width} are too small: three halvings need"):
        ResNet18((3, height, width), 10)


def test_the_smallest_image_is_eight_by_eight():
    assert ResNet18((3, 8, 8), 10, width=4)(torch.zeros(2, 3, 8, 8)).shape == (2, 10)
