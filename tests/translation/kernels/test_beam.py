"""A step of a search in one kernel against the same written out."""

from __future__ import annotations

import os

import pytest
import torch

pytest.importorskip("triton")

from softtargets.models import Cache
from softtargets.translation.beam import Beams
from softtargets.translation.kernel_step import go_on
from softtargets.translation.ranking import best
from softtargets.translation.symbols import BOS, EOS
from tests import compiling

interpreted = pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") != "1", reason="runs in Triton's interpreter, so without a GPU"
)
STATE = (
    "log_probs",
    "tokens",
    "last",
    "parents",
    "place",
    "kept_scores",
    "kept_log_probs",
    "kept_lengths",
    "kept_ends",
    "kept_tokens",
    "done",
    "wrong",
)


def cache_of(beams, capacity, device):
    line = torch.zeros(beams.batch, beams.beam, capacity, beams.beam, dtype=torch.bool, device=device)
    return Cache([], [], [], [], line, line, torch.zeros(1, dtype=torch.int64, device=device))


def written_out(beams, cache, added, tokens):
    """As a model's step and `Cache.reorder` treat the lines of descent."""
    itself = torch.eye(beams.beam, dtype=torch.bool, device=added.device)[:, None]
    cache.line.index_copy_(2, cache.place, itself.expand(beams.batch, -1, -1, -1))
    beams.go_on(added, tokens)
    cache.reorder(beams.parents)
    cache.place.add_(1)


def search(seed, device, batch, beam, nbest, vocabulary, limits, alpha, penalty, coarse):
    """Step by step, both; numbers in coarse steps make many of them equal."""
    generator = torch.Generator().manual_seed(seed)
    options = limits, beam, BOS, EOS, alpha, penalty, nbest, device
    one, other = Beams(*options), Beams(*options)
    capacity = max(limits) + 3
    lines = cache_of(one, capacity, device)
    origins = torch.zeros(batch, beam, capacity, dtype=torch.uint8, device=device)
    for step in range(max(limits)):
        logits = torch.randn(batch * beam, vocabulary, generator=generator)
        logits[:, EOS] += 1
        if coarse:
            logits = logits.round()
        if step == 1:
            logits[::2, 3:] = -torch.inf  # what cannot follow
        given = best(logits.log_softmax(-1).to(device), one.wanted(vocabulary))
        written_out(one, lines, *given)
        go_on(other, origins, *given)
        other.place.add_(1)
        for name in STATE:
            a, b = getattr(one, name), getattr(other, name)
            if name in ("kept_lengths", "kept_ends", "kept_tokens", "kept_log_probs"):
                there = one.kept_scores > -torch.inf  # the rest is nobody's
                a, b = a[there], b[there]
                if name == "kept_tokens":
                    places = torch.arange(a.shape[1], device=device) < one.kept_lengths[there][:, None]
                    a, b = a * places, b * places
            assert torch.equal(a, b), (step, name)
        past = slice(0, step + 1)
        shown = torch.nn.functional.one_hot(origins[:, :, past].long(), beam).bool()
        assert torch.equal(lines.line[:, :, past], shown)
    assert one.hypotheses() == other.hypotheses()
    assert one.steps == other.steps


CASES = [
    (4, 1, 1, 9, [5, 1, 3, 2], 1.0, "length", False),
    (3, 5, 1, 30, [7, 7, 7], 1.0, "length", False),
    (3, 5, 5, 30, [6, 2, 9], 0.6, "google", True),
    (2, 3, 2, 4, [8, 8], -0.5, "length", True),  # fewer tokens than would be wanted
    (2, 4, 3, 12, [70, 3], 0.0, "length", False),  # more tokens than are moved at a time
]


@interpreted
@pytest.mark.parametrize("case", CASES)
def test_it_is_the_step_written_out(case):
    search(0, "cpu", *case)


@interpreted
def test_what_is_no_log_probability_is_noted():
    beams = Beams([3, 3], 2, BOS, EOS)
    origins = torch.zeros(2, 2, 3, dtype=torch.uint8)
    tokens = torch.tensor([[4, 5, 6]] * 4)
    anything = torch.tensor([[torch.nan] * 3])  # asked of what has probability zero
    go_on(beams, origins, torch.cat([torch.full((1, 3), -1.0), anything] * 2), tokens)
    beams.place.add_(1)
    assert not beams.wrong
    go_on(beams, origins, torch.tensor([[-1.0, -2.0, torch.nan]] + [[-1.0, -2.0, -3.0]] * 3), tokens)
    assert beams.wrong
    beams = Beams([3, 3], 2, BOS, EOS)
    go_on(beams, origins, torch.full((4, 3), 0.5), tokens)
    assert beams.wrong


@pytest.mark.parametrize(("beam", "nbest", "warps"), [(1, 1, 1), (5, 1, 2), (5, 5, 2), (16, 4, 4)])
def test_it_compiles_for_a_gpu(beam, nbest, warps):
    compiling.check(
        "softtargets.translation.kernels.beam",
        "go_on_kernel",
        types={
            "added": "*fp32",
            "penalties": "*fp64",
            "log_probs": "*fp64",
            "kept_log_probs": "*fp64",
            "kept_scores": "*fp64",
            "kept_ends": "*u8",
            "done": "*u8",
            "wrong": "*u8",
            "origins": "*u8",
        },
        otherwise="*i64",
        constants={
            "EOS": EOS,
            "BEAM": beam,
            "EACH": beam + 1,
            "NBEST": nbest,
            "MOST": 48,
            "CAPACITY": 48,
            "FALLS": True,
            "CANDIDATES": 1 << (beam * (beam + 1) - 1).bit_length(),
            "PICKS": 1 << (2 * beam - 1).bit_length(),
            "ENTRIES": 1 << (nbest + 2 * beam - 1).bit_length(),
            "COLUMNS": 32,
        },
        warps=warps,
    )


@pytest.mark.cuda
@pytest.mark.parametrize("case", CASES)
def test_on_a_gpu(case):
    for seed in range(3):
        search(seed, "cuda", *case)
