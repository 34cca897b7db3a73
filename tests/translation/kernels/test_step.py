"""The parts of a step against the model's own, and whole searches against searches without kernels."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional

pytest.importorskip("triton")

from softtargets.models import Transformer
from softtargets.translation import Searcher, decode, kernel_step
from softtargets.translation.beam import Beams
from softtargets.translation.kernel_step import KernelStep, Weights, compute_dtype, fits
from softtargets.translation.symbols import BOS, EOS
from tests import compiling
from tests.translation.test_decoding import make, same, texts

interpreted = pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") != "1", reason="runs in Triton's interpreter, so without a GPU"
)


@pytest.fixture
def by_kernels(monkeypatch):
    """On a CPU too, in Triton's interpreter."""
    monkeypatch.setattr("softtargets.translation.decoding._has_kernels", fits)


@interpreted
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize(
    ("beam", "nbest", "temperature", "sizes"),
    [
        (1, 1, 1.0, {}),
        (3, 2, 0.7, {"width": 24, "heads": 3}),  # neither heads nor rows are powers of 2
        (4, 4, 1.0, {"width": 40, "heads": 1, "inner": 8, "decoder_layers": 1}),
    ],
)
def test_a_search_finds_what_one_without_kernels_finds(by_kernels, norm, beam, nbest, temperature, sizes):
    sources = texts(3, seed=4, longest=5)
    exact = decode(make(norm=norm, **sizes), sources, beam, temperature=temperature, nbest=nbest)
    net = make(norm=norm, dtype=torch.float32, **sizes)
    found = decode(net, sources, beam, temperature=temperature, nbest=nbest)
    for a, b in zip(exact, found, strict=True):
        same(a, b, rel=1e-4)


@interpreted
def test_more_positions_than_are_looked_at_at_a_time(by_kernels, monkeypatch):
    monkeypatch.setattr("softtargets.translation.kernel_step._POSITIONS", 4)
    monkeypatch.setattr("softtargets.translation.kernel_step._SOURCE_KEYS", 16)
    sources = texts(2, seed=5, longest=24)
    for a, b in zip(decode(make(), sources, 3), decode(make(dtype=torch.float32), sources, 3), strict=True):
        same(a, b, rel=1e-4)


@interpreted
def test_states_and_numbers_of_every_step(by_kernels):
    """Not the choice alone; in low precision as near as that is. (The interpreter knows no products in bf16.)"""
    for dtype, near in ((torch.float32, 1e-4), (torch.float16, 0.02)):
        net = make(dtype=torch.float32).eval()
        source = torch.tensor([[5, 6, 7, EOS], [8, EOS, 0, 0]])
        memory = net.encode(source)
        with torch.no_grad(), torch.autocast("cpu", torch.float16, enabled=dtype == torch.float16):
            assert compute_dtype(net) == dtype
            cache, plain = (net.start(net.encode(source), 3, 6) for _ in range(2))
            beams = Beams([6, 6], 3, BOS, EOS)
            step = KernelStep(net, Weights(net, dtype), cache, beams, 1.0)
            for _ in range(5):
                states, _ = net.advance(beams.last, plain)
                expected = net.head(states)
                live = (beams.log_probs > -torch.inf).flatten()
                step()
                logits = step._logits
                assert torch.allclose(logits[live], expected[live].float(), atol=near, rtol=near)
                plain.reorder(beams.parents)
        assert memory.states.dtype == torch.float32


@interpreted
def test_weights_that_were_trained_on_are_seen(by_kernels):
    nets = [make(seed, torch.float32, decoder_layers=1) for seed in range(3)]
    net, sources = make(0, torch.float32, decoder_layers=1), [[5, 6]]
    with torch.autocast("cpu", torch.float16):
        expected = [decode(each, sources, 2, max_length=3) for each in nets]
    search = Searcher(net, 2)

    def found():
        # Each time anew: torch keeps what it has made of weights until the end of the context.
        with torch.autocast("cpu", torch.float16):
            return search(sources, 3)

    assert found() == expected[0] != expected[1]
    net.load_state_dict(nets[1].state_dict())
    assert found() == expected[1]
    net.load_state_dict(nets[2].state_dict(), assign=True)  # weights that are elsewhere
    assert found() == expected[2]
    again = search(sources, 3)  # in another precision
    assert again == decode(nets[2], sources, 2, max_length=3) != expected[2]


class Doubled(torch.nn.Linear):
    """As adapters do: a layer in the place of another, with more than its weights."""

    def forward(self, values):
        return 2 * super().forward(values)


class Other(Transformer):
    """What somebody else derives."""


def test_models_that_others_have_changed_are_asked_themselves():
    net = make(dtype=torch.float32)
    assert fits(net, torch.float32)
    handle = net.decoder[0].cross.merge.register_forward_hook(lambda layer, given, found: 2 * found)
    assert not fits(net, torch.float32)
    handle.remove()
    assert fits(net, torch.float32)
    net.decoder[0].cross.merge = Doubled(16, 16)
    assert not fits(net, torch.float32)
    torch.nn.utils.parametrizations.weight_norm((other := make(dtype=torch.float32)).decoder[0].own.merge)
    assert not fits(other, torch.float32)
    assert not fits(Other(23, 16, 2, 24, 1, 1), torch.float32)


@interpreted
def test_a_hook_that_comes_between_two_searches_is_heard(by_kernels):
    net, sources = make(dtype=torch.float32, decoder_layers=1), [[5, 6]]
    search = Searcher(net, 2)
    before = search(sources, 3)
    net.decoder[0].cross.merge.register_forward_hook(lambda layer, given, found: 2 * found)
    assert search(sources, 3) == decode(net, sources, 2, max_length=3) != before


def test_double_precision_is_not_for_kernels():
    assert not fits(make(), torch.float64)
    assert not fits(make(), torch.bfloat16)
    assert fits(make(dtype=torch.float32), torch.bfloat16)
    assert compute_dtype(make(dtype=torch.bfloat16)) == torch.bfloat16


@pytest.mark.parametrize("size", [64, 128])
@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
def test_attention_compiles_for_a_gpu(size, dtype):
    constants = {"BEAMS": 5, "HEADS": 4, "SIZE": size, "COLUMNS": size, "BLOCK": 32}
    compiling.check(
        "softtargets.translation.kernels.step",
        "own_attention_kernel",
        types={"origins": "*u8", "place": "*i64", "scale": "fp32"},
        otherwise=f"*{dtype}",
        constants=constants | {"CAPACITY": 48},
        warps=size // 64,
    )
    compiling.check(
        "softtargets.translation.kernels.step",
        "cross_attention_kernel",
        types={"seen": "*u8", "length": "i32", "scale": "fp32"},
        otherwise=f"*{dtype}",
        constants=constants | {"ROWS": 16, "WHOLE": 64, "PRECISION": "ieee"},
        warps=(4 if dtype == "fp32" else 1) * (size // 64),
    )


@pytest.mark.parametrize("asks", [True, False])
@pytest.mark.parametrize("width", [128, 256])
def test_merging_compiles_for_a_gpu(width, asks):
    compiling.check(
        "softtargets.translation.kernels.step",
        "merge_kernel",
        types={"states": "*fp32", "weight": "*fp32", "bias": "*fp32", "rows": "i32", "eps": "fp32"},
        otherwise="*bf16",
        constants={"WIDTH": width, "BLOCK": width, "ROWS": 64, "DEPTH": 64, "POST": True, "ASKS": asks},
        warps=8,
    )


@interpreted
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_merging_is_a_product_a_sum_a_norm_and_a_product(norm, monkeypatch):
    """With a width that is no power of 2, more rows than one program has, and more than is multiplied at a time."""
    net = make(dtype=torch.float32, width=72, norm=norm)
    source = torch.tensor([[5, EOS]]).expand(35, -1)
    found = {}
    for merges in (True, False):
        monkeypatch.setattr("softtargets.translation.kernel_step._MERGES", merges)
        with torch.no_grad(), torch.autocast("cpu", torch.float16):
            cache = net.start(net.encode(source), 2, 2)
            weights = Weights(net, torch.float16)
            step = KernelStep(net, weights, cache, Beams([2] * 35, 2, BOS, EOS), 1.0)
            torch.manual_seed(0)
            step._found.copy_(torch.randn(70, 72))
            step._states.copy_(torch.randn(70, 72))
            _, merge, ask, merge_source, *_ = weights.layers[0]
            asked = step._merge(merge, net.decoder[0].around[0].norm, ask)
            between = step._states.clone()
            low = step._merge(merge_source, net.decoder[0].around[1].norm)
            found[merges] = between, asked.float(), step._states, low.float()
    for one, other in zip(found[True], found[False], strict=True):
        torch.testing.assert_close(one, other, rtol=5e-3, atol=5e-3)


def test_the_rest_compiles_for_a_gpu():
    common = {"WIDTH": 512, "BLOCK": 512}
    compiling.check(
        "softtargets.translation.kernels.step",
        "sum_norm_kernel",
        types={"added": "*bf16", "low": "*bf16", "rows": "i32", "eps": "fp32"},
        otherwise="*fp32",
        constants=common | {"ROWS": 4, "ADDS": True, "POST": True},
        warps=2,
    )
    compiling.check(
        "softtargets.translation.kernels.step",
        "embed_kernel",
        types={"tokens": "*i64", "place": "*i64", "low": "*bf16", "factor": "fp32"},
        otherwise="*fp32",
        constants=common,
        warps=2,
    )


@pytest.mark.cuda
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("beam", [1, 5])
def test_on_a_gpu_in_single_precision(norm, beam):
    net, sources = make(norm=norm), texts(90, seed=6, longest=12)
    exact = decode(net, sources, beam, nbest=min(beam, 2))
    search = Searcher(make(norm=norm, dtype=torch.float32).cuda(), beam, nbest=min(beam, 2))
    for room in (None, 400, None):  # shapes come back
        for a, b in zip(exact, search(sources, tokens_at_a_time=room), strict=True):
            same(a, b, rel=1e-3)


@pytest.mark.cuda
@pytest.mark.parametrize("vocabulary", [5000, 20_000])
def test_on_a_gpu_scores_in_bf16_are_the_models(vocabulary):
    torch.manual_seed(0)
    net = Transformer(vocabulary, 256, 4, 512, 2, 2).cuda().eval()
    generator = torch.Generator().manual_seed(0)
    sources = [
        torch.randint(4, vocabulary, (length,), generator=generator).tolist() for length in range(2, 40)
    ]
    with torch.autocast("cuda", torch.bfloat16):
        found = decode(net, sources, 5, max_length=20)
        with torch.no_grad():
            for source, (one, *_) in zip(sources, found, strict=True):
                prefix = torch.tensor([[BOS, *one.tokens[:-1]]], device="cuda")
                logits = net(torch.tensor([[*source, EOS]], device="cuda"), prefix)[0]
                expected = -functional.cross_entropy(
                    logits, torch.tensor(one.tokens, device="cuda"), reduction="sum"
                )
                assert one.log_prob == pytest.approx(expected.item(), abs=0.05 * len(one.tokens))


@pytest.mark.parametrize(
    ("bytes_there", "merges"), [(227 * 1024, True), (163 * 1024, True), (99 * 1024, False)]
)
def test_gpus_with_little_shared_memory_do_without_merging(bytes_there, merges, monkeypatch):
    """An H200 and an A100 have room, a GPU for games has not."""
    properties = SimpleNamespace(shared_memory_per_block_optin=bytes_there)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: properties)
    assert kernel_step.has_room(torch.device("cuda"), kernel_step._MERGED_SHARED) == merges
    assert kernel_step.has_room(torch.device("cpu"), kernel_step._MERGED_SHARED)
