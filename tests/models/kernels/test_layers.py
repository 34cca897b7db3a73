from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch import nn
from torch.func import functional_call, stack_module_state

pytest.importorskip("triton")

from softtargets.models import CNN, AlexNet, Classifier, PreActResNet
from softtargets.models.alexnet import LocalResponseNorm
from softtargets.models.kernels import launch, layers
from softtargets.models.kernels.layers import (
    Convolution,
    MaxPool,
    OverlappingMaxPool,
    ResponseNorm,
    StackedBatchNorm,
    use_kernels,
)
from softtargets.models.pooling import SameMaxPool

from ..looking import exercised
from ..test_classifier import SMALL, make
from .running import interpreted, numbers

pytestmark = interpreted


def half():
    return torch.autocast("cpu", torch.float16)


def with_kernels(module, stacked=True):
    """A copy of it."""
    copy = deepcopy(module)
    use_kernels(copy, stacked)
    return copy


@pytest.fixture
def no_kernels(monkeypatch):
    """Any launch is a mistake."""

    def refuse(*given):
        raise AssertionError("a kernel was launched")

    for name in ("convolve", "normalise", "pool"):
        monkeypatch.setattr(launch, name, refuse)


@pytest.fixture
def few_blocks(monkeypatch):
    """Gradients of weights in few blocks, which the interpreter takes ten milliseconds for, each."""
    tiles = launch.Tiles(64, 64, 128, 1, 1, part=64)
    monkeypatch.setattr(launch, "gradient_tiles", lambda *sizes: tiles)


# --- which layers are computed by kernels ---

REPLACED = {
    "a convolution": (nn.Conv2d(16, 32, 3, stride=2, padding=1), Convolution),
    "of one pixel": (nn.Conv2d(3, 5, 1, padding=1, bias=False), Convolution),
    "as wide as they go alone": (nn.Conv2d(64, 64, 5, padding=2), Convolution),
    "two by two": (nn.MaxPool2d(2), MaxPool),
    "three by three": (nn.MaxPool2d(3, stride=1), MaxPool),
    "the largest window": (nn.MaxPool2d(16), MaxPool),
    "same padding": (SameMaxPool(), OverlappingMaxPool),
    "response norm": (LocalResponseNorm(), ResponseNorm),
}
KEPT = {
    "groups": nn.Conv2d(16, 32, 3, groups=4),
    "dilation": nn.Conv2d(16, 32, 3, dilation=2),
    "padding by name": nn.Conv2d(16, 32, 3, padding="same"),
    "no padding by name": nn.Conv2d(16, 32, 3, padding="valid"),
    "a kernel that is not square": nn.Conv2d(16, 32, (3, 1)),
    "a stride that is not square": nn.Conv2d(16, 32, 3, stride=(1, 2)),
    "a padding that is not square": nn.Conv2d(16, 32, 3, padding=(1, 0)),
    "padding by reflection": nn.Conv2d(16, 32, 3, padding=1, padding_mode="reflect"),
    "transposed": nn.ConvTranspose2d(16, 32, 3),
    "one dimension": nn.Conv1d(16, 32, 3),
    "pooling that rounds up": nn.MaxPool2d(2, ceil_mode=True),
    "pooling with padding": nn.MaxPool2d(3, stride=2, padding=1),
    "pooling with dilation": nn.MaxPool2d(2, dilation=2),
    "pooling that says where": nn.MaxPool2d(2, return_indices=True),
    "windows that are not square": nn.MaxPool2d((2, 3)),
    "windows that are not as far apart": nn.MaxPool2d(2, stride=(1, 2)),
    "more places than a byte can count": nn.MaxPool2d(17),
    "average pooling": nn.AvgPool2d(2),
    "batch norm of vectors": nn.BatchNorm1d(16),
    "batch norm without scale and shift": nn.BatchNorm2d(16, affine=False),
    "batch norm without averages": nn.BatchNorm2d(16, track_running_stats=False),
    "batch norm that forgets nothing": nn.BatchNorm2d(16, momentum=None),
}


@pytest.mark.parametrize("name", REPLACED)
@pytest.mark.parametrize("stacked", [True, False])
def test_layers_that_kernels_compute(name, stacked):
    layer, kind = REPLACED[name]
    net = with_kernels(nn.Sequential(nn.Sequential(layer)), stacked)
    assert type(net[0][0]) is kind
    assert isinstance(net[0][0], type(layer))


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("stacked", [True, False])
def test_layers_that_stay_as_they_are(name, stacked):
    layer = KEPT[name]
    assert type(with_kernels(nn.Sequential(layer), stacked)[0]) is type(layer)


@pytest.mark.parametrize("channels", [(65, 16), (16, 65)])
def test_wide_convolutions_are_left_to_nvidia_where_a_net_is_alone(channels):
    net = nn.Sequential(nn.Conv2d(*channels, 3))
    assert type(with_kernels(net, stacked=False)[0]) is nn.Conv2d
    assert type(with_kernels(net, stacked=True)[0]) is Convolution


def test_batch_norm_changes_only_in_a_stack():
    net = nn.Sequential(nn.BatchNorm2d(16))
    assert type(with_kernels(net, stacked=False)[0]) is nn.BatchNorm2d
    assert type(with_kernels(net, stacked=True)[0]) is StackedBatchNorm


def test_layers_of_somebody_else_are_left_alone():
    class Own(nn.Conv2d):
        pass

    assert type(with_kernels(nn.Sequential(Own(3, 4, 3)))[0]) is Own


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("stacked", [True, False])
def test_names_shapes_and_values_stay_as_they_are(name, stacked):
    net = make(name)
    before = deepcopy(net.state_dict())
    held = [id(value) for value in net.state_dict(keep_vars=True).values()]
    use_kernels(net, stacked)
    use_kernels(net, stacked)  # a second time changes nothing more
    after = net.state_dict()
    assert list(after) == list(before)
    assert all(torch.equal(after[key], value) for key, value in before.items())
    assert [id(value) for value in net.state_dict(keep_vars=True).values()] == held
    make(name).load_state_dict(after)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize("training", [True, False])
def test_without_autocast_the_layers_are_torchs_own(name, training, no_kernels):
    torch.manual_seed(0)
    images = torch.rand(4, 1, 8, 8)
    net = exercised(make(name), images).train(training)
    expected = [with_kernels(net, stacked=False)(images), with_kernels(net, stacked=True)(images)]
    logits = net(images)
    assert torch.equal(expected[0], logits)
    torch.testing.assert_close(expected[1], logits, rtol=1e-3, atol=1e-5)  # batch norm is written out


# --- one layer ---


def check_layer(layer, maps):
    """In half precision, against torch's own layer in double; gradients of the maps and of every weight."""
    exact, own = deepcopy(layer).double(), with_kernels(layer)
    assert type(own) is not type(layer)
    seen, known = maps.clone().requires_grad_(), maps.half().double().requires_grad_()
    with half():
        found = own(seen)
    wanted = exact(known)
    assert found.dtype == torch.float16
    assert found.is_contiguous(memory_format=torch.channels_last)
    upstream = numbers(*wanted.shape, dtype=torch.float16, seed=1)
    gradients = torch.autograd.grad(found, [seen, *own.parameters()], upstream)
    expected = torch.autograd.grad(wanted, [known, *exact.parameters()], upstream.double())
    for one, other in zip((found, *gradients), (wanted, *expected), strict=True):
        assert one.shape == other.shape
        assert (one.double() - other).abs().max() <= 2e-3 * other.abs().max()
    assert [each.dtype for each in gradients] == [torch.float32] * len(gradients)


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 6, 16, 17])
@pytest.mark.parametrize("bias", [True, False])
def test_a_convolution_in_half_precision(channels, bias, few_blocks):
    torch.manual_seed(0)
    check_layer(nn.Conv2d(channels, 5, 3, padding=1, bias=bias), numbers(2, channels, 5, 4))


@pytest.mark.parametrize(
    ("kernel", "stride", "padding"), [(1, 1, 0), (1, 2, 1), (3, 2, 1), (5, 1, 2), (5, 3, 0), (7, 2, 3)]
)
def test_kernels_strides_and_paddings_in_half_precision(kernel, stride, padding, few_blocks):
    torch.manual_seed(0)
    check_layer(nn.Conv2d(3, 4, kernel, stride, padding), numbers(1, 3, 8, 7))


def test_three_colours_are_read_as_four(few_blocks, monkeypatch):
    """And one stays one."""
    seen, convolve = [], launch.convolve
    monkeypatch.setattr(
        launch, "convolve", lambda maps, *rest: seen.append(maps.shape[-1]) or convolve(maps, *rest)
    )
    for channels in (1, 2, 3, 4, 5, 16):
        with half(), torch.no_grad():
            with_kernels(nn.Conv2d(channels, 2, 1))(numbers(1, channels, 2, 2))
    assert seen == [1, 4, 4, 4, 8, 16]


@pytest.mark.parametrize("sides", [(6, 6), (7, 9), (5, 8)])
def test_poolings_in_half_precision(sides):
    for layer in (nn.MaxPool2d(2), nn.MaxPool2d(3, 2), nn.MaxPool2d(2, 1), SameMaxPool()):
        check_layer(layer, numbers(2, 3, *sides))


@pytest.mark.parametrize("channels", [3, 64])
def test_the_response_norm_in_half_precision(channels):
    check_layer(LocalResponseNorm(), 30 * numbers(2, channels, 4, 3))


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_maps_may_lie_in_memory_as_they_like(memory_format):
    maps = numbers(2, 4, 6, 5)
    laid = maps.contiguous(memory_format=memory_format)
    for layer in (nn.Conv2d(4, 3, 3), nn.MaxPool2d(2), SameMaxPool(), LocalResponseNorm()):
        own = with_kernels(layer)
        with half(), torch.no_grad():
            assert torch.equal(own(laid), own(maps))
            assert torch.equal(own(maps[:, :, ::2, 1:]), own(maps[:, :, ::2, 1:].clone()))


@pytest.mark.parametrize(("channels", "new_channels", "stride"), [(2, 9, 1), (9, 2, 1), (9, 2, 2)])
def test_maps_of_more_numbers_than_a_kernel_can_count_are_torchs(channels, new_channels, stride, monkeypatch):
    launched, convolve = [], launch.convolve
    monkeypatch.setattr(launch, "convolve", lambda *given: launched.append(given) or convolve(*given))
    layer = with_kernels(nn.Conv2d(channels, new_channels, 3, stride, padding=1))
    maps = numbers(2, channels, 5, 6)
    with half(), torch.no_grad():
        wanted = layer(maps)
        assert len(launched) == 1
        monkeypatch.setattr(layers, "MOST_NUMBERS", 2 * 5 * 6 * 9)  # those that there are, not one more
        found = layer(maps)
    assert len(launched) == 1
    assert found.shape == wanted.shape
    torch.testing.assert_close(found, wanted, rtol=2e-3, atol=2e-3)


def test_what_a_kernel_can_count():
    assert layers.MOST_NUMBERS == 2**31


# --- batch norm written out ---


def norms(**options):
    torch.manual_seed(1)
    plain = nn.BatchNorm2d(5, **options)
    for value in (plain.weight, plain.bias, plain.running_mean):
        nn.init.normal_(value)
    nn.init.uniform_(plain.running_var, 0.5, 2)
    own = deepcopy(plain)
    own.__class__ = StackedBatchNorm
    return plain, own


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("options", [{}, {"momentum": 0.3, "eps": 0.1}, {"momentum": 0.0}], ids=str)
@pytest.mark.parametrize("shape", [(4, 5, 3, 2), (2, 5, 1, 1), (64, 5, 4, 4)])
def test_batch_norm_is_torchs(training, options, shape):
    plain, own = norms(**options)
    # Far from zero, where a variance that is a difference of squares would be lost.
    maps = [(10 + numbers(*shape)).requires_grad_() for _ in range(2)]
    for step in range(3):
        results = [norm.train(training)(each + step) for norm, each in zip((plain, own), maps, strict=True)]
        torch.testing.assert_close(results[1], results[0], rtol=1e-4, atol=1e-5)
        upstream = numbers(*shape, seed=step)
        wanted, found = (
            torch.autograd.grad(result, [each, *norm.parameters()], upstream)
            for result, each, norm in zip(results, maps, (plain, own), strict=True)
        )
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
        for (key, one), (_, other) in zip(own.named_buffers(), plain.named_buffers(), strict=True):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6, msg=key)
            assert one.dtype == other.dtype
    assert own.num_batches_tracked == (3 if training else 0)


def test_batch_norm_keeps_half_precision_to_itself():
    """Maps come and go as halves, averages stay in single precision."""
    plain, own = norms()
    maps = (10 + numbers(8, 5, 4, 4)).half()
    found, wanted = own(maps), plain(maps.float())
    assert found.dtype == torch.float16
    torch.testing.assert_close(found.float(), wanted, rtol=2e-3, atol=2e-3)
    torch.testing.assert_close(own.running_mean, plain.running_mean)
    torch.testing.assert_close(own.running_var, plain.running_var)


# --- nets in a stack ---


class Mixed(Classifier):
    """AlexNet's layers, narrower, and with one that no kernel computes."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(3, 16, 5, padding=2),
            SameMaxPool(),
            nn.ReLU(),
            LocalResponseNorm(),
            nn.Conv2d(16, 16, 3, padding=1),
            nn.BatchNorm2d(16),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.AvgPool2d(2),
            nn.Flatten(),
        )
        self.head = nn.Linear(16, 7)

    def features(self, images):
        return self.body(images)


NETS = {
    "cnn": lambda: CNN((3, 8, 8), 7, channels=(4, 6), hidden=16),
    "he": lambda: PreActResNet((3, 8, 8), 7, depth=8, stages=(4, 6, 16), stem_channels=4),
    "mixed": Mixed,
}


def logits_of_a_stack(nets, images, shared=False):
    """All at a time, with their parameters and buffers."""
    parameters, buffers = stack_module_state(nets)
    skeleton = deepcopy(nets[0])

    def one(own, held, seen):
        return functional_call(skeleton, (own, held), (seen,))

    with half():
        logits = torch.vmap(one, in_dims=(0, 0, None if shared else 0))(parameters, buffers, images)
    return logits, parameters, buffers


def relative(found, wanted):
    """The error of all numbers together."""
    one, other = (torch.cat([each.double().flatten() for each in values]) for values in (found, wanted))
    return ((one - other).norm() / other.norm()).item()


@pytest.mark.parametrize("name", NETS)
def test_in_a_stack_each_net_does_what_it_does_alone(name, few_blocks):
    torch.manual_seed(0)
    plain = [NETS[name]() for _ in range(2)]
    nets = [with_kernels(net) for net in plain]
    images = torch.randn(2, 2, 3, 8, 8)
    logits, parameters, buffers = logits_of_a_stack(nets, images)
    gradients = torch.autograd.grad(logits.float().square().sum(), list(parameters.values()))
    for run, seen in enumerate(images):
        own = [each[run] for each in gradients]
        # Alone by kernels, and by torch: there one number may fall on the other side of a maximum, and its gradient
        # go elsewhere.
        for net, close, pulled in ((nets[run], 2e-3, 2e-3), (plain[run], 5e-3, 0.2)):
            with half():
                alone = net(seen)
            wanted = torch.autograd.grad(alone.float().square().sum(), list(net.parameters()))
            assert relative([logits[run].detach()], [alone.detach()]) < close
            assert relative(own, wanted) < pulled
            held = dict(net.named_buffers())
            for key in buffers:
                torch.testing.assert_close(buffers[key][run], held[key], rtol=5e-3, atol=5e-3)
        exact = plain[run].double()
        assert relative([logits[run].detach()], [exact(seen.double()).detach()]) < 5e-3


@pytest.mark.parametrize("shared", [True, False])
def test_alexnet_in_a_stack(shared):
    torch.manual_seed(0)
    plain = [AlexNet((3, 8, 8), 7).eval() for _ in range(2)]
    images = torch.randn(2, 2, 3, 8, 8)
    images = images[0] if shared else images
    with torch.no_grad():
        logits, *_ = logits_of_a_stack([with_kernels(net) for net in plain], images, shared)
        for run, net in enumerate(plain):
            exact = net.double()((images if shared else images[run]).double())
            assert relative([logits[run]], [exact]) < 5e-3


def test_in_evaluation_a_stack_may_look_at_the_same_images():
    torch.manual_seed(0)
    images = torch.randn(4, 3, 8, 8)
    plain = [exercised(NETS["he"](), images) for _ in range(2)]
    with torch.no_grad():
        logits, _, buffers = logits_of_a_stack([with_kernels(net) for net in plain], images, shared=True)
        for run, net in enumerate(plain):
            assert relative([logits[run]], [net.double()(images.double())]) < 5e-3
    assert buffers["body.0.norm1.num_batches_tracked"].tolist() == [1, 1]


def test_convolutions_of_a_stack_have_the_bits_that_they_have_alone():
    torch.manual_seed(0)
    nets = [
        with_kernels(nn.Sequential(nn.Conv2d(3, 16, 3), nn.MaxPool2d(2), nn.Conv2d(16, 5, 1)))
        for _ in range(3)
    ]
    images = torch.randn(3, 2, 3, 6, 6)
    with torch.no_grad(), half():
        logits, *_ = logits_of_a_stack(nets, images)
        for net, seen, found in zip(nets, images, logits, strict=True):
            assert torch.equal(net(seen), found)


def test_every_kernel_is_launched_once_for_a_whole_stack(monkeypatch):
    """And every layer that has one comes to it."""
    launched = []

    def note(name, original):
        return lambda maps, *rest: launched.append((name, maps.shape[0])) or original(maps, *rest)

    for name in ("convolve", "normalise", "pool"):
        monkeypatch.setattr(launch, name, note(name, getattr(launch, name)))
    with torch.no_grad():
        logits_of_a_stack([with_kernels(Mixed()) for _ in range(3)], torch.randn(3, 2, 3, 8, 8))
    assert launched == [("convolve", 3), ("pool", 3), ("normalise", 3), ("convolve", 3), ("pool", 3)]
