"""Drawn translations: as the model says, whatever they are drawn together with."""

from __future__ import annotations

import pytest
import torch

from softtargets.exceptions import SofttargetsError
from softtargets.models import Transformer
from softtargets.translation import BOS, EOS, sample, sample_translations, score

SOURCES = [[5, 6, 7], [], [4], [8, 8, 8, 8, 8, 8], [3, 9]]


@pytest.fixture
def model():
    torch.manual_seed(1)
    net = Transformer(
        vocabulary=12, width=8, heads=2, inner=16, encoder_layers=1, decoder_layers=1, dropout=0.3
    )
    with torch.no_grad():
        net.head.bias[:2] = -30  # no target has padding or a beginning in it
    return net


def test_it_is_what_sampling_without_a_cache_draws(model):
    found = sample_translations(model, SOURCES, temperature=1.3, top_k=7, seed=4, max_length=9, first=10)
    assert model.training  # as it was
    model.eval()
    for place, source in enumerate(SOURCES):
        if not source:
            assert (found[place].tokens, found[place].log_prob) == ([EOS], 0.0)
            continue

        def next_log_probs(prefixes, source=source):
            with torch.no_grad():
                return model(torch.tensor([[*source, EOS]]), prefixes)[:, -1].log_softmax(-1)

        (alone,) = sample(next_log_probs, 1, BOS, EOS, 9, 1.3, 7, 4, numbers=[10 + place])
        assert found[place].tokens == alone.tokens
        assert found[place].log_prob == pytest.approx(alone.log_prob, rel=1e-5)
        assert found[place].log_prob == pytest.approx(
            sum(score(model, [source], [alone.tokens], end=False)[0]), rel=1e-4
        )


def test_neither_batches_nor_neighbours_change_what_is_drawn(model, monkeypatch):
    together = sample_translations(model, SOURCES, seed=2, max_length=12)
    monkeypatch.setattr("softtargets.translation.sampled._AT_A_TIME", {"cpu": 12})
    assert [one.tokens for one in sample_translations(model, SOURCES, seed=2, max_length=12)] == [
        one.tokens for one in together
    ]
    last = sample_translations(model, SOURCES[3:], seed=2, max_length=12, first=3)
    assert [one.tokens for one in last] == [one.tokens for one in together[3:]]
    other = sample_translations(model, SOURCES, seed=3, max_length=12)
    assert [one.tokens for one in other] != [one.tokens for one in together]


def test_a_longest_source_bounds_all(model):
    found = sample_translations(model, [[5], [6, 6, 6]], seed=0)
    assert max(len(one.tokens) for one in found) <= int(1.2 * 3) + 10


def test_numbers_must_be_as_many_as_inputs():
    with pytest.raises(SofttargetsError, match="numbers must be one for each of 2 inputs, not 1"):
        sample(lambda prefixes: torch.zeros(2, 3), 2, 0, 2, 3, numbers=[4])
