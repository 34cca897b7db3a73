"""Blocks computed by kernels against the layers that they stand for."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch import nn

pytest.importorskip("triton")

from softtargets.models import PreActResNet
from softtargets.models.kernels import blocks, norms, use_kernels
from softtargets.models.kernels.blocks import FusedPreActBlock
from softtargets.models.preact_resnet import PreActBlock

from .running import check_block_on_a_gpu


def block(before, after, stride, shortcut):
    sides = nn.Sequential(nn.Conv2d(before, after, 1, stride, bias=False), nn.BatchNorm2d(after))
    made = PreActBlock(before, after, stride, sides if shortcut else None)
    for module in made.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.weight, 1, 0.3)
            nn.init.normal_(module.bias, 0, 0.3)
            nn.init.normal_(module.running_mean, 0, 0.3)
            nn.init.uniform_(module.running_var, 0.5, 2)
    return made


def fused(layers, hands_on=True):
    copied = deepcopy(layers)
    use_kernels(copied, stacked=False)
    assert type(copied) is FusedPreActBlock
    copied.hands_on = hands_on
    return copied


@pytest.fixture
def in_full(monkeypatch):
    """Single precision is asked for, so that nothing but the order of sums differs."""
    monkeypatch.setattr(blocks, "asked_for", lambda maps: torch.float32)


# Channels before and after, stride, side and number of images: squares of places, odd maps, several tiles, a rest.
BLOCKS = [
    (16, 16, 1, 8, 3, False),
    (16, 16, 1, 7, 2, False),
    (48, 48, 1, 5, 3, False),
    (16, 32, 1, 8, 3, True),
    (16, 32, 2, 8, 9, True),
    (32, 48, 2, 7, 2, True),
]


@pytest.mark.parametrize(("before", "after", "stride", "side", "images", "shortcut"), BLOCKS)
def test_results_gradients_and_moving_averages_are_those_of_the_layers(
    before, after, stride, side, images, shortcut, in_full
):
    torch.manual_seed(0)
    layers = block(before, after, stride, shortcut)
    kernels = fused(layers)
    # Far from zero: the variance is a small difference of large squares.
    maps = torch.randn(images, before, side, side) + 10 * torch.randn(before, 1, 1)
    given = [maps.clone().requires_grad_() for _ in range(2)]
    expected, (found, _) = layers(given[0]), kernels(given[1])
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    upstream = torch.randn_like(expected)
    expected.backward(upstream)
    found.backward(upstream)
    for name, one in (("maps", given), *((n, None) for n, _ in layers.named_parameters())):
        left, right = one or (layers.get_parameter(name), kernels.get_parameter(name))
        scale = float(left.grad.abs().max())
        torch.testing.assert_close(right.grad, left.grad, rtol=1e-4, atol=1e-4 * scale, msg=name)
    for name, value in layers.named_buffers():
        torch.testing.assert_close(kernels.get_buffer(name), value, rtol=1e-5, atol=1e-5, msg=name)


@pytest.mark.parametrize(("before", "after", "stride", "side", "images", "shortcut"), BLOCKS)
def test_so_are_results_of_evaluation_which_changes_nothing(
    before, after, stride, side, images, shortcut, in_full
):
    torch.manual_seed(1)
    layers = block(before, after, stride, shortcut).eval()
    kernels = fused(layers)
    state = deepcopy(kernels.state_dict())
    maps = torch.randn(images, before, side, side)
    with torch.no_grad():
        torch.testing.assert_close(kernels(maps), layers(maps), rtol=1e-4, atol=1e-4)
    assert all(torch.equal(value, state[name]) for name, value in kernels.state_dict().items())


def learner(channels):
    zeros, ones = torch.zeros(channels), torch.ones(channels)
    return norms.Norm(ones, zeros, zeros.clone(), ones.clone(), torch.zeros((), dtype=torch.int64), 0.1, 1e-5)


@pytest.mark.parametrize(("channels", "side", "images"), [(16, 8, 9), (16, 6, 3), (48, 5, 7)])
def test_the_sums_that_are_handed_on_are_those_of_the_result(channels, side, images, in_full):
    torch.manual_seed(2)
    found, sums = fused(block(channels, channels, 1, False))(torch.randn(images, channels, side, side) + 5)
    last = found.detach().permute(0, 2, 3, 1).contiguous()
    fold = norms.fold_of(channels, side, side)
    handed = norms.norm_of(sums, last, learner(channels), fold)
    variance, mean = torch.var_mean(last.double(), dim=(0, 1, 2), correction=0)
    torch.testing.assert_close(handed[0].double(), mean, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(handed[1].double(), (variance + 1e-5).rsqrt(), rtol=1e-5, atol=1e-5)
    own = norms.norm_of(norms.sums_of(last), last, learner(channels))
    torch.testing.assert_close(handed, own, rtol=1e-5, atol=1e-5)


def test_a_net_hands_sums_from_block_to_block_and_learns_what_its_layers_learn(in_full):
    torch.manual_seed(3)
    shape = {"stages": (16, 32, 16), "variant": "tensor2tensor"}
    net = PreActResNet((3, 8, 8), 5, depth=14, **shape)
    other = deepcopy(net)
    use_kernels(other, stacked=False)
    assert [link.hands_on for link in other.body] == [True] * 5 + [False]
    images = torch.randn(4, 3, 8, 8)
    values = (images,)
    for link in other.links:
        values = link(*values)
        values = values if isinstance(values, tuple) else (values,)
    torch.testing.assert_close(values[0], net(images), rtol=1e-3, atol=1e-3)
    values[0].square().sum().backward()
    net(images).square().sum().backward()
    # Some gradients are nothing but what rounding leaves of zero: a bias before a norm.
    largest = max(weight.grad.norm() for weight in net.parameters())
    for name, weight in net.named_parameters():
        apart = (other.get_parameter(name).grad - weight.grad).norm()
        assert apart < 1e-3 * weight.grad.norm() + 1e-5 * largest, name


def test_the_layers_themselves_compute_where_nothing_asks_for_low_precision():
    layers = block(16, 16, 1, False)
    kernels = fused(layers)
    maps = torch.randn(2, 16, 6, 6)
    assert torch.equal(kernels(maps), layers(maps))


def test_low_precision_is_as_near_to_the_truth_as_the_layers_are(monkeypatch):
    monkeypatch.setattr(blocks, "asked_for", lambda maps: torch.float16)  # the interpreter multiplies no bf16
    torch.manual_seed(4)
    layers = block(16, 16, 1, False)
    maps = torch.randn(4, 16, 8, 8).half().float()
    truth = deepcopy(layers).double()(maps.double())
    found, _ = fused(layers)(maps)
    with torch.autocast("cpu", dtype=torch.float16):
        plain = layers(maps)
    assert found.dtype == torch.float16
    errors = [((one.double() - truth).norm() / truth.norm()).item() for one in (found, plain.half())]
    assert errors[0] < 1.2 * errors[1]


@pytest.mark.parametrize("change", ["stacked", "averages", "affine", "narrow", "he", "cross"])
def test_what_the_kernels_do_not_know_is_left_to_the_layers(change):
    layers = block(16, 16, 1, False)
    if change == "averages":
        layers.norm2.momentum = None
    if change == "affine":
        layers.norm1 = nn.BatchNorm2d(16, affine=False)
    if change == "narrow":
        layers = block(8, 8, 1, False)
    if change == "he":
        layers.shortcut = nn.Identity()
    if change == "cross":
        layers.norm1 = nn.SyncBatchNorm(16)
    use_kernels(layers, stacked=change == "stacked")
    assert type(layers) is PreActBlock


# What ResNet-56 has, of both widths, and batches whose last tile is not full.
ON_A_GPU = [
    (16, 16, 1, 32),
    (32, 32, 1, 32),
    (64, 64, 1, 16),
    (128, 128, 1, 8),
    (16, 32, 1, 32),
    (64, 128, 2, 16),
]


@pytest.mark.cuda
@pytest.mark.parametrize(("before", "after", "stride", "side"), ON_A_GPU)
@pytest.mark.parametrize("images", [128, 7])
def test_on_a_gpu_a_block_is_near_the_truth_and_always_the_same(before, after, stride, side, images):
    torch.manual_seed(5)
    layers = block(before, after, stride, before != after).cuda()
    check_block_on_a_gpu(layers, fused, before, after, stride, side, images)
