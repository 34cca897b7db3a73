"""The output layer with its choice against log-softmax in double precision."""

from __future__ import annotations

import os

import pytest
import torch

pytest.importorskip("triton")

from softtargets.models import Transformer
from softtargets.translation.beam import Beams
from softtargets.translation.kernel_step import KernelStep, Weights
from softtargets.translation.symbols import BOS, EOS
from tests import compiling

interpreted = pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") != "1", reason="runs in Triton's interpreter, so without a GPU"
)


def chosen(states, weight, bias, beam, temperature=1.0, dtype=torch.float32):
    """What the kernels choose, and the logits that they wrote."""
    vocabulary, width = weight.shape
    net = Transformer(vocabulary, width, 1, 8, 1, 1, share="none").to(states.device)
    with torch.no_grad():
        net.head.weight.copy_(weight)
        net.head.bias.copy_(bias)
    cache = net.start(net.encode(torch.full((len(states) // beam, 2), 4, device=states.device)), beam, 2)
    beams = Beams([2] * (len(states) // beam), beam, BOS, EOS, device=states.device)
    step = KernelStep(net, Weights(net, dtype), cache, beams, temperature)
    step._low.copy_(states)
    return *step._likeliest(), step._logits


def check(rows, vocabulary, width, beam, temperature, device="cpu", dtype=torch.float32, near=1e-5):
    generator = torch.Generator().manual_seed(0)
    states, weight, bias = (
        torch.randn(*shape, generator=generator).to(device, dtype).float()
        for shape in ((rows, width), (vocabulary, width), (vocabulary,))
    )
    values, tokens, logits = chosen(states, weight, bias, beam, temperature, dtype)
    exact = (states.double() @ weight.double().T + bias.double()) / temperature
    assert torch.allclose(logits.double(), exact, rtol=near, atol=10 * near)
    exact = exact.log_softmax(-1)
    assert values.shape == (rows, min(beam + 1, vocabulary))
    assert torch.allclose(values.double(), exact.gather(1, tokens), rtol=near, atol=10 * near)
    best = exact.topk(values.shape[1]).values
    assert torch.allclose(values.double(), best, rtol=near, atol=10 * near)
    for row, found in zip(values.tolist(), tokens.tolist(), strict=True):
        assert len(set(found)) == len(found)
        pairs = [(-value, token) for value, token in zip(row, found, strict=True)]
        assert pairs == sorted(pairs)


@interpreted
@pytest.mark.parametrize(
    ("rows", "vocabulary", "width", "beam", "temperature"),
    [
        (6, 300, 40, 3, 1.0),
        (5, 2000, 16, 5, 0.7),
        (4, 9, 16, 2, 1.0),
        (2, 5, 16, 2, 1.0),
        (3, 129, 16, 1, 2.0),
    ],
)
def test_against_double_precision(rows, vocabulary, width, beam, temperature):
    check(rows, vocabulary, width, beam, temperature)


@interpreted
def test_of_equal_tokens_the_lower_comes_first_and_impossible_ones_come_last():
    width, vocabulary = 16, 400
    states, weight = torch.ones(3, width), torch.zeros(vocabulary, width)
    bias = torch.zeros(vocabulary)
    bias[[7, 150, 390]] = 3.0
    values, tokens, _ = chosen(states, weight, bias, 3)
    assert tokens.tolist() == [[7, 150, 390, 0]] * 3
    bias = torch.full((vocabulary,), -torch.inf)  # whole chunks of them
    bias[200:202] = 0.0
    values, tokens, _ = chosen(states, weight, bias, 3)
    assert tokens[0, :2].tolist() == [200, 201]
    assert values[0].tolist() == pytest.approx([-0.6931472, -0.6931472, -torch.inf, -torch.inf])
    bias[300] = torch.nan
    assert chosen(states, weight, bias, 3)[0].isnan().any(1).all()


@pytest.mark.parametrize(("dtype", "rows", "depth"), [("bf16", 128, 64), ("fp32", 64, 32)])
def test_they_compile_for_a_gpu(dtype, rows, depth):
    common = {"VOCABULARY": 8000, "CHUNKS": 63, "CHUNK": 128}
    compiling.check(
        "softtargets.translation.kernels.head",
        "head_kernel",
        types={"states": f"*{dtype}", "templates": f"*{dtype}", "rows": "i32", "temperature": "fp32"},
        otherwise="*fp32",
        constants=common | {"WIDTH": 256, "ROWS": rows, "DEPTH": depth, "SCALED": False, "PRECISION": "ieee"},
        warps=8,
    )
    for count, searched, warps in ((6, 8, 1), (2, 2, 1), (11, 16, 4)):
        compiling.check(
            "softtargets.translation.kernels.head",
            "choose_kernel",
            types={"tokens": "*i64"},
            otherwise="*fp32",
            constants=common | {"BLOCK": 64, "COUNT": count, "SEARCHED": searched},
            warps=warps,
        )


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("vocabulary", [5, 1000, 32_000])
def test_on_a_gpu(dtype, vocabulary):
    check(250, vocabulary, 256, 5, 1.0, "cuda", dtype, near=1e-4)
    check(250, vocabulary, 72, 5, 1.7, "cuda", dtype, near=1e-4)
