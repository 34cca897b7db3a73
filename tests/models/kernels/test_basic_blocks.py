"""Basic blocks computed by kernels against the layers that they stand for."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch import nn

pytest.importorskip("triton")

from softtargets.models import ResNet, ResNet18
from softtargets.models.kernels import basic_blocks, convolving, library, use_kernels
from softtargets.models.kernels.basic_blocks import FusedBasicBlock
from softtargets.models.resnet18 import BasicBlock

from .running import check_block_on_a_gpu


def unsettled(made):
    """The same block or net with norms that are not as they begin."""
    for module in made.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.normal_(module.weight, 1, 0.3)
            nn.init.normal_(module.bias, 0, 0.3)
            nn.init.normal_(module.running_mean, 0, 0.3)
            nn.init.uniform_(module.running_var, 0.5, 2)
    return made


def block(before, after, stride):
    return unsettled(BasicBlock(before, after, stride))


def fused(layers, hands_on=False):
    copied = deepcopy(layers)
    use_kernels(copied, stacked=False)
    assert type(copied) is FusedBasicBlock
    copied.hands_on = hands_on
    return copied


@pytest.fixture
def in_full(monkeypatch):
    """Single precision is asked for, so that nothing but the order of sums differs."""
    monkeypatch.setattr(basic_blocks, "asked_for", lambda maps: torch.float32)


@pytest.fixture(params=["ours", "library"])
def by_either(request, monkeypatch):
    """Whoever computes the convolutions."""
    monkeypatch.setattr(convolving, "WIDEST", {"ours": 64, "library": 0}[request.param])


# Channels before and after, stride, side and number of images: squares of places, odd maps, several tiles, a rest.
BLOCKS = [
    (16, 16, 1, 8, 3),
    (16, 16, 1, 7, 2),
    (48, 48, 1, 5, 6),
    (16, 32, 1, 8, 3),
    (16, 32, 2, 8, 9),
    (32, 48, 2, 7, 2),
    (19, 19, 1, 8, 3),  # no multiples of 16
    (19, 38, 2, 8, 3),
    (20, 33, 1, 5, 6),
]


def check_gradients(layers, kernels, given):
    for name, one in (("maps", given), *((n, None) for n, _ in layers.named_parameters())):
        left, right = one or (layers.get_parameter(name), kernels.get_parameter(name))
        scale = float(left.grad.abs().max())
        torch.testing.assert_close(right.grad, left.grad, rtol=1e-4, atol=1e-4 * scale, msg=name)


@pytest.mark.parametrize(("before", "after", "stride", "side", "images"), BLOCKS)
def test_results_gradients_and_moving_averages_are_those_of_the_layers(
    before, after, stride, side, images, in_full, by_either
):
    torch.manual_seed(0)
    layers = block(before, after, stride)
    kernels = fused(layers)
    # Far from zero: the variance is a small difference of large squares.
    maps = torch.randn(images, before, side, side) + 3 * torch.randn(before, 1, 1)
    given = [maps.clone().requires_grad_() for _ in range(2)]
    expected, found = layers(given[0]), kernels(given[1])
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    upstream = torch.randn_like(expected)
    expected.backward(upstream)
    found.backward(upstream)
    check_gradients(layers, kernels, given)
    for name, value in layers.named_buffers():
        torch.testing.assert_close(kernels.get_buffer(name), value, rtol=1e-5, atol=1e-5, msg=name)


@pytest.mark.parametrize(("before", "after", "stride", "side", "images"), BLOCKS)
def test_so_are_results_of_evaluation_which_changes_nothing(
    before, after, stride, side, images, in_full, by_either
):
    torch.manual_seed(1)
    layers = block(before, after, stride).eval()
    kernels = fused(layers, hands_on=True)
    state = deepcopy(kernels.state_dict())
    maps = torch.randn(images, before, side, side)
    with torch.no_grad():
        found = kernels(maps)
        torch.testing.assert_close(found[:, :after], layers(maps), rtol=1e-4, atol=1e-4)
        assert found.shape[1] == basic_blocks.even(after), "handed on with what kernels filled up"
        assert not found[:, after:].any()
        kernels.hands_on = False
        assert torch.equal(kernels(maps), found[:, :after])
    assert all(torch.equal(value, state[name]) for name, value in kernels.state_dict().items())


@pytest.mark.parametrize(("before", "after", "stride"), [(16, 16, 1), (16, 32, 2)])
def test_gradients_of_maps_that_are_given_twice_come_apart_and_are_added_behind(
    before, after, stride, in_full, by_either
):
    torch.manual_seed(2)
    layers = block(before, after, stride)
    kernels = fused(layers, hands_on=True)
    maps = torch.randn(3, before, 6, 6)
    given = maps.clone().requires_grad_()
    twice = [maps.clone().requires_grad_() for _ in range(2)]
    expected, found = layers(given), kernels(*twice)
    assert len(found) == 2
    assert torch.equal(found[0], found[1])
    pulls = [torch.randn_like(expected) for _ in range(2)]
    expected.backward(sum(pulls))
    torch.autograd.backward(found, pulls)
    both = maps.clone()
    both.grad = twice[0].grad + twice[1].grad
    check_gradients(layers, kernels, (given, both))
    straight = expected.detach() > 0  # what comes back along the identity
    if stride == 1:
        torch.testing.assert_close(twice[1].grad, torch.where(straight, sum(pulls), 0.0))


@pytest.mark.parametrize("place", [0, 1])
def test_one_of_both_results_may_have_no_gradient(place, in_full):
    torch.manual_seed(7)
    layers = block(16, 16, 1)
    kernels = fused(layers, hands_on=True)
    given = [torch.randn(2, 16, 4, 4).requires_grad_()]
    given.append(given[0].detach().clone().requires_grad_())
    layers(given[0]).square().sum().backward()
    kernels(given[1])[place].square().sum().backward()
    check_gradients(layers, kernels, given)


def test_blocks_hand_on_channels_of_zeros_that_nobody_learns_from(in_full, by_either):
    torch.manual_seed(8)
    layers = [block(19, 38, 2), block(38, 38, 1)]
    kernels = [fused(layers[0], hands_on=True), fused(layers[1])]
    given = [torch.randn(3, 19, 6, 6).requires_grad_()]
    given.append(given[0].detach().clone().requires_grad_())
    handed = kernels[0](given[1])
    assert [each.shape[1] for each in handed] == [48, 48]
    assert not any(each[:, 38:].any() for each in handed)
    expected, found = layers[1](layers[0](given[0])), kernels[1](*handed)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    upstream = torch.randn_like(expected)
    expected.backward(upstream)
    found.backward(upstream)
    for one, other in zip(layers, kernels, strict=True):
        check_gradients(one, other, given)
        for name, value in one.named_buffers():
            torch.testing.assert_close(other.get_buffer(name), value, rtol=1e-4, atol=1e-4, msg=name)


def test_the_layers_take_maps_that_kernels_have_filled_up(in_full, monkeypatch):
    """Where the next maps are more than kernels count."""
    torch.manual_seed(9)
    layers = block(19, 19, 1).eval()
    kernels = fused(layers, hands_on=True)
    maps = torch.randn(2, 19, 6, 6)
    monkeypatch.setattr(basic_blocks, "MOST_NUMBERS", 1)
    assert torch.equal(kernels(nn.functional.pad(maps, (0, 0, 0, 0, 0, 13))), layers(maps))


def said(net, images):
    """What its links say one after another."""
    values = (images,)
    for link in net.links:
        values = link(*values)
        values = values if isinstance(values, tuple) else (values,)
    return values[0]


# With convolutions of both kinds, and the form for photographs, all of the library's.
NETS = [
    (lambda: ResNet18((3, 8, 8), 5, width=16), 8, 16),
    (lambda: ResNet18((3, 8, 8), 5, width=19), 8, 48),
    (lambda: ResNet((3, 32, 32), 5, depth=18, width=16), 32, 0),
]


@pytest.mark.parametrize(("make", "side", "widest"), NETS, ids=["small", "uneven", "photographs"])
def test_a_net_hands_results_on_twice_and_learns_what_its_layers_learn(
    make, side, widest, in_full, monkeypatch
):
    torch.manual_seed(3)
    monkeypatch.setattr(convolving, "WIDEST", widest)
    net = make()
    unsettled(net)
    other = deepcopy(net)
    use_kernels(other, stacked=False)
    assert all(type(link) is FusedBasicBlock for link in other.body)
    assert [link.hands_on for link in other.body] == [True] * 7 + [False]
    images = torch.randn(6, 3, side, side)
    found, expected = said(other, images), net(images)
    torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)
    found.square().sum().backward()
    expected.square().sum().backward()
    # Some gradients are nothing but what rounding leaves of zero.
    largest = max(weight.grad.norm() for weight in net.parameters())
    for name, weight in net.named_parameters():
        apart = (other.get_parameter(name).grad - weight.grad).norm()
        assert apart < 1e-3 * weight.grad.norm() + 1e-5 * largest, name
    for name, value in net.named_buffers():
        torch.testing.assert_close(other.get_buffer(name), value, rtol=1e-3, atol=1e-3, msg=name)
    with torch.no_grad():
        torch.testing.assert_close(said(other.eval(), images), net.eval()(images), rtol=1e-3, atol=1e-3)


def test_the_layers_themselves_compute_where_nothing_asks_for_low_precision():
    layers = block(16, 16, 1)
    kernels = fused(layers, hands_on=True)
    maps = torch.randn(2, 16, 6, 6)
    assert torch.equal(kernels(maps, maps), layers(maps))


def test_and_where_there_are_more_numbers_than_kernels_count(in_full, monkeypatch):
    layers = block(16, 32, 2)
    maps = torch.randn(2, 16, 6, 6)
    for most, is_fused in ((2 * 6 * 6 * 32 + 1, True), (2 * 6 * 6 * 32, False)):
        monkeypatch.setattr(basic_blocks, "MOST_NUMBERS", most)
        found = fused(layers, hands_on=True)(maps)
        assert isinstance(found, tuple) == is_fused


def test_low_precision_is_as_near_to_the_truth_as_the_layers_are(monkeypatch, by_either):
    monkeypatch.setattr(
        basic_blocks, "asked_for", lambda maps: torch.float16
    )  # the interpreter knows no bf16
    torch.manual_seed(4)
    layers = block(16, 16, 1)
    maps = torch.randn(4, 16, 8, 8).half().float()
    truth = deepcopy(layers).double()(maps.double())
    found = fused(layers)(maps)
    with torch.autocast("cpu", dtype=torch.float16):
        plain = layers(maps)
    assert found.dtype == torch.float16
    errors = [((one.double() - truth).norm() / truth.norm()).item() for one in (found, plain.half())]
    assert errors[0] < 1.2 * errors[1]


def test_wide_convolutions_are_the_librarys_and_no_others():
    assert not convolving.is_wide(64, 64)
    assert convolving.is_wide(64, 128)
    assert convolving.is_wide(128, 64)
    wide = convolving.lay(torch.randn(128, 64, 3, 3), torch.bfloat16, 2)
    assert isinstance(wide, convolving.WideLayer)
    assert wide.weights.is_contiguous(memory_format=torch.channels_last)
    assert wide.weights.dtype == torch.bfloat16


@pytest.mark.parametrize("shape", [(3, 5, 3, 3), (2, 130, 3, 3), (4, 6, 1, 1), (2, 3, 5, 5)])
def test_weights_are_turned_for_the_library_and_their_gradients_back(shape):
    torch.manual_seed(6)
    weights = torch.randn(shape)
    turned = library.weights_for(weights, torch.float16)
    assert torch.equal(turned, weights.half())
    assert turned.is_contiguous(memory_format=torch.channels_last)
    maps, upstream = torch.randn(2, 6, 6, shape[1]), torch.randn(2, 6, 6, shape[0])
    found = library.gradient_of_weights(maps, upstream, library.weights_for(weights, torch.float32), 1)
    leaf = weights.requires_grad_()
    result = nn.functional.conv2d(maps.permute(0, 3, 1, 2), leaf, padding=shape[-1] // 2)
    (expected,) = torch.autograd.grad(result, leaf, upstream.permute(0, 3, 1, 2))
    assert found.is_contiguous()
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


CHANGES = ["stacked", "averages", "affine", "narrow", "cross", "side", "sides", "identity"]


@pytest.mark.parametrize("change", CHANGES)
def test_what_the_kernels_do_not_know_is_left_to_the_layers(change):
    layers = block(16, 32, 2)
    if change == "averages":
        layers.norm2.momentum = None
    if change == "affine":
        layers.norm1 = nn.BatchNorm2d(32, affine=False)
    if change == "narrow":  # twice as many channels would be computed
        layers = block(8, 16, 2)
    if change == "cross":
        layers.norm1 = nn.SyncBatchNorm(32)
    if change == "side":
        layers.shortcut[1] = nn.SyncBatchNorm(32)
    if change == "sides":
        layers.shortcut.append(nn.Dropout())
    if change == "identity":
        layers.shortcut = nn.Conv2d(16, 32, 1, 2)
    use_kernels(layers, stacked=change == "stacked")
    assert type(layers) is BasicBlock


# What ResNet-18 has, by our kernels and by the library, and batches whose last tile is not full.
@pytest.mark.cuda
@pytest.mark.parametrize(
    ("before", "after", "stride", "side"),
    [(64, 64, 1, 32), (64, 128, 2, 32), (512, 512, 1, 4), (19, 19, 1, 32), (38, 76, 2, 16)],
)
@pytest.mark.parametrize("images", [128, 7])
def test_on_a_gpu_a_block_is_near_the_truth_and_always_the_same(before, after, stride, side, images):
    torch.manual_seed(5)
    layers = block(before, after, stride).cuda()
    check_block_on_a_gpu(layers, fused, before, after, stride, side, images)
