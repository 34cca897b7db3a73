from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton")

from softtargets.models import Dropout, Transformer
from softtargets.models.kernels import launch, ops, use_kernels
from softtargets.models.kernels.layers import KernelDropout
from softtargets.randomness import key_words

from .running import DTYPES, interpreted, numbers


def place_of(seed, step, device="cpu"):
    return torch.cat((key_words(seed, "dropout"), torch.tensor([step]))).to(device)


def plain(activations, place, layer, p):
    dropout = Dropout(p).to(activations.device)
    dropout.place, dropout.layer = place, layer
    return dropout(activations)


@interpreted
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "p", "layer", "step"),
    [
        ((1,), 0.5, 0, 0),
        ((3, 7), 0.1, 3, 12),
        ((2, 3, 2 * launch.DRAWS + 5), 0.3, 17, 99_999),
        ((4 * launch.DRAWS,), 0.9, 1, 2**32 - 1),
    ],
)
def test_the_bits_are_those_of_the_plain_layer(dtype, shape, p, layer, step):
    place, activations = place_of(4, step), numbers(*shape, dtype=dtype)
    found = launch.drop(activations, place, torch.tensor(layer), p)
    assert found.dtype == dtype
    assert torch.equal(found, plain(activations, place, layer, p))


@interpreted
def test_what_is_no_number_is_dropped_too():
    place, nothing = place_of(0, 1), torch.full((64,), torch.nan)
    found = launch.drop(nothing, place, torch.tensor(0), 0.5)
    expected = plain(torch.ones(64), place, 0, 0.5)
    assert torch.equal(found.isnan(), expected != 0)


@interpreted
def test_the_gradient_has_the_same_mask():
    place, upstream = place_of(1, 2), numbers(5, 9)
    activations = numbers(5, 9, seed=1).requires_grad_()
    (found,) = torch.autograd.grad(ops.drop(activations, place, torch.tensor(6), 0.25), activations, upstream)
    assert torch.equal(found, plain(upstream, place, 6, 0.25))


@interpreted
def test_the_operator_keeps_what_operators_promise():
    given = numbers(4, 6).requires_grad_(), place_of(1, 2), torch.tensor(6), 0.25
    torch.library.opcheck(ops.drop, given)


def test_nets_alone_have_it_and_stacks_do_not():
    for stacked, kind in ((False, KernelDropout), (True, Dropout)):
        net = Transformer(vocabulary=9, width=8, heads=2, inner=8, encoder_layers=1, decoder_layers=1)
        use_kernels(net, stacked)
        assert {type(module) for module in net.modules() if isinstance(module, Dropout)} == {kind}


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_on_a_gpu_compiled_or_not(dtype):
    place = place_of(4, 12, "cuda")
    layer = KernelDropout(0.3).cuda()
    layer.place, layer.layer = place, 5
    activations = numbers(64, 33, 512, dtype=dtype, device="cuda").transpose(0, 1).requires_grad_()
    upstream = numbers(33, 64, 512, dtype=dtype, device="cuda", seed=1)
    expected = plain(activations.detach(), place, 5, 0.3)
    wanted = plain(upstream, place, 5, 0.3)
    for call in (layer, torch.compile(layer, dynamic=True)):
        found = call(activations)
        assert torch.equal(found, expected)
        assert torch.equal(*torch.autograd.grad(found, activations, upstream), wanted)


@interpreted
@pytest.mark.parametrize("first", [0, 1, 5])
def test_rows_of_a_batch_get_the_mask_that_they_have_in_it(first):
    place, batch = place_of(4, 7), numbers(9, 3, 4, dtype=torch.float32)
    sliced = torch.cat((place, torch.tensor([first])))
    found = launch.drop(batch[first : first + 3].contiguous(), sliced, torch.tensor(2), 0.4)
    assert torch.equal(found, plain(batch, place, 2, 0.4)[first : first + 3])
