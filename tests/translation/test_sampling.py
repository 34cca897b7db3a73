from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from softtargets.exceptions import SofttargetsError
from softtargets.translation import beam_search, greedy, sample

from .test_beam import BOS, Toy


def test_greedy_takes_the_likeliest_and_is_a_beam_of_one():
    for seed in range(10):
        toy = Toy(6, seed, 1)
        found = greedy(toy, 3, BOS, 2, 7)
        for number, hypothesis in enumerate(found):
            tokens, log_prob = [], 0.0
            while len(tokens) < 7 and 2 not in tokens:
                row = toy.row(number, tokens).tolist()
                log_prob += max(row)
                tokens.append(row.index(max(row)))
            assert (hypothesis.tokens, hypothesis.finished) == (tokens, 2 in tokens)
            assert hypothesis.log_prob == hypothesis.score == pytest.approx(log_prob)
        beams = beam_search(toy, 3, 1, BOS, 2, 7)
        assert [other.tokens for (other,) in beams] == [own.tokens for own in found]


def test_samples_are_as_often_as_likely():
    toy = Toy(3, 1, 4000)
    drawn = sample(toy, 4000, BOS, 2, 2, seed=3)
    counts = {}
    for each in drawn:
        counts[tuple(each.tokens)] = counts.get(tuple(each.tokens), 0) + 1
        assert each.log_prob == pytest.approx(
            sum(toy.row(0, each.tokens[:t])[token].item() for t, token in enumerate(each.tokens))
        )
    for tokens, count in counts.items():
        p = math.exp(sum(toy.row(0, tokens[:t])[token].item() for t, token in enumerate(tokens)))
        assert abs(count - 4000 * p) < 4.5 * math.sqrt(4000 * p * (1 - p))


def test_temperature_and_top_k():
    log_probs = torch.tensor([0.5, 0.3, 0.15, 0.05]).log()

    def shares(**options):
        drawn = sample(lambda p: log_probs.expand(len(p), 4), 8000, BOS, 3, 1, **options)
        return torch.tensor([each.tokens[0] for each in drawn]).bincount(minlength=4) / 8000

    hot = torch.tensor([0.5, 0.3, 0.15, 0.05]).sqrt()
    assert torch.allclose(shares(temperature=2.0), hot / hot.sum(), atol=0.025)
    assert torch.allclose(shares(top_k=2), torch.tensor([0.625, 0.375, 0, 0]), atol=0.025)
    assert shares(top_k=1).tolist() == [1, 0, 0, 0]
    assert shares(temperature=1e-3).tolist() == [1, 0, 0, 0]


def test_a_draw_depends_on_its_seed_and_place():
    toy = Toy(6, 0, 1)
    first = sample(toy, 4, BOS, 2, 6, seed=1)
    assert sample(toy, 4, BOS, 2, 6, seed=1) == first
    assert sample(toy, 2, BOS, 2, 6, seed=1) == first[:2]
    assert sample(toy, 4, BOS, 2, 6, seed=2) != first


def test_corners_and_refusals():
    assert greedy(Toy(3, 0, 1), 0, BOS, 2, 4) == sample(Toy(3, 0, 1), 0, BOS, 2, 4) == []
    for options in ({"temperature": 0.0}, {"top_k": 0}):
        with pytest.raises(SofttargetsError, match="must be"):
            sample(Toy(3, 0, 1), 1, BOS, 2, 4, **options)
    with pytest.raises(SofttargetsError, match="max_length must be at least 1"):
        greedy(Toy(3, 0, 1), 1, BOS, 2, 0)
    with pytest.raises(SofttargetsError, match=r"must return log-probabilities \(1, V\)"):
        greedy(lambda p: torch.zeros(2, 3), 1, BOS, 2, 2)


def rows(*log_probs):
    """A model that gives the same row after every prefix."""
    return lambda prefixes: torch.tensor(log_probs).expand(len(prefixes), -1)


@pytest.mark.parametrize("roll", [greedy, sample])
@pytest.mark.parametrize(
    ("model", "message"),
    [
        (rows(math.nan, -1.0, -1.0), "NaN or numbers above 0"),
        (rows(-1.0, math.nan, -1.0), "NaN or numbers above 0"),
        (rows(1.0, 1.0, 1.0), "NaN or numbers above 0"),  # logits
        (rows(-math.inf, -math.inf, -math.inf), r"every token probability 0 after \[\]"),
        (lambda prefixes: [[0.0]], r"must return a tensor \(1, V\)"),
        (lambda prefixes: torch.zeros(len(prefixes), 3, dtype=torch.int64), "of torch.int64"),
    ],
)
def test_what_is_no_distribution_is_refused(roll, model, message):
    with pytest.raises(SofttargetsError, match=message):
        roll(model, 1, BOS, 2, 3)


@pytest.mark.parametrize("roll", [greedy, sample])
def test_what_is_said_after_the_end_does_not_matter(roll):
    def next_log_probs(prefixes):
        ended = (prefixes[:, 1:] == 2).any(1, keepdim=True)
        going = torch.tensor(
            [-math.inf, 0.0, -math.inf] if prefixes.shape[1] < 3 else [-math.inf, -math.inf, 0.0]
        )
        going = going.expand(len(prefixes), 3).clone()
        going[0] = torch.tensor([-math.inf, -math.inf, 0.0])
        return going.masked_fill(ended, math.nan)

    assert [each.tokens for each in roll(next_log_probs, 2, BOS, 2, 5)] == [[2], [1, 1, 2]]


@pytest.mark.parametrize("roll", [greedy, sample])
def test_arguments_that_cannot_be(roll):
    good = {"next_log_probs": Toy(3, 0, 1), "batch": 1, "bos": BOS, "eos": 2, "max_length": 3}
    for change, message in (
        ({"eos": 3}, "eos must be one of 3 tokens, not 3"),
        ({"batch": -1}, "batch must be at least 0, not -1"),
        ({"max_length": 2.0}, "max_length must be a whole number, not 2.0"),
    ):
        with pytest.raises(SofttargetsError, match=message):
            roll(**good | change)
    assert roll(**good | {"max_length": np.int64(3)}) == roll(**good)


def test_near_a_temperature_of_0_the_likeliest_is_drawn():
    toy = Toy(6, 0, 1)
    found = sample(toy, 4, BOS, 2, 6, temperature=1e-30)
    assert [each.tokens for each in found] == [each.tokens for each in greedy(toy, 4, BOS, 2, 6)]


@pytest.mark.parametrize(
    ("temperature", "message"),
    [
        (0.0, "above 0, not 0.0"),
        (math.nan, "above 0, not nan"),
        (1e-40, "at least 1e-30 and finite, not 1e-40"),
        (math.inf, "at least 1e-30 and finite, not inf"),
    ],
)
def test_temperatures_that_cannot_be(temperature, message):
    with pytest.raises(SofttargetsError, match=f"temperature must be {message}"):
        sample(Toy(3, 0, 1), 1, BOS, 2, 4, temperature)
