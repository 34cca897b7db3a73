from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from softtargets.models.look_up import look_up


def tables(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


TOKENS = torch.tensor([[1, 3, 3], [0, 1, 3]])


def test_rows_and_their_gradient_are_those_of_torchs_embedding():
    ours, theirs = (tables(5, 4).requires_grad_() for _ in range(2))
    weights = tables(2, 3, 4, seed=1)
    found, expected = look_up(ours, TOKENS), F.embedding(TOKENS, theirs)
    assert torch.equal(found, expected)
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    assert torch.equal(ours.grad, theirs.grad)
    assert ours.grad[2].abs().sum() == ours.grad[4].abs().sum() == 0


def test_first_and_second_derivatives_hold():
    weight = tables(5, 4).requires_grad_()
    assert torch.autograd.gradcheck(lambda w: look_up(w, TOKENS), (weight,))
    assert torch.autograd.gradgradcheck(lambda w: look_up(w, TOKENS) ** 3, (weight,))


def test_the_operator_keeps_what_it_promises():
    torch.library.opcheck(look_up, (tables(5, 4).float().requires_grad_(), TOKENS))
    torch.library.opcheck(look_up, (tables(2, 5, 4).float().requires_grad_(), TOKENS))


def test_without_content_there_is_a_shape():
    with torch.device("meta"):
        weight = torch.empty(5, 4, requires_grad=True)
        found = look_up(weight, torch.empty(2, 3, dtype=torch.int64))
        found.sum().backward()
    assert (found.shape, weight.grad.shape) == ((2, 3, 4), (5, 4))


@pytest.mark.parametrize("dims", [(0, 0), (0, None), (None, 0), (2, 1)])
def test_under_vmap_each_net_looks_up_in_its_own_table(dims):
    stack, tokens = tables(3, 5, 4).requires_grad_(), TOKENS.expand(3, 2, 3).clone()
    tokens[1] = tokens[1].flip(-1)
    given = [
        value[0] if dim is None else value.movedim(0, dim)
        for value, dim in zip((stack, tokens), dims, strict=True)
    ]
    found = torch.vmap(look_up, in_dims=dims)(*given)
    expected = torch.stack(
        [
            F.embedding(tokens[0 if dims[1] is None else run], stack[0 if dims[0] is None else run])
            for run in range(3)
        ]
    )
    assert torch.equal(found, expected)
    upstream = tables(3, 2, 3, 4, seed=2)
    ours, theirs = (torch.autograd.grad((each * upstream).sum(), stack)[0] for each in (found, expected))
    assert torch.allclose(ours, theirs, rtol=1e-14, atol=1e-15)


def test_compiled_it_is_the_same():
    weight = tables(5, 4).float().requires_grad_()

    def loss(weight):
        return (look_up(weight, TOKENS) * 2).sin().sum()

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    ours, theirs = (torch.autograd.grad(function(weight), weight)[0] for function in (compiled, loss))
    assert torch.equal(ours, theirs)


@pytest.mark.cuda
@pytest.mark.parametrize("count", [2000, 40_000])
def test_on_a_gpu_the_gradient_is_the_same_bits_every_time(count):
    generator = torch.Generator("cuda").manual_seed(0)
    weight = torch.randn(500, 64, device="cuda", generator=generator).requires_grad_()
    tokens = torch.randint(0, 500, (count,), device="cuda", generator=generator) // 7
    upstream = torch.randn(count, 64, device="cuda", generator=generator)

    def loss(weight):
        return (look_up(weight, tokens) * upstream).sum()

    compiled = torch.compile(loss, fullgraph=True)
    found = [torch.autograd.grad(f(weight), weight)[0] for f in (loss, loss, compiled, compiled, compiled)]
    assert all(torch.equal(each, found[0]) for each in found)
    expected = torch.zeros(500, 64, dtype=torch.float64, device="cuda")
    expected.index_put_((tokens,), upstream.double(), accumulate=True)
    assert torch.allclose(found[0].double(), expected, atol=1e-3)
