"""Beam search against exhaustive search and against a search in plain Python."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from softtargets.exceptions import SofttargetsError
from softtargets.translation import Hypothesis, beam_search
from softtargets.translation.beam import Beams

BOS = 1


class Toy:
    """A model that looks at the whole prefix, and at which input it is for; drawn at random once and for all."""

    def __init__(
        self, vocabulary, seed, beam, forbidden=0.0, dtype=torch.float64, sharpness=1.0, coarse=False
    ):
        self.vocabulary, self.seed, self.beam, self.dtype = vocabulary, seed, beam, dtype
        self.forbidden, self.sharpness, self.coarse = forbidden, sharpness, coarse
        self.known, self.calls = {}, 0

    def row(self, number, prefix):
        key = number, tuple(prefix)
        if key not in self.known:
            generator = torch.Generator().manual_seed(hash((self.seed, key)) % 2**62)
            logits = self.sharpness * torch.randn(self.vocabulary, generator=generator, dtype=torch.float64)
            if self.coarse:
                logits = logits.round()
            logits[torch.rand(self.vocabulary, generator=generator) < self.forbidden] = -torch.inf
            if logits.max() == -torch.inf:
                logits[0] = 0
            self.known[key] = logits.log_softmax(-1).to(self.dtype)
        return self.known[key]

    def __call__(self, prefixes):
        self.calls += 1
        assert (prefixes[:, 0] == BOS).all()
        rows = [self.row(place // self.beam, each) for place, each in enumerate(prefixes[:, 1:].tolist())]
        return torch.stack(rows)


def penalised(log_prob, length, alpha, penalty):
    return log_prob / (length**alpha if penalty == "length" else ((5 + length) / 6) ** alpha)


def exhaustive(toy, number, eos, longest, alpha, penalty):
    """Every sequence there is, by recursion, best first."""
    found = []

    def follow(prefix, log_prob):
        for token, more in enumerate(toy.row(number, prefix).tolist()):
            if more > -math.inf:
                tokens, total = [*prefix, token], log_prob + more
                if token == eos or len(tokens) == longest:
                    found.append((penalised(total, len(tokens), alpha, penalty), tokens, total, token == eos))
                else:
                    follow(tokens, total)

    follow([], 0.0)
    return sorted(found, key=lambda each: -each[0])


def plain(toy, number, beam, eos, longest, alpha, penalty, nbest):
    """The same rules in plain Python, without a stop before the end."""
    live, kept = [([], 0.0)], []
    for _ in range(longest):
        all_of_them = []
        for rank, (prefix, log_prob) in enumerate(live):
            for token, more in enumerate(toy.row(number, prefix).tolist()):
                if more > -math.inf:
                    all_of_them.append((-(log_prob + more), rank, token))
        all_of_them.sort()
        new = []
        for place, (negative, rank, token) in enumerate(all_of_them[: 2 * beam]):
            tokens = [*live[rank][0], token]
            if token == eos:
                if place < beam:
                    score = penalised(-negative, len(tokens), alpha, penalty)
                    kept.append((score, tokens, -negative, True))
            elif len(new) < beam:
                new.append((tokens, -negative))
        live = new
    kept += [(penalised(total, longest, alpha, penalty), tokens, total, False) for tokens, total in live]
    return sorted(kept, key=lambda each: -each[0])[:nbest]


def agree(found, expected):
    assert len(found) == len(expected)
    for hypothesis, (score, tokens, log_prob, end) in zip(found, expected, strict=True):
        assert hypothesis.score == pytest.approx(score, rel=1e-12)
        assert hypothesis.log_prob == pytest.approx(log_prob, rel=1e-12)
        assert (hypothesis.tokens, hypothesis.finished) == (tokens, end)


ALPHAS = st.sampled_from([-1.0, -0.3, 0.0, 0.6, 1.0, 2.5])
PENALTIES = st.sampled_from(["length", "google"])


@settings(max_examples=60, deadline=None)
@given(
    vocabulary=st.integers(1, 4),
    longest=st.integers(1, 4),
    alpha=ALPHAS,
    penalty=PENALTIES,
    forbidden=st.sampled_from([0.0, 0.3]),
    seed=st.integers(0, 1000),
    data=st.data(),
)
def test_with_room_for_all_it_is_exhaustive_search(
    vocabulary, longest, alpha, penalty, forbidden, seed, data
):
    eos = data.draw(st.integers(0, vocabulary - 1))
    many = sum((vocabulary - 1) ** t for t in range(longest)) + (vocabulary - 1) ** longest
    toy = Toy(vocabulary, seed, many, forbidden)
    found = beam_search(toy, 2, many, BOS, eos, longest, alpha, penalty=penalty)
    for number in range(2):
        agree(found[number], exhaustive(toy, number, eos, longest, alpha, penalty))
    if not forbidden:
        assert sum(math.exp(each.log_prob) for each in found[0]) == pytest.approx(1)


def test_length_five():
    toy = Toy(4, 0, 364)
    agree(
        beam_search(toy, 1, 364, BOS, 2, 5, 1.0, nbest=100)[0],
        exhaustive(toy, 0, 2, 5, 1.0, "length")[:100],
    )


@settings(max_examples=120, deadline=None)
@given(
    vocabulary=st.integers(1, 7),
    beam=st.integers(1, 9),
    longest=st.integers(1, 9),
    alpha=ALPHAS,
    penalty=PENALTIES,
    forbidden=st.sampled_from([0.0, 0.4]),
    sharpness=st.sampled_from([0.3, 1.0, 4.0]),
    seed=st.integers(0, 1000),
    data=st.data(),
)
def test_it_is_the_search_in_plain_python_with_or_without_stopping_early(
    vocabulary, beam, longest, alpha, penalty, forbidden, sharpness, seed, data
):
    eos, nbest = data.draw(st.integers(0, vocabulary - 1)), data.draw(st.integers(1, beam))
    toy = Toy(vocabulary, seed, beam, forbidden, sharpness=sharpness)
    found = beam_search(toy, 3, beam, BOS, eos, longest, alpha, penalty=penalty, nbest=nbest)
    for number in range(3):
        agree(found[number], plain(toy, number, beam, eos, longest, alpha, penalty, nbest))


@pytest.mark.parametrize("alpha", [-1.0, 0.0, 1.0])
def test_equal_scores_are_ranked_by_prefix_and_token(alpha):
    for seed in range(20):
        toy = Toy(5, seed, 3, coarse=True)
        found = beam_search(toy, 2, 3, BOS, 4, 5, alpha)
        for number in range(2):
            agree(found[number], plain(toy, number, 3, 4, 5, alpha, "length", 3))
    flat = beam_search(lambda prefixes: torch.full((len(prefixes), 4), 0.25).log(), 1, 3, BOS, 3, 2)
    assert [each.tokens for each in flat[0]] == [[0, 0], [0, 1], [0, 2]]


def test_single_precision_is_added_in_double():
    toy = Toy(6, 0, 4, dtype=torch.float32)
    for hypothesis in beam_search(toy, 1, 4, BOS, 2, 8, 1.0)[0]:
        prefix = hypothesis.tokens
        steps = [toy.row(0, prefix[:t])[token].double().item() for t, token in enumerate(prefix)]
        assert hypothesis.log_prob == pytest.approx(sum(steps), rel=1e-14)


def test_every_input_has_its_own_limit_and_finds_what_it_finds_alone():
    toy = Toy(5, 3, 3, sharpness=0.5)
    limits = [1, 6, 3, 9]
    together = beam_search(toy, 4, 3, BOS, 2, limits, 0.7)
    for number, limit in enumerate(limits):
        agree(together[number], plain(toy, number, 3, 2, limit, 0.7, "length", 3))


def test_it_stops_as_soon_as_nothing_better_can_come():
    certain = torch.tensor([0.05, 0.9, 0.05]).log()  # the second token ends

    def model(prefixes):
        model.calls += 1
        return certain.expand(len(prefixes), 3)

    model.calls = 0
    assert beam_search(model, 2, 4, BOS, 1, 50, nbest=1)[0][0].tokens == [1]
    assert model.calls == 1
    # Divided by the length, 50 tokens of log(0.05) are still worse than one of log(0.9): log(0.05) / 50 < log(0.9).
    model.calls = 0
    assert beam_search(model, 2, 4, BOS, 1, 10, 1.0, nbest=1)[0][0].tokens == [1]
    assert model.calls == 1
    # With more room it could be better, and has to be looked at.
    model.calls = 0
    beam_search(model, 2, 4, BOS, 1, 50, 1.0, nbest=1)
    assert 1 < model.calls < 5


def test_what_is_not_finished_is_marked():
    never = torch.tensor([0.7, 0.3, 0.0]).log()
    found = beam_search(lambda prefixes: never.expand(len(prefixes), 3), 1, 2, BOS, 2, 3)[0]
    assert found == [
        Hypothesis([0, 0, 0], pytest.approx(3 * math.log(0.7)), pytest.approx(3 * math.log(0.7)), False),
        Hypothesis([0, 0, 1], *[pytest.approx(2 * math.log(0.7) + math.log(0.3))] * 2, False),
    ]


def test_corners():
    toy = Toy(3, 0, 8)
    assert beam_search(toy, 0, 8, BOS, 2, 5) == []
    assert toy.calls == 0
    one = beam_search(toy, 1, 8, BOS, 2, 1)[0]
    assert sorted(each.tokens for each in one) == [[0], [1], [2]]
    assert [each.finished for each in one] == [each.tokens == [2] for each in one]
    nothing = beam_search(lambda prefixes: torch.full((len(prefixes), 3), -torch.inf), 2, 2, BOS, 2, 4)
    assert nothing == [[], []]


def test_log_probabilities_with_a_gradient_are_no_trouble():
    weight = torch.zeros(3, requires_grad=True)
    found = beam_search(lambda p: weight.log_softmax(-1).expand(len(p), 3), 1, 3, BOS, 2, 2)
    assert found[0][0].log_prob == pytest.approx(math.log(1 / 3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"beam": 0}, "beam must be at least 1, not 0"),
        ({"beam": 2.5}, "beam must be a whole number, not 2.5"),
        ({"batch": -1}, "batch must be at least 0, not -1"),
        ({"max_length": 0}, "max_length must be at least 1, not 0"),
        ({"max_length": [3, 4]}, "max_length must be one number or one for each of 1 inputs, not 2"),
        ({"nbest": 3}, "nbest must be from 1 to the beam, 2, not 3"),
        ({"penalty": "short"}, "penalty must be length or google, not 'short'"),
        ({"length_penalty": 1e6}, "length_penalty of 1000000.0 is too large for 4 tokens"),
        ({"eos": 3}, "eos must be one of 3 tokens, not 3"),
        ({"eos": 2.0}, "eos must be a whole number, not 2.0"),
        ({"bos": 0.5}, "bos must be a whole number, not 0.5"),
        ({"nbest": 1.5}, "nbest must be a whole number, not 1.5"),
        ({"batch": 0, "nbest": 0}, "nbest must be from 1 to the beam, 2, not 0"),
        ({"batch": 0, "penalty": "short"}, "penalty must be length or google, not 'short'"),
        (
            {"next_log_probs": lambda p: torch.zeros(7, 3)},
            r"next_log_probs must return log-probabilities \(2, V\)",
        ),
        (
            {"next_log_probs": lambda p: torch.full((2, 3), torch.nan)},
            "not log-probabilities",
        ),
        ({"next_log_probs": lambda p: torch.ones(2, 3)}, "not log-probabilities"),
    ],
)
def test_what_cannot_be_is_refused(change, message):
    arguments = {"next_log_probs": Toy(3, 0, 2), "batch": 1, "beam": 2, "bos": BOS, "eos": 2, "max_length": 4}
    with pytest.raises(SofttargetsError, match=message):
        beam_search(**arguments | change)


def test_what_is_said_of_prefixes_that_cannot_be_does_not_matter():
    """Such as a table of counts, which has 0 / 0 for what was never seen."""
    seen = {(): [1, 1, 0], (0,): [0, 1, 1], (0, 1): [0, 0, 1], (1,): [0, 0, 1]}

    def next_log_probs(prefixes):
        counts = torch.tensor([seen.get(tuple(each), [0, 0, 0]) for each in prefixes[:, 1:].tolist()])
        return (counts / counts.sum(1, keepdim=True)).log()

    (found,) = beam_search(next_log_probs, 1, 5, bos=9, eos=2, max_length=4)
    assert [(each.tokens, math.exp(each.score)) for each in found] == [
        ([1, 2], pytest.approx(0.5)),
        ([0, 2], pytest.approx(0.25)),
        ([0, 1, 2], pytest.approx(0.25)),
    ]


def test_hypotheses_unpack_as_tokens_and_score():
    table = torch.tensor([[0.0, 0.6, 0.4], [0.5, 0.1, 0.4]]).log()
    (found,) = beam_search(lambda prefixes: table[prefixes[:, -1].clamp(max=1)], 1, 2, 0, 2, 3)
    assert [tokens for tokens, _ in found] == [[2], [1, 2]]
    assert [score for _, score in found] == [each.score for each in found]


def test_numbers_of_numpy_are_numbers():
    toy, two = Toy(4, 0, 2), np.int64(2)
    assert beam_search(toy, two, two, BOS, 3, np.int64(4)) == beam_search(toy, 2, 2, BOS, 3, 4)
    assert beam_search(toy, 2, 2, BOS, 3, torch.tensor(4)) == beam_search(toy, 2, 2, BOS, 3, 4)
    assert beam_search(toy, 2, 2, BOS, 3, np.array([4, 3])) == beam_search(toy, 2, 2, BOS, 3, [4, 3])


def test_what_is_no_tensor_is_refused():
    with pytest.raises(
        SofttargetsError, match=r"must return a tensor \(4, V\) of log-probabilities, not list"
    ):
        beam_search(lambda prefixes: [[0.0]] * len(prefixes), 2, 2, 0, 0, 3)


def test_a_search_begun_anew_is_a_new_search():
    toy = Toy(5, 0, 3)
    beams = Beams([6, 6], 3, BOS, 2, 1.0)

    def run(limits):
        beams.begin(limits)
        while beams.steps < 6:
            beams.step(toy(beams.prefixes()))
        return beams.hypotheses()

    first = run([6, 6])
    assert run([3, 5]) == beam_search(toy, 2, 3, BOS, 2, [3, 5], 1.0)
    assert run([6, 6]) == first


@pytest.mark.cuda
def test_on_a_gpu_it_finds_the_same():
    for dtype in (torch.float64, torch.float32):
        table = torch.randn(700, 700, generator=torch.Generator().manual_seed(0)).to(dtype).log_softmax(-1)
        found = []
        for device in ("cpu", "cuda"):
            model = partial(_after, table.to(device))
            found.append(beam_search(model, 4, 5, BOS, 2, 12, 1.0, device=device))
        assert found[0] == found[1]


def _after(table, prefixes):
    return table[prefixes[:, -1]]
