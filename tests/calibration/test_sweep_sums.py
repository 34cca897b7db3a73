"""A sweep over a stream, against plain loops in double precision and against the sweep over arrays."""

from __future__ import annotations

import math

import pytest
import torch

from softtargets.calibration import SweepSums, perplexity, temperature_sweep

TEMPERATURES = [0.5, 1.0, 1.7, 3.0]


@pytest.fixture(scope="module")
def tokens():
    generator = torch.Generator().manual_seed(5)
    logits = 4 * torch.randn(6, 9, 13, generator=generator)
    labels = torch.randint(13, (6, 9), generator=generator)
    labels[:, 7:] = -100
    logits[:, 7:] = math.nan  # whatever a model says of padding
    return logits, labels


def test_against_loops(tokens):
    logits, labels = tokens
    sums = SweepSums(TEMPERATURES, bins=10)
    for piece in range(0, 6, 2):
        sums.add(logits[piece : piece + 2], labels[piece : piece + 2])
    found = sums.result()
    for place, t in enumerate(TEMPERATURES):
        nll = entropy = confidence = right = 0.0
        gaps = [0.0] * 10
        for row, label in zip(
            logits[:, :7].reshape(-1, 13).tolist(), labels[:, :7].flatten().tolist(), strict=True
        ):
            total = math.fsum(math.exp(z / t) for z in row)
            p = [math.exp(z / t) / total for z in row]
            nll -= math.log(p[label])
            entropy -= math.fsum(q * math.log(q) for q in p)
            confidence += max(p)
            hit = p.index(max(p)) == label
            right += hit
            gaps[min(int(max(p) * 10), 9)] += max(p) - hit
        assert found.nll[place] == pytest.approx(nll / 42, rel=1e-5)
        assert found.ece[place] == pytest.approx(sum(map(abs, gaps)) / 42, rel=1e-5)
        assert found.values("entropy")[place] == pytest.approx(entropy / 42, rel=1e-4)
        assert found.values("confidence")[place] == pytest.approx(confidence / 42, rel=1e-5)
        assert found.values("accuracy")[place] == pytest.approx(right / 42)
    assert found.examples == 42


def test_the_same_as_the_sweep_over_arrays(tokens):
    logits, labels = tokens
    kept = labels != -100
    other = temperature_sweep(logits[kept], labels[kept], TEMPERATURES)
    sums = SweepSums(TEMPERATURES)
    sums.add(logits, labels)
    found = sums.result()
    assert found.nll == pytest.approx(other.nll, rel=1e-6)
    assert found.ece == pytest.approx(other.ece, rel=1e-6)
    assert found.best("nll") == other.best("nll")


def test_tokens_that_a_model_rules_out_leave_the_entropy_finite():
    sums = SweepSums([1.0])
    sums.add(torch.tensor([[0.0, 0.0, -math.inf]]), torch.tensor([1]))
    found = sums.result()
    assert found.nll[0] == pytest.approx(math.log(2))
    assert found.values("entropy")[0] == pytest.approx(math.log(2))
    sums.add(torch.tensor([[0.0, 0.0, -math.inf]]), torch.tensor([2]))
    assert sums.result().nll[0] == math.inf


def test_refusals():
    with pytest.raises(ValueError, match="positive numbers"):
        SweepSums([1.0, 0.0])
    sums = SweepSums([1.0])
    with pytest.raises(ValueError, match="nothing to measure"):
        sums.result()
    with pytest.raises(ValueError, match=r"not \(2, 3\) and \(3,\)"):
        sums.add(torch.zeros(2, 3), torch.zeros(3, dtype=torch.int64))
    sums.add(torch.zeros(2, 3), torch.full((2,), -100))
    with pytest.raises(ValueError, match="other than -100"):
        sums.result()


@pytest.mark.cuda
def test_a_gpu_is_never_waited_for(tokens):
    logits, labels = (one.cuda() for one in tokens)
    here = SweepSums(TEMPERATURES)
    here.add(*tokens)
    there = SweepSums(TEMPERATURES)
    there.add(logits, labels)
    torch.cuda.set_sync_debug_mode("error")
    try:
        there.add(logits, labels)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    found, other = here.result(), there.result()
    assert other.examples == 2 * found.examples
    assert other.nll == pytest.approx(found.nll, rel=1e-5)
    assert other.ece == pytest.approx(found.ece, rel=1e-5)


def test_perplexity():
    assert perplexity(math.log(7)) == pytest.approx(7)
