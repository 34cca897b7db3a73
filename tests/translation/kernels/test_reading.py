"""What kernels read of sources without padding, against what the model reads of padded ones."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch

pytest.importorskip("triton")

from softtargets.translation.beam import Beams
from softtargets.translation.kernel_reading import KernelReading, room, rounded
from softtargets.translation.kernel_step import Weights
from softtargets.translation.sources import Packed
from softtargets.translation.symbols import BOS, EOS
from tests import compiling
from tests.translation.test_decoding import VOCABULARY, make

interpreted = pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") != "1", reason="runs in Triton's interpreter, so without a GPU"
)


@interpreted
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_keys_and_values_are_those_of_the_model(norm):
    """Sentences of one token, of some, and of more than one program and one turn of it take; twice in one room."""
    net = make(norm=norm, dtype=torch.float32, longest=40, width=24, heads=3).eval()
    cache = room(net, torch.float32, 3, 40, 2, 4)
    beams = Beams([4] * 3, 2, BOS, EOS)
    reading = KernelReading(net, Weights(net, torch.float32), cache, beams)
    generator = np.random.default_rng(0)
    for lengths in ((1, 37, 12), (40, 5, 17)):
        sources = Packed.of([[*generator.integers(4, VOCABULARY, each - 1), EOS] for each in lengths])
        positions = reading.put(sources, np.array([4, 2, 3]))
        assert positions == rounded(sum(lengths)) >= sum(lengths)
        beams.tokens.fill_(7)
        with torch.no_grad():
            reading.read(positions)
            expected = net.start(net.encode(sources.padded(40)), 2, 4)
        assert beams.limits.flatten().tolist() == [4, 2, 3]
        assert not beams.tokens.any()
        assert torch.equal(cache.seen, expected.seen)
        seen = cache.seen[:, 0, 0]
        for ours, theirs in (
            (cache.source_keys, expected.source_keys),
            (cache.source_values, expected.source_values),
        ):
            for one, other in zip(ours, theirs, strict=True):
                pairs = (each.transpose(1, 2)[seen] for each in (one, other))
                torch.testing.assert_close(*pairs, rtol=1e-4, atol=1e-5)


def test_few_numbers_are_rounded_to_and_not_far():
    found = {rounded(count) for count in range(1, 2**16)}
    assert len(found) < 80
    assert all(count <= rounded(count) <= max(count + 63, count * 9 // 8) for count in range(1, 2**16, 7))


@pytest.mark.parametrize("size", [64, 128])
@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
def test_they_compile_for_a_gpu(size, dtype):
    module = "softtargets.translation.kernels.reading"
    compiling.check(
        module,
        "source_attention_kernel",
        types={"starts": "*i32", "lengths": "*i32", "scale": "fp32"},
        otherwise=f"*{dtype}",
        constants={"HEADS": 4, "SIZE": size, "ROWS": 16, "COLUMNS": size, "BLOCK": 32, "PRECISION": "ieee"},
        warps=(4 if dtype == "fp32" else 1) * (size // 64),
    )
    compiling.check(
        module,
        "remember_kernel",
        types={"slots": "*i32", "length": "i32"},
        otherwise=f"*{dtype}",
        constants={"HEADS": 4, "SIZE": size, "BLOCK": 4 * size},
        warps=size // 64,
    )
    compiling.check(
        module,
        "embed_sources_kernel",
        types={"tokens": "*i32", "slots": "*i32", "low": f"*{dtype}", "length": "i32", "factor": "fp32"},
        otherwise="*fp32",
        constants={"WIDTH": 4 * size, "BLOCK": 4 * size},
        warps=size // 64,
    )
