from __future__ import annotations

import os

import pytest
import torch

pytest.importorskip("triton")

from softtargets.translation.ranking import best, likeliest, likeliest_by_kernel
from tests.compiling import in_a_process

interpreted = pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") != "1", reason="runs in Triton's interpreter, so without a GPU"
)


def check(logits, count, temperature=1.0):
    """Values up to rounding; tokens in the order of the values that were found, of equals the lower first."""
    values, tokens = likeliest_by_kernel(logits, count, temperature)
    exact = (logits.double() / temperature).log_softmax(-1)
    assert torch.allclose(values.double(), exact.gather(1, tokens), rtol=1e-5, atol=1e-6)
    assert torch.allclose(values.double(), best(exact, count)[0], rtol=1e-5, atol=1e-6)
    for row, found in zip(values.tolist(), tokens.tolist(), strict=True):
        assert len(set(found)) == count
        pairs = [(-value, token) for value, token in zip(row, found, strict=True)]
        assert pairs == sorted(pairs)


@interpreted
@pytest.mark.parametrize(
    ("rows", "vocabulary", "count", "temperature"), [(4, 9, 9, 1.0), (3, 300, 10, 1.0), (2, 1000, 4, 0.7)]
)
def test_against_double_precision(rows, vocabulary, count, temperature):
    check(5 * torch.randn(rows, vocabulary, generator=torch.Generator().manual_seed(0)), count, temperature)


@interpreted
def test_of_equal_numbers_the_lower_token_comes_first():
    logits = torch.zeros(2, 200)
    logits[1, [7, 150]] = 3.0
    _, tokens = likeliest_by_kernel(logits, 4, 1.0)
    assert tokens.tolist() == [[0, 1, 2, 3], [7, 150, 0, 1]]
    assert likeliest(logits, 4)[1].tolist() == tokens.tolist()


@interpreted
def test_what_cannot_be_comes_last_and_what_is_no_number_is_shown():
    logits = torch.full((2, 6), -torch.inf)
    logits[0, 4] = 1.0
    logits[1, 2] = torch.nan
    values, tokens = likeliest_by_kernel(logits, 3, 1.0)
    assert tokens[0].tolist() == [4, 0, 1]
    assert values[0].tolist() == [0.0, -torch.inf, -torch.inf]
    assert values[1].isnan().any()
    assert ((tokens >= 0) & (tokens < 6)).all()


PROGRAM = """
from softtargets.translation.kernels.top import top_kernel
from tests.compiling import compiled, refuse_detours, refuse_spills

for vocabulary, block, warps in ((8000, 8192, 8), (10_000, 16384, 16), (16_000, 16384, 16)):
    constants = dict(VOCABULARY=vocabulary, COUNT=6, BLOCK=block, CHUNK=128, SEARCHED=8)
    constants["SCALED"] = vocabulary == 8000
    types = dict(logits="*fp32", log_probs="*fp32", tokens="*i64", temperature="fp32")
    found = compiled(top_kernel, constants, types, warps=warps)
    refuse_detours(found, vocabulary)
    assert "ld.global.v4.b32" in found.asm["ptx"], "reads number by number"
    refuse_spills(found)
"""


def test_it_compiles_for_a_gpu():
    in_a_process(PROGRAM)


@pytest.mark.cuda
@pytest.mark.parametrize(("vocabulary", "count"), [(8000, 10), (32_000, 10), (9, 4)])
def test_on_a_gpu(vocabulary, count):
    logits = 3 * torch.randn(500, vocabulary, device="cuda")
    if vocabulary <= 16_384:
        check(logits, count)
        check(logits, count, temperature=1.7)
    if vocabulary > 16_384:  # not by the kernel
        assert torch.equal(likeliest(logits, count)[1], best(logits.log_softmax(-1), count)[1])
