from __future__ import annotations

from copy import deepcopy
from functools import partial

import pytest
import torch
from torch.func import functional_call, stack_module_state

pytest.importorskip("triton")

from softtargets.models import Transformer, attention, short_attention
from softtargets.models.kernels.attending import blocks
from softtargets.models.short_attention import cross_attention, self_attention

from .running import DTYPES, interpreted, numbers


def masked(sentences, keys, seed=0, device="cpu"):
    """Sentences of several lengths, the first with no padding and the last with nothing but one token."""
    lengths = torch.randint(1, keys + 1, (sentences,), generator=torch.Generator().manual_seed(seed))
    lengths[0], lengths[-1] = keys, 1
    return (torch.arange(keys) < lengths[:, None])[:, None, None].to(device)


def exactly(queries, keys, values, seen, heads, causal):
    """Written out, in double precision."""
    queries, keys, values = (
        each.double().unflatten(-1, (heads, -1)).transpose(1, 2) for each in (queries, keys, values)
    )
    scores = queries @ keys.transpose(-1, -2) / queries.shape[-1] ** 0.5
    if seen is not None:
        scores = scores.masked_fill(~seen, -torch.inf)
    if causal:
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(later, -torch.inf)
    return (scores.softmax(-1) @ values).transpose(1, 2).flatten(2)


def exact_self(projected, seen, heads, causal):
    return exactly(*projected.chunk(3, -1), seen, heads, causal)


def exact_cross(queries, remembered, seen, heads):
    return exactly(queries, *remembered.chunk(2, -1), seen, heads, False)


def gradients(operator, tensors, rest, upstream):
    """What it finds and the gradients with respect to the tensors."""
    leaves = [each.detach().requires_grad_() for each in tensors]
    found = operator(*leaves, *rest)
    return [found, *torch.autograd.grad(found, leaves, upstream.to(found.dtype))]


def check(operator, exact, tensors, *rest):
    """Within the rounding of inner results to the precision of the numbers, several times over."""
    dtype = tensors[0].dtype
    width = tensors[0].shape[-1] // (3 if len(tensors) == 1 else 1)
    upstream = numbers(*tensors[0].shape[:2], width, dtype=dtype, seed=9, device=tensors[0].device)
    found = gradients(operator, tensors, rest, upstream)
    wanted = gradients(exact, tensors, rest, upstream)
    for each, other in zip(found, wanted, strict=True):
        assert each.dtype == dtype
        assert each.shape == other.shape
        assert each.is_contiguous()
        allowed = (64 if dtype == torch.float32 else 4) * torch.finfo(dtype).eps
        assert (each.double() - other.double()).abs().max() <= allowed * (1 + other.double().abs().max())


def check_self(sentences, length, heads, size, dtype, padded, causal, device="cpu"):
    projected = numbers(sentences, length, 3 * heads * size, dtype=dtype, device=device)
    seen = masked(sentences, length, device=device) if padded else None
    check(self_attention, exact_self, [projected], seen, heads, causal)


def check_cross(sentences, length, others, heads, size, dtype, padded=True, device="cpu"):
    queries = numbers(sentences, length, heads * size, dtype=dtype, device=device)
    remembered = numbers(sentences, others, 2 * heads * size, dtype=dtype, seed=1, device=device)
    seen = masked(sentences, others, device=device) if padded else None
    check(cross_attention, exact_cross, [queries, remembered], seen, heads)


@interpreted
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [16, 64, 128])
@pytest.mark.parametrize("length", [1, 16, 17, 48, 64, 100, 128])
def test_over_its_own_sentence_against_double_precision(length, size, dtype):
    check_self(2, length, 1, size, dtype, padded=False, causal=True)
    check_self(3, length, 2, size, dtype, padded=True, causal=False)


@interpreted
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("length", "others", "size"),
    [(1, 17, 16), (17, 1, 64), (48, 20, 64), (20, 70, 64), (128, 100, 32), (100, 16, 128), (300, 128, 16)],
)
def test_over_another_sentence_against_double_precision(length, others, size, dtype):
    check_cross(3, length, others, 2, size, dtype)
    check_cross(1, length, others, 1, size, dtype, padded=False)


@interpreted
def test_in_both_ways_at_once():
    projected, seen = numbers(2, 9, 3 * 32), masked(2, 9)
    check(self_attention, exact_self, [projected], seen, 2, True)


def test_blocks_hold_all_keys():
    for keys in range(1, 129):
        for queries in (1, 16, 40, 128, 500):
            for backwards in (False, True):
                found = blocks(queries, keys, 64, 2, backwards)
                assert found.keys >= max(keys, 16)
                assert 16 <= found.queries <= 64
                assert found.warps in (1, 2, 4, 8)


@interpreted
def test_a_sentence_gets_the_bits_it_would_get_alone():
    projected, seen = numbers(4, 20, 3 * 32), masked(4, 20)
    run = partial(gradients, self_attention)
    together = run([projected], (seen, 2, False), upstream := numbers(4, 20, 32, seed=1))
    for row in (0, 2, 3):
        own = slice(row, row + 1)
        alone = run([projected[own]], (seen[own], 2, False), upstream[own])
        assert all(torch.equal(a[0], b[row]) for a, b in zip(alone, together, strict=True))


@interpreted
def test_what_lies_otherwise_in_memory_is_read_in_order():
    projected, seen, upstream = numbers(3, 10, 3 * 32), masked(3, 10), numbers(3, 10, 32, seed=1)
    wanted = gradients(self_attention, [projected], (seen, 2, False), upstream)
    for turned in (
        lambda each: each.transpose(0, 1).contiguous().transpose(0, 1),
        lambda each: each.transpose(1, 2).contiguous().transpose(1, 2),
    ):
        apart = seen.expand(3, 1, 2, 10).transpose(2, 3).contiguous()[..., 0].unsqueeze(2)
        assert torch.equal(apart, seen)
        assert apart.stride(-1) != 1
        found = gradients(self_attention, [turned(projected)], (apart, 2, False), turned(upstream))
        assert all(torch.equal(a, b) for a, b in zip(found, wanted, strict=True))
    broad = gradients(self_attention, [projected], (seen, 2, False), upstream[:1, :1].expand(3, 10, 32))
    dense = gradients(self_attention, [projected], (seen, 2, False), upstream[:1, :1].repeat(3, 10, 1))
    assert all(torch.equal(a, b) for a, b in zip(broad, dense, strict=True))


# --- as operators ---


@interpreted
@pytest.mark.parametrize("padded", [True, False])
def test_the_operators_keep_what_they_promise(padded):
    seen = masked(2, 6) if padded else None
    projected = numbers(2, 6, 3 * 32).requires_grad_()
    torch.library.opcheck(self_attention, (projected, seen, 2, not padded))
    queries, remembered = numbers(2, 5, 32).requires_grad_(), numbers(2, 6, 64).requires_grad_()
    torch.library.opcheck(cross_attention, (queries, remembered, seen, 2))
    pulled = numbers(2, 5, 32)
    torch.library.opcheck(
        short_attention.cross_attention_gradient, (pulled, queries.detach(), remembered.detach(), seen, 2)
    )


def test_without_content_there_are_shapes():
    with torch.device("meta"):
        projected = torch.empty(2, 7, 96, requires_grad=True)
        found = self_attention(projected, None, 4, True)
        queries, remembered = (
            torch.empty(2, 5, 32, requires_grad=True),
            torch.empty(2, 7, 64).requires_grad_(),
        )
        crossed = cross_attention(queries, remembered, torch.empty(2, 1, 1, 7, dtype=torch.bool), 4)
        (found.sum() + crossed.sum()).backward()
    assert (found.shape, crossed.shape) == ((2, 7, 32), (2, 5, 32))
    assert [each.grad.shape for each in (projected, queries, remembered)] == [
        (2, 7, 96),
        (2, 5, 32),
        (2, 7, 64),
    ]


@interpreted
@pytest.mark.parametrize("dims", [(0, 0), (1, 0), (0, None), (2, None)])
def test_under_vmap_each_net_attends_as_it_would_alone(dims):
    projected, seen = numbers(3, 2, 5, 96), torch.stack([masked(2, 5, seed=seed) for seed in range(3)])
    upstream = numbers(3, 2, 5, 32, seed=1)
    given = [projected.movedim(0, dims[0]), seen[0] if dims[1] is None else seen]

    def pulled(own, looked, back):
        return short_attention.self_attention_gradient(back, own, looked, 2, False)

    leaf = given[0].clone().requires_grad_()
    found = torch.vmap(lambda own, looked: self_attention(own, looked, 2, False), dims)(leaf, given[1])
    (outside,) = torch.autograd.grad(found, leaf, upstream)
    inside = torch.vmap(pulled, (*dims, 0))(*given, upstream)
    for run in range(3):
        own = gradients(
            self_attention, [projected[run]], (seen[run if dims[1] == 0 else 0], 2, False), upstream[run]
        )
        assert torch.equal(found[run], own[0])
        assert torch.equal(outside.movedim(dims[0], 0)[run], own[1])
        assert torch.equal(inside[run], own[1])


# --- in a Transformer ---

SIZES = {"width": 32, "heads": 2, "inner": 32, "encoder_layers": 1, "decoder_layers": 2, "dropout": 0.0}
# What it attends to with: the operators that are called, each as often as there are layers of its kind.
CALLS = ["self", "self", "cross", "self", "cross"]


@pytest.fixture
def on_cpu(monkeypatch):
    """Kernels are used on a CPU, as on a GPU not in double precision; the calls are noted."""
    calls = []

    def noted(name, operator):
        def call(*given):
            calls.append(name)
            return operator(*given)

        return call

    monkeypatch.setattr(attention, "takes", lambda queries, keys, size: keys.dtype == torch.float32)
    monkeypatch.setattr(attention, "self_attention", noted("self", self_attention))
    monkeypatch.setattr(attention, "cross_attention", noted("cross", cross_attention))
    return calls


def made(seed=0, **options):
    torch.manual_seed(seed)
    return Transformer(20, **SIZES | options).train()


def tokens(device="cpu", sentences=3, source=7, target=5):
    generator = torch.Generator().manual_seed(0)
    read = torch.randint(3, 20, (sentences, source), generator=generator)
    read[1, source // 2 :] = 0
    return read.to(device), torch.randint(3, 20, (sentences, target), generator=generator).to(device)


def stepped(net, *given):
    said = net(*given)
    return [said, *torch.autograd.grad(said.float().square().sum(), list(net.parameters()))]


def near(found, wanted, allowed):
    for each, other in zip(found, wanted, strict=True):
        assert (each.double() - other.double()).norm() <= allowed * (1e-3 + other.double().norm())


@interpreted
def test_a_net_that_attends_by_kernels_computes_what_it_did(on_cpu):
    net = made()
    found = stepped(net, *tokens())
    assert on_cpu == CALLS
    wanted = stepped(deepcopy(net).double(), *tokens())
    assert on_cpu == CALLS
    near(found, wanted, 1e-4)


@interpreted
def test_not_in_evaluation_nor_with_dropout_inside(on_cpu):
    made().eval()(*tokens())
    made(attention_dropout=0.1)(*tokens())
    assert on_cpu == []


@interpreted
def test_compiled_for_any_shape_it_is_the_same(on_cpu):
    net = made(decoder_layers=1)
    torch.compiler.reset()
    compiled = torch.compile(net, fullgraph=True, backend="aot_eager", dynamic=True)
    for sizes in ({}, {"sentences": 4, "source": 9, "target": 20}):
        given = tokens(**sizes)
        wanted = stepped(net, *given)
        said = compiled(*given)
        found = [said, *torch.autograd.grad(said.square().sum(), list(net.parameters()))]
        near(found, wanted, 1e-5)


@interpreted
def test_in_a_stack_each_net_does_what_it_does_alone(on_cpu):
    nets, given = [made(seed) for seed in range(2)], tokens()
    parameters, buffers = stack_module_state(nets)
    found = torch.vmap(lambda p, b: functional_call(nets[0], (p, b), given))(parameters, buffers)
    assert on_cpu == CALLS
    pulled = torch.autograd.grad(found.square().sum(), list(parameters.values()))
    for run, net in enumerate(nets):
        near([found[run], *(each[run] for each in pulled)], stepped(net, *given), 1e-4)


def test_on_a_cpu_torch_attends(monkeypatch):
    for name in ("self_attention", "cross_attention"):
        monkeypatch.setattr(attention, name, None)
    stepped(made(), *tokens())


@pytest.mark.parametrize(
    ("room", "dtype", "size", "most"),
    [
        (227, torch.bfloat16, 64, 128),
        (227, torch.bfloat16, 128, 128),
        (99, torch.bfloat16, 128, 64),
        (99, torch.bfloat16, 64, 128),
        (227, torch.float32, 64, 64),
        (227, torch.float32, 128, 32),
        (99, torch.float32, 16, 128),
        (227, torch.bfloat16, 16, 128),
        (227, torch.bfloat16, 48, 0),
        (227, torch.bfloat16, 8, 0),
        (227, torch.float64, 64, 0),
    ],
)
def test_what_fits_is_taken(monkeypatch, room, dtype, size, most):
    class OnGPU:
        is_cuda = True

        def __init__(self, length):
            self.shape, self.dtype = (2, length, 8 * size), dtype

        def element_size(self):
            return dtype.itemsize

    monkeypatch.setattr(short_attention, "_room", lambda: room * 1024)
    taken = [length for length in range(1, 400) if short_attention.takes(OnGPU(500), OnGPU(length), size)]
    assert taken == list(range(1, most + 1))


# --- on a GPU ---


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("size", [16, 64, 128])
@pytest.mark.parametrize("length", [1, 10, 17, 48, 64, 100, 128])
def test_on_a_gpu_against_double_precision(length, size, dtype):
    if dtype == torch.float32 and size * length > 2**12:
        pytest.skip("too long for single precision")
    check_self(40, length, 4, size, dtype, padded=True, causal=False, device="cuda")
    check_self(40, length, 4, size, dtype, padded=False, causal=True, device="cuda")
    for others in (1, 24, 64, 128):
        check_cross(40, others, length, 4, size, dtype, device="cuda")


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
@pytest.mark.parametrize(("length", "others"), [(12, 16), (32, 28), (48, 60), (100, 64), (100, 128)])
def test_on_a_gpu_the_same_bits_every_time_and_in_any_company(length, others, dtype):
    if dtype == torch.float32 and others > 64:
        pytest.skip("too long for single precision")
    queries = numbers(200, length, 512, dtype=dtype, device="cuda")
    remembered = numbers(200, others, 1024, dtype=dtype, seed=1, device="cuda")
    seen, upstream = (
        masked(200, others, device="cuda"),
        numbers(200, length, 512, dtype=dtype, device="cuda", seed=2),
    )

    def found(begin, end):
        own = [each[begin:end] for each in (queries, remembered, seen, upstream)]
        return gradients(cross_attention, own[:2], (own[2], 8), own[3])

    first = found(0, 200)
    for _ in range(5):
        assert all(torch.equal(a, b) for a, b in zip(found(0, 200), first, strict=True))
    assert all(torch.equal(a, b[7:9]) for a, b in zip(found(7, 9), first, strict=True))


@pytest.mark.cuda
def test_on_a_gpu_in_a_graph():
    projected, seen = (
        numbers(60, 20, 3 * 256, dtype=torch.bfloat16, device="cuda"),
        masked(60, 20, device="cuda"),
    )
    upstream = numbers(60, 20, 256, dtype=torch.bfloat16, device="cuda", seed=1)
    wanted = gradients(self_attention, [projected], (seen, 4, False), upstream)
    leaf = torch.zeros_like(projected).requires_grad_()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        said = self_attention(leaf, seen, 4, False)
        (pulled,) = torch.autograd.grad(said, leaf, upstream)
    leaf.detach().copy_(projected)
    graph.replay()
    assert torch.equal(said, wanted[0])
    assert torch.equal(pulled, wanted[1])


@pytest.mark.cuda
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("heads", [2, 4])
def test_on_a_gpu_a_net_is_as_near_to_the_truth_as_by_torch(monkeypatch, heads, compiled):
    """Lengths vary, as in training; the same bits each time."""
    net = made(width=256, heads=heads, inner=128).cuda()
    torch.compiler.reset()
    run = torch.compile(net, dynamic=True) if compiled else net

    def trained(given):
        with torch.autocast("cuda", torch.bfloat16):
            said = run(*given)
        return [said, *torch.autograd.grad(said.double().square().sum(), list(net.parameters()))]

    for sizes in ((40, 12, 16), (30, 33, 28), (9, 100, 90)):
        given = tokens("cuda", *sizes)
        exact = stepped(deepcopy(net).double(), *given)
        ours, again = trained(given), trained(given)
        assert all(torch.equal(a, b) for a, b in zip(ours, again, strict=True))
        with monkeypatch.context() as patched:
            patched.setattr(attention, "takes", lambda *_: False)
            torch.compiler.reset()
            theirs = trained(given)
        torch.compiler.reset()
        one, other = (
            torch.cat([(a.double() - b.double()).flatten() for a, b in zip(found, exact, strict=True)]).norm()
            for found in (ours, theirs)
        )
        assert one <= 1.5 * other
