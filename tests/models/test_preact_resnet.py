from __future__ import annotations

import pytest
import torch
from scipy.stats import truncnorm
from torch import nn

from softtargets.models import PreActResNet, preact_resnet

from .looking import Held, check_compiles, check_stack, exercised, layers, size

# The nets of the papers: He et al. 2016 and Müller et al. 2019, appendix A.2.
HE = {"stages": (16, 32, 64), "variant": "he"}
T2T = {"stages": (32, 64, 128), "variant": "tensor2tensor"}


def table(channels, sides, classes, blocks, stages, variant, stem=3, stem_channels=16):
    """Convolutions, without their order, and the last layer."""
    height, width = sides
    rows = [(channels, stem_channels, stem, 1, 1, sides, False)]
    before = stem_channels
    for number, after in enumerate(stages, start=1):
        for block in range(1, blocks + 1):
            stride = 2 if block == 1 and number > 1 else 1
            height, width = -(-height // stride), -(-width // stride)
            rows.append((before, after, 3, stride, 1, (height, width), False))
            rows.append((after, after, 3, 1, 1, (height, width), False))
            projects = block == 1 if variant == "tensor2tensor" else before != after or stride == 2
            if projects:
                rows.append((before, after, 1, stride, 1, (height, width), False))
            before = after
    return sorted(rows), (before, classes)


def counted(rows, last, variant, stages, blocks, stem_channels=16):
    """Weights of convolutions and last layer; two numbers per normalised channel, which differ in the variants."""
    total = sum(a * b * kernel**2 for a, b, kernel, *_ in rows) + (last[0] + 1) * last[1]
    normalised, before = 0, stem_channels
    for after in stages:
        for _ in range(blocks):
            normalised += before + after
            before = after
    if variant == "he":
        normalised += before  # before the pooling
    else:
        normalised += stem_channels + sum(stages)  # after the stem and on each projection
    return total + 2 * normalised


@pytest.mark.parametrize("net", [HE, T2T], ids=["he", "tensor2tensor"])
@pytest.mark.parametrize(
    ("shape", "depth", "stem"), [((3, 32, 32), 56, 3), ((3, 32, 32), 20, 7), ((1, 9, 14), 8, 5)]
)
def test_the_layers(net, shape, depth, stem):
    found = layers(PreActResNet(shape, 100, depth=depth, stem=stem, **net), shape)
    rows, last = table(shape[0], shape[1:], 100, (depth - 2) // 6, stem=stem, **net)
    assert sorted(found[:-1]) == rows
    assert found[-1] == last
    # 6n + 2 layers: projections do not count.
    assert sum(kernel > 1 for _, _, kernel, *_ in found[:-1]) + 1 == depth


@pytest.mark.parametrize(
    ("net", "classes", "known"),
    [(HE, 10, 855_578), (HE, 100, 861_428), (T2T, 10, 3_407_674), (T2T, 100, 3_419_284)],
)
def test_the_sizes_of_resnet_56(net, classes, known):
    rows, last = table(3, (32, 32), classes, 9, **net)
    assert size(PreActResNet((3, 32, 32), classes, **net)) == counted(rows, last, blocks=9, **net) == known


def test_the_default_is_resnet_56_of_he():
    assert size(PreActResNet((3, 32, 32), 10)) == 855_578


@pytest.mark.parametrize("stem_channels", [4, 6])
def test_he_step_by_step(stem_channels):
    torch.manual_seed(0)
    images = torch.randn(4, 3, 8, 8, dtype=torch.float64)
    net = PreActResNet((3, 8, 8), 10, depth=14, stages=(4, 8, 8), stem_channels=stem_channels, variant="he")
    net = exercised(net.double(), images)
    held = Held(net)
    maps = held.conv(images, "stem.0")
    for block in range(6):
        name = f"body.{block}"
        stride = 2 if block in (2, 4) else 1
        active = held.norm(maps, f"{name}.norm1").clamp(min=0)
        inner = held.norm(held.conv(active, f"{name}.conv1", stride), f"{name}.norm2").clamp(min=0)
        inner = held.conv(inner, f"{name}.conv2")
        if block in (2, 4) or (block == 0 and stem_channels != 4):
            maps = held.conv(active, f"{name}.shortcut", stride) + inner
        elif block == 0:
            maps = active + inner  # both paths begin after the first activation
        else:
            maps = maps + inner
    maps = held.norm(maps, "last.0").clamp(min=0)
    torch.testing.assert_close(net.features(images), maps.sum((2, 3)) / 4, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("stem_channels", [4, 6])
def test_tensor2tensor_step_by_step(stem_channels):
    torch.manual_seed(0)
    images = torch.randn(4, 3, 8, 8, dtype=torch.float64)
    options = {"stages": (4, 8, 8), "stem_channels": stem_channels, "variant": "tensor2tensor"}
    net = exercised(PreActResNet((3, 8, 8), 10, depth=14, **options).double(), images)
    held = Held(net)
    maps = held.norm(held.conv(images, "stem.0"), "stem.1").clamp(min=0)
    for block in range(6):
        name = f"body.{block}"
        stride = 2 if block in (2, 4) else 1
        active = held.norm(maps, f"{name}.norm1").clamp(min=0)
        inner = held.norm(held.conv(active, f"{name}.conv1", stride), f"{name}.norm2").clamp(min=0)
        inner = held.conv(inner, f"{name}.conv2")
        if block in (0, 2, 4):
            maps = held.norm(held.conv(active, f"{name}.shortcut.0", stride), f"{name}.shortcut.1")
        maps = maps + inner
    assert net.features(images).min() < 0  # nothing cuts them off
    torch.testing.assert_close(net.features(images), maps.sum((2, 3)) / 4, rtol=1e-10, atol=1e-12)


def test_the_initial_weights_of_he():
    torch.manual_seed(0)
    net = PreActResNet((3, 32, 32), 10, depth=20, **HE)
    for module in net.modules():
        if isinstance(module, nn.Conv2d):
            fan_out = module.out_channels * module.kernel_size[0] ** 2
            tolerance = 5 / module.weight.numel() ** 0.5
            assert module.weight.std().item() == pytest.approx((2 / fan_out) ** 0.5, rel=tolerance)
    assert net.head.weight.abs().max() <= 1 / 8  # torch's own: uniform to 1 / sqrt(64)
    assert net.head.bias.unique().tolist() == [0]


def test_the_initial_weights_of_tensor2tensor():
    torch.manual_seed(0)
    net = PreActResNet((3, 32, 32), 100, depth=20, **T2T)
    variances = [
        (module.weight, 1 / (module.in_channels * module.kernel_size[0] ** 2))
        for module in net.modules()
        if isinstance(module, nn.Conv2d)
    ]
    for weight, variance in [*variances, (net.head.weight, 2 / 114)]:  # 114 is the mean of 128 and 100
        tolerance = 5 / weight.numel() ** 0.5
        assert weight.std().item() == pytest.approx(variance**0.5, rel=tolerance)
        assert weight.abs().max().item() <= 2 * variance**0.5 / 0.8796 * 1.0001
    assert net.head.bias.unique().tolist() == [0]


def test_the_replications_start_of_tensor2tensors_net():
    torch.manual_seed(0)
    net = PreActResNet(
        (3, 32, 32), 100, depth=8, stages=(32, 64, 128), variant="tensor2tensor", init="fan_out"
    )
    convolutions = [module for module in net.modules() if isinstance(module, nn.Conv2d)]
    assert len(convolutions) == 10  # stem, two in each of three blocks, and their shortcuts
    for module in convolutions:
        fan_out = module.out_channels * module.kernel_size[0] ** 2
        tolerance = 5 / module.weight.numel() ** 0.5
        assert module.weight.std().item() == pytest.approx((2 / fan_out) ** 0.5, rel=tolerance)
    assert net.head.weight.std().item() == pytest.approx((2 / 114) ** 0.5, rel=0.05)  # as without it
    with pytest.raises(ValueError, match="no init 'zero'; allowed: variant, fan_out"):
        PreActResNet((3, 32, 32), 10, init="zero")


def test_the_deviation_of_a_normal_variable_that_is_cut():
    known = preact_resnet._CUT_STD
    assert known == pytest.approx(truncnorm.std(-2, 2), rel=1e-12)


@pytest.mark.parametrize("variant", ["he", "tensor2tensor"])
def test_both_variants_stack_and_compile_and_let_gradients_through(variant):
    torch.manual_seed(0)
    small = {"depth": 8, "stages": (4, 6, 8), "stem_channels": 4, "stem": 7, "variant": variant}
    nets = [PreActResNet((3, 8, 8), 10, **small) for _ in range(3)]
    check_stack(nets, (3, 8, 8))
    assert all(weight.grad.abs().sum() > 0 for net in nets for weight in net.parameters())
    check_compiles(PreActResNet((3, 8, 8), 10, **small), (3, 8, 8))


@pytest.mark.parametrize(
    ("depth", "message"),
    [
        (18, "depth 18 is not 6n [+] 2; the nearest are 14 and 20"),
        (55, "depth 55 is not 6n [+] 2; the nearest are 50 and 56"),
        (2, "depth 2 is not 6n [+] 2; the nearest are 8 and 14"),
        (1, "depth 1 is not 6n [+] 2"),
    ],
)
def test_other_depths_are_refused(depth, message):
    with pytest.raises(ValueError, match=message):
        PreActResNet((3, 32, 32), 10, depth=depth)


def test_other_mistakes_are_refused():
    with pytest.raises(
        ValueError, match="a stem of 4 x 4 has no middle; the size of its kernel must be odd, such as 3 or 7"
    ):
        PreActResNet((3, 32, 32), 10, depth=8, stem=4)
    with pytest.raises(ValueError, match="no variant 'v1'; allowed: he, tensor2tensor"):
        PreActResNet((3, 32, 32), 10, depth=8, variant="v1")
    with pytest.raises(ValueError, match="images of 3 x 32 are too small: two halvings need at least 4 x 4"):
        PreActResNet((3, 3, 32), 10, depth=8)
