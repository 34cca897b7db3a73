"""Linear layers of many nets at a time, and sums over the rest of a stack, against double precision."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from torch import nn

pytest.importorskip("triton")

from softtargets.models.kernels import launch, ops, products
from softtargets.models.kernels.layers import StackedLinear, use_kernels

from .running import DTYPES, interpreted, near, numbers

pytestmark = interpreted

SMALL = launch.Tiles(16, 16, 16, 1, 1)
# Runs, rows, inputs, outputs: ten classes, one of everything, and what no tile divides.
SHAPES = [(1, 1, 1, 1), (2, 5, 20, 10), (1, 3, 17, 33), (3, 18, 16, 2), (2, 33, 70, 37)]


def layer(runs, rows, inputs, outputs, dtype, inputs_first=True):
    """Rows, weights, bias and an upstream gradient; weights lie in memory with the inputs or the outputs first."""
    weights = numbers(runs, inputs, outputs, dtype=dtype, seed=1).transpose(1, 2)
    weights = weights if inputs_first else weights.contiguous()
    upstream = numbers(runs, rows, outputs, dtype=dtype, seed=3)
    return numbers(runs, rows, inputs, dtype=dtype), weights, numbers(runs, outputs, seed=2), upstream


def exactly(rows, weights, bias, upstream):
    rows, weights, bias, upstream = (each.double() for each in (rows, weights, bias, upstream))
    result = torch.stack([x @ w.T + b for x, w, b in zip(rows, weights, bias, strict=True)])
    of_weights = torch.stack([g.T @ x for g, x in zip(upstream, rows, strict=True)])
    return result, upstream @ weights, of_weights, upstream.sum(1)


def by_kernels(rows, weights, bias, upstream, tiles=None):
    return (
        products.linear(rows, weights, bias, tiles),
        products.gradient_of_rows(upstream, weights, tiles),
        *products.gradients_of_weights(rows, upstream, weights, True, tiles),
    )


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("tiles", [None, SMALL], ids=["chosen", "small"])
def test_a_linear_layer_and_its_gradients_against_double_precision(shape, dtype, tiles):
    given = layer(*shape, dtype, inputs_first=shape[1] % 2 == 0)
    found = by_kernels(*given, tiles)
    sizes = exactly(*(each.abs() for each in given))
    for each, wanted, size in zip(found, exactly(*given), sizes, strict=True):
        near(each, wanted, 2e-6 * size)
    assert [each.dtype for each in found] == [dtype, dtype, dtype, torch.float32]
    assert found[2].stride() == given[1].stride()  # an update reads both in one order


def test_a_run_is_the_same_in_any_company_and_among_any_rows():
    rows, weights, bias, upstream = layer(4, 24, 40, 10, torch.float16)
    together = by_kernels(rows, weights, bias, upstream)
    for run in range(4):
        own = [each[run : run + 1] for each in (rows, weights, bias, upstream)]
        for alone, stack in zip(by_kernels(*own), together, strict=True):
            assert torch.equal(alone[0], stack[run])
    assert torch.equal(products.linear(rows[:, 7:9], weights, bias), together[0][:, 7:9])


@pytest.mark.parametrize(("kib", "stages", "depth"), [(227, 3, 128), (163, 3, 128), (99, 2, 64)])
def test_gpus_with_little_shared_memory_are_given_smaller_programs(kib, stages, depth, monkeypatch):
    """An H200 and an A100 have room for the largest, a GPU for games has not."""
    properties = SimpleNamespace(shared_memory_per_block_optin=kib * 1024)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    there = SimpleNamespace(device=torch.device("cuda"))
    many = products.linear_tiles(128, 128, 784, 1200, 4, launch.has_much(there))
    deep = launch.product_tiles(512, 128, 9, launch.has_much(there))
    assert (many.stages, deep.depth) == (stages, depth)
    # Stages say how far ahead is read: sums are the same.
    assert many._replace(stages=3) == products.linear_tiles(128, 128, 784, 1200, 4)
    assert launch.has_much(torch.zeros(1))


def test_the_gradient_of_a_bias_does_not_depend_on_tiles():
    """A run alone is cut into smaller ones."""
    rows, weights, _, upstream = layer(2, 70, 5, 40, torch.float32)
    found = [
        products.gradients_of_weights(rows, upstream, weights, True, launch.Tiles(*sizes, 1, 1))[1]
        for sizes in ((16, 16, 16), (16, 64, 32), (32, 32, 128))
    ]
    assert torch.equal(found[0], found[1])
    assert torch.equal(found[0], found[2])


def test_what_shares_its_rows_is_not_copied_and_neighbours_do_not_leak():
    rows, weights, bias, _ = layer(3, 4, 20, 10, torch.float32)
    weights[1] = torch.nan
    found = torch.vmap(lambda w, b: ops.linear(rows[:1], w.unsqueeze(0), b.unsqueeze(0)), in_dims=(0, 0))(
        weights, bias
    )
    assert found[1].isnan().all()
    for run in (0, 2):
        wanted = products.linear(rows[:1], weights[run : run + 1], bias[run : run + 1])
        assert torch.equal(found[run], wanted)


def test_as_a_layer_under_vmap_it_is_torchs():
    nets = [nn.Sequential(nn.Linear(20, 12), nn.ReLU(), nn.Linear(12, 10, bias=False)) for _ in range(3)]
    parameters, _ = torch.func.stack_module_state(nets)
    skeleton = nn.Sequential(nn.Linear(20, 12), nn.ReLU(), nn.Linear(12, 10, bias=False))
    use_kernels(skeleton, stacked=True)
    assert isinstance(skeleton[0], StackedLinear)
    images = numbers(3, 5, 20)

    def one(own, seen):
        return torch.func.functional_call(skeleton, own, (seen,))

    logits = torch.vmap(one)(parameters, images)
    gradients = torch.autograd.grad(logits.square().sum(), list(parameters.values()))
    for run, net in enumerate(nets):
        wanted = net(images[run])
        torch.testing.assert_close(logits[run], wanted, rtol=1e-5, atol=1e-5)
        own = torch.autograd.grad(wanted.square().sum(), list(net.parameters()))
        for each, other in zip(gradients, own, strict=True):
            torch.testing.assert_close(each[run], other, rtol=1e-4, atol=1e-4)


def test_a_net_alone_keeps_its_linear_layers():
    net = nn.Sequential(nn.Linear(3, 2))
    use_kernels(net, stacked=False)
    assert type(net[0]) is nn.Linear


def test_under_autocast_the_result_is_in_low_precision_and_gradients_as_the_weights():
    net = nn.Sequential(nn.Linear(6, 4))
    use_kernels(net, stacked=True)
    with torch.autocast("cpu", torch.float16):
        found = net(numbers(5, 6))
    assert found.dtype == torch.float16
    found.sum().backward()
    assert net[0].weight.grad.dtype == net[0].bias.grad.dtype == torch.float32
    assert torch.equal(net[0].bias.grad, torch.full((4,), 5.0))


@pytest.mark.parametrize("count", [0, 1, 15, 1024, 1025, 8192, 8193, 20_001])
def test_sums_and_sums_of_squares(count):
    values = numbers(3, count)
    near(products.sums(values), values.double().sum(1), 1e-6 * values.double().abs().sum(1))
    squares = values.double().square().sum(1)
    near(products.sums(values, squared=True), squares, 1e-6 * squares)
    assert torch.equal(products.sums(values)[1], products.sums(values[1:2])[0])


def test_sums_in_double_precision_and_of_halves():
    values = numbers(2, 300).double()
    torch.testing.assert_close(products.sums(values), values.sum(1), rtol=1e-14, atol=1e-14)
    assert products.sums(values.half()).dtype == torch.float32


@pytest.mark.parametrize("squared", [False, True])
def test_sums_have_gradients(squared):
    values = numbers(2, 5).requires_grad_()
    (found,) = torch.autograd.grad((ops.sums(values, squared) * torch.tensor([2.0, 3.0])).sum(), values)
    factor = torch.tensor([[2.0], [3.0]])
    assert torch.equal(found, 2 * factor * values if squared else factor.expand(2, 5))


def test_the_operators_keep_to_the_rules_of_torch():
    rows, weights, bias, upstream = layer(1, 3, 4, 2, torch.float32)
    torch.library.opcheck(ops.linear_row_gradient, (upstream, weights))
    torch.library.opcheck(ops.linear_weight_gradient, (rows, upstream, weights, True))
    torch.library.opcheck(ops.linear_weight_gradient, (rows, upstream, weights, False))
    leaves = [each.requires_grad_() for each in (rows, weights, bias)]
    torch.library.opcheck(ops.linear, leaves)
    torch.library.opcheck(ops.linear, (rows, weights, None))
    torch.library.opcheck(ops.sums, (rows.detach()[0].requires_grad_(), True))


# --- the bias of a convolution ---


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("stride", [1, 2])
def test_a_convolution_adds_its_bias_before_it_rounds(dtype, stride):
    maps, weights = numbers(2, 2, 5, 4, 4, dtype=dtype), numbers(2, 6, 4, 3, 3, seed=1)
    bias = numbers(2, 6, seed=2).requires_grad_()
    found = ops.convolution(maps, weights, stride, 1, bias)
    upstream = numbers(*found.shape, dtype=dtype, seed=3)
    (gradient,) = torch.autograd.grad(found, bias, upstream)
    near(gradient, upstream.double().sum((1, 2, 3)), 1e-6 * upstream.double().abs().sum((1, 2, 3)))
    for run in range(2):
        given = maps[run].double().permute(0, 3, 1, 2), weights[run].to(dtype).double()
        wanted = nn.functional.conv2d(*given, bias[run].double(), stride, 1).permute(0, 2, 3, 1)
        near(found[run].detach(), wanted.detach(), 1e-5 * (1 + wanted.detach().abs()))
