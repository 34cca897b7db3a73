"""What the interpreter cannot show: bfloat16, real sizes, graphs, streams, and nets as they are trained."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from torch.func import functional_call, stack_module_state
from torch.nn import functional

pytest.importorskip("triton")

from softtargets.models import CNN, AlexNet, PreActResNet
from softtargets.models.alexnet import local_response_norm
from softtargets.models.kernels import launch, ops, products
from softtargets.models.kernels.launch import Pooling
from softtargets.models.kernels.layers import use_kernels

from ..looking import exercised
from .running import by_kernels, exactly, example, near, numbers

pytestmark = pytest.mark.cuda

BATCH = 128
# Sides, channels in and out, kernel, stride, padding; three colours are read as four.
LAYERS = {
    "ResNet-56": [
        ((32, 32), 4, 16, 3, 1, 1),
        ((32, 32), 16, 16, 3, 1, 1),
        ((32, 32), 16, 32, 3, 2, 1),
        ((32, 32), 16, 32, 1, 2, 0),
        ((16, 16), 32, 32, 3, 1, 1),
        ((16, 16), 32, 64, 3, 2, 1),
        ((16, 16), 32, 64, 1, 2, 0),
        ((8, 8), 64, 64, 3, 1, 1),
    ],
    "AlexNet": [((24, 24), 4, 64, 5, 1, 2), ((12, 12), 64, 64, 5, 1, 2)],
    "CNN": [((28, 28), 1, 32, 3, 1, 1), ((14, 14), 32, 64, 3, 1, 1)],
    "others": [
        ((16, 16), 64, 128, 3, 2, 1),
        ((4, 4), 512, 512, 3, 1, 1),
        ((9, 7), 17, 130, 3, 2, 1),
        ((32, 32), 4, 32, 1, 1, 1),
    ],
}
EVERY = [pytest.param(layer, id=f"{net}-{layer}") for net, known in LAYERS.items() for layer in known]
SOME = [LAYERS["ResNet-56"][0], LAYERS["ResNet-56"][2], LAYERS["ResNet-56"][7], LAYERS["CNN"][0]]


def in_bf16(runs, images, layer, **made):
    return example(runs, images, *layer, torch.bfloat16, device="cuda", **made)


def relative(found, exact):
    """The error of all numbers together."""
    one, other = (
        torch.cat([each.detach().double().flatten() for each in values]) for values in (found, exact)
    )
    return ((one - other).norm() / other.norm()).item()


@pytest.mark.parametrize("layer", EVERY)
def test_every_layer_of_our_nets_against_double_precision(layer):
    maps, weights, upstream, *rest = in_bf16(1, BATCH, layer)
    found = by_kernels(maps, weights, upstream, *rest)
    exact = exactly(maps, weights, upstream, *rest)
    sizes = exactly(maps.abs(), weights.abs(), upstream.abs(), *rest)
    assert [each.dtype for each in found] == [torch.bfloat16, torch.bfloat16, torch.float32]
    for one, other, size, allowed in zip(found, exact, sizes, (5e-3, 5e-3, 1e-4), strict=True):
        assert relative([one], [other]) < allowed
        near(one, other, 1e-5 * size)  # every number, those at the borders too


@pytest.mark.parametrize("layer", SOME, ids=str)
def test_a_run_is_the_same_alone_and_in_a_stack_of_any_size(layer):
    maps, weights, upstream, *rest = in_bf16(16, 32, layer)
    for begin, end in ((0, 16), (3, 6)):
        together = by_kernels(maps[begin:end], weights[begin:end], upstream[begin:end], *rest)
        for run in (begin, begin + 1, end - 1):
            own = [each[run : run + 1].clone() for each in (maps, weights, upstream)]
            for alone, stack in zip(by_kernels(*own, *rest), together, strict=True):
                assert torch.equal(stack[run - begin], alone[0])


# Inputs and outputs of linear layers of our nets, and of others that no tile divides.
LINEAR = [(784, 1200), (1200, 10), (3136, 128), (2304, 384), (50, 37), (37, 10), (192, 100)]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize("layer", LINEAR, ids=str)
def test_linear_layers_give_the_same_bits_in_any_company_and_by_any_tiles(layer, dtype):
    """Many runs are cut into larger tiles than few, and of many fewer rows are measured at a time."""
    inputs, outputs = layer
    made = {"device": "cuda", "dtype": dtype}
    rows, upstream = numbers(130, BATCH, inputs, **made), numbers(130, BATCH, outputs, seed=1, **made)
    weights = numbers(130, inputs, outputs, seed=2, **made).transpose(1, 2) / inputs**0.5
    bias = numbers(130, outputs, device="cuda", seed=3)

    def computed(begin, end):
        own = [each[begin:end].clone() for each in (rows, upstream, weights, bias)]
        given, pulled, used, added = own
        return (
            products.linear(given, used, added),
            products.gradient_of_rows(pulled, used),
            *products.gradients_of_weights(given, pulled, used, True),
        )

    together = computed(0, 130)
    exact = rows.double() @ weights.double().transpose(1, 2) + bias.double().unsqueeze(1)
    assert relative([together[0]], [exact]) < (5e-3 if dtype == torch.bfloat16 else 1e-6)
    exact = upstream.double().transpose(1, 2) @ rows.double()
    assert relative([together[2]], [exact]) < (5e-3 if dtype == torch.bfloat16 else 1e-6)
    for begin, end in ((0, 1), (7, 24), (129, 130)):
        for stack, fewer in zip(together, computed(begin, end), strict=True):
            assert torch.equal(stack[begin:end], fewer)
    assert torch.equal(products.linear(rows[:, 3:80], weights, bias), together[0][:, 3:80])


@pytest.mark.parametrize("layer", SOME, ids=str)
def test_the_same_every_time(layer):
    given = in_bf16(4, BATCH, layer)
    first = by_kernels(*given)
    for _ in range(5):
        assert all(torch.equal(one, other) for one, other in zip(by_kernels(*given), first, strict=True))


def test_tensors_at_odd_addresses():
    """A kernel compiled for even ones must not be used for them."""
    given = in_bf16(1, 8, LAYERS["ResNet-56"][1])
    wanted = by_kernels(*given)
    shifted = []
    for each in given[:3]:
        place = torch.empty(each.numel() + 1, dtype=each.dtype, device="cuda")[1:].view(each.shape)
        shifted.append(place.copy_(each))
        assert shifted[-1].data_ptr() % 16
    for one, other in zip(by_kernels(*shifted, *given[3:]), wanted, strict=True):
        assert relative([one], [other]) < 2e-3


# --- pooling and response norm ---

POOLINGS = [
    (Pooling(2, 2, 0, 0, 14, 14), (28, 28), 32),
    (Pooling(3, 2, 0, 0, 12, 12), (24, 24), 64),
    (Pooling(3, 2, 1, 1, 7, 5), (13, 9), 64),
]


@pytest.mark.parametrize(("pooling", "sides", "channels"), POOLINGS)
def test_pooling_in_bf16_is_torchs_in_double_precision(pooling, sides, channels):
    """With many ties: the first place of a window wins, as on the CPU."""
    maps = (numbers(BATCH, *sides, channels, device="cuda") * 4).round().bfloat16()
    found, winners = launch.pool(maps, pooling)
    upstream = numbers(*found.shape, dtype=torch.bfloat16, device="cuda", seed=1)
    gradient = launch.gradient_of_pool(upstream, winners, *sides, pooling)
    known = maps.double().cpu().permute(0, 3, 1, 2).requires_grad_()
    after = [
        pooling.stride * (count - 1) + pooling.kernel - first - side
        for count, first, side in zip(pooling[4:], pooling[2:4], sides, strict=True)
    ]
    borders = (pooling.left, max(after[1], 0), pooling.top, max(after[0], 0))
    padded = functional.pad(known, borders, value=-torch.inf)
    wanted = functional.max_pool2d(padded, pooling.kernel, pooling.stride)
    assert torch.equal(found.double().cpu(), wanted.permute(0, 2, 3, 1))
    (exact,) = torch.autograd.grad(wanted, known, upstream.double().cpu().permute(0, 3, 1, 2))
    near(gradient.cpu(), exact.permute(0, 2, 3, 1), 1e-5)


@pytest.mark.parametrize(("channels", "scale"), [(64, 1.0), (64, 30.0), (48, 30.0), (20, 300.0)])
def test_the_response_norm_in_bf16_against_double_precision(channels, scale):
    constants = (4, 1.0, 0.001 / 9, 0.75)
    maps = (scale * numbers(BATCH, 12, 12, channels, device="cuda")).bfloat16()
    upstream = numbers(*maps.shape, dtype=torch.bfloat16, device="cuda", seed=1)
    known = maps.double().permute(0, 3, 1, 2).requires_grad_()
    wanted = local_response_norm(known, *constants)
    (exact,) = torch.autograd.grad(wanted, known, upstream.double().permute(0, 3, 1, 2))
    found, gradient = launch.normalise(maps, *constants), launch.gradient_of_norm(maps, upstream, *constants)
    wanted, exact = (each.detach().permute(0, 2, 3, 1) for each in (wanted, exact))
    near(found, wanted, 1e-4 * wanted.abs())
    near(gradient, exact, 1e-4 * (exact.abs() + upstream.double().abs()))
    assert relative([found], [wanted]) < 5e-3
    assert relative([gradient], [exact]) < 5e-3


# --- graphs and streams ---


def step(maps, weights):
    """All kernels, forwards and backwards, one after another; gradients first."""
    found = ops.convolution(maps, weights, 1, 1)
    found = ops.response_norm(found, 4, 1.0, 0.01, 0.75)
    pooled, _ = ops.max_pool(found, list(Pooling(3, 2, 0, 0, 8, 8)))
    loss = pooled.float().square().sum()
    return *torch.autograd.grad(loss, (maps, weights)), pooled


def test_captured_in_a_graph_and_replayed_on_another_stream():
    layer = ((16, 16), 16, 32, 3, 1, 1)
    static = [each.clone().requires_grad_() for each in in_bf16(2, 32, layer)[:2]]
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step(*static)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kept = step(*static)
    other = torch.cuda.Stream()
    for seed in range(1, 4):
        new = in_bf16(2, 32, layer, seed=seed)[:2]
        with torch.no_grad():
            for place, values in zip(static, new, strict=True):
                place.copy_(values)
        other.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(other):
            graph.replay()
        torch.cuda.synchronize()
        wanted = step(*(values.clone().requires_grad_() for values in new))
        for one, wished in zip(kept, wanted, strict=True):
            assert torch.equal(one, wished)


def test_streams_side_by_side_do_not_disturb_each_other():
    cases = [in_bf16(1, 64, layer, seed=seed) for seed, layer in enumerate(SOME)]
    wanted = [by_kernels(*case) for case in cases]
    torch.cuda.synchronize()
    streams = [torch.cuda.Stream() for _ in cases]
    for _ in range(10):
        found = []
        for stream, case in zip(streams, cases, strict=True):
            with torch.cuda.stream(stream):
                found.append(by_kernels(*case))
        torch.cuda.synchronize()
        for one, other in zip(found, wanted, strict=True):
            assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))


# --- nets ---

SHAPES = {"cnn": (1, 28, 28), "alexnet": (3, 24, 24), "resnet": (3, 32, 32)}
NETS = {
    "cnn": lambda: CNN(SHAPES["cnn"], 10),
    "alexnet": lambda: AlexNet(SHAPES["alexnet"], 10),
    "resnet": lambda: PreActResNet(SHAPES["resnet"], 10, depth=20),
}


def with_kernels(net, stacked):
    copy = deepcopy(net)
    use_kernels(copy, stacked)
    return copy


def trained(net, images):
    """Logits and gradients, as in training with bf16, or in double precision if the net is."""
    with torch.autocast("cuda", torch.bfloat16, enabled=images.dtype == torch.float32):
        logits = net(images)
    return logits, torch.autograd.grad(logits.double().square().sum(), list(net.parameters()))


@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("stacked", [True, False])
def test_nets_with_kernels_are_as_good_as_without(name, stacked):
    """As far from double precision as torch's own layers in bf16, or nearer."""
    torch.manual_seed(0)
    images = torch.randn(64, *SHAPES[name], device="cuda")
    net = exercised(NETS[name]().cuda(), images)
    logits, gradients = trained(deepcopy(net).double(), images.double())
    plain, own = trained(net, images), trained(with_kernels(net, stacked), images)
    assert relative([own[0]], [logits]) < 2 * relative([plain[0]], [logits]) + 2e-3
    assert relative(own[1], gradients) < 2 * relative(plain[1], gradients) + 1e-2


@pytest.mark.parametrize("name", NETS)
def test_in_a_stack_each_net_does_what_it_does_alone(name):
    torch.manual_seed(0)
    nets = [with_kernels(NETS[name]().cuda(), stacked=True) for _ in range(3)]
    images = torch.randn(3, 32, *SHAPES[name], device="cuda")
    parameters, buffers = stack_module_state(nets)
    skeleton = deepcopy(nets[0])

    def one(own, held, seen):
        return functional_call(skeleton, (own, held), (seen,))

    with torch.autocast("cuda", torch.bfloat16):
        logits = torch.vmap(one)(parameters, buffers, images)
    gradients = torch.autograd.grad(logits.double().square().sum(), list(parameters.values()))
    for run, net in enumerate(nets):
        alone, own = trained(net, images[run])
        assert relative([logits[run]], [alone]) < 2e-2
        assert relative([each[run] for each in gradients], own) < 5e-2
        held = dict(net.named_buffers())
        for key in buffers:
            torch.testing.assert_close(buffers[key][run], held[key], rtol=2e-2, atol=2e-2)
