"""Next-token predictions of whole test sets, against one sentence at a time in double precision."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from softtargets.calibration import SweepSums
from softtargets.exceptions import SofttargetsError
from softtargets.models import Transformer
from softtargets.translation import BOS, EOS, predict_tokens, score


@pytest.fixture
def model():
    torch.manual_seed(3)
    net = Transformer(
        vocabulary=30,
        width=16,
        heads=2,
        inner=32,
        encoder_layers=1,
        decoder_layers=1,
        dropout=0.5,
        longest=40,
    )
    with torch.no_grad():
        net.head.bias.normal_()
    return net


@pytest.fixture
def pairs():
    draw = np.random.default_rng(0)
    lengths = [(3, 5), (1, 0), (20, 2), (0, 4), (7, 7), (2, 30)]
    return tuple([draw.integers(3, 30, pair[side]).tolist() for pair in lengths] for side in (0, 1))


def alone(model, source, target):
    """Logits of every token of one target, nothing padded."""
    with torch.no_grad():
        return model.double().eval()(torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *target]]))[0]


@pytest.mark.parametrize("room", [1, 50, 4096])
def test_it_is_that_of_every_sentence_alone(model, pairs, monkeypatch, room):
    monkeypatch.setattr("softtargets.translation.next_tokens._AT_A_TIME", {"cpu": room})
    sources, targets = pairs
    sweep = SweepSums([0.5, 1.0, 2.0])
    found = predict_tokens(model, sources, targets, sweep)
    assert model.training  # as it was
    assert found.lengths.tolist() == [len(target) + 1 for target in targets]
    logits = torch.cat([alone(model, *pair) for pair in zip(sources, targets, strict=True)])
    labels = torch.tensor([token for target in targets for token in (*target, EOS)])
    assert found.labels.tolist() == labels.tolist()
    assert found.predicted.tolist() == logits.argmax(1).tolist()
    np.testing.assert_allclose(found.confidence, logits.softmax(1).amax(1), rtol=1e-3)
    for temperature, nll in zip((0.5, 1.0, 2.0), sweep.result().nll, strict=True):
        wanted = torch.nn.functional.cross_entropy(logits / temperature, labels)
        assert nll == pytest.approx(float(wanted), rel=1e-5)


def test_the_likelihood_is_that_of_score(model, pairs):
    found = predict_tokens(model, *pairs).by_sentence()["nll"]
    np.testing.assert_allclose(found, [-sum(row) for row in score(model.eval(), *pairs)], rtol=2e-3)


def test_progress_is_told(model, pairs, monkeypatch):
    monkeypatch.setattr("softtargets.translation.next_tokens._AT_A_TIME", {"cpu": 31})
    told = []
    predict_tokens(model, *pairs, progress=lambda *numbers: told.append(numbers))
    assert told[-1] == (6, 6)
    assert told == sorted(told)


@pytest.mark.parametrize(
    ("sources", "targets", "says"),
    [
        ([[5]], [[5], [6]], "there are 1 sources and 2 targets"),
        ([], [], "no sentence was given"),
        ([[5], [5] * 50], [[6], [6]], "sentence 2 has 51 tokens, and the model takes at most 40"),
    ],
)
def test_what_cannot_be_measured_is_refused(model, sources, targets, says):
    with pytest.raises(SofttargetsError, match=says):
        predict_tokens(model, sources, targets)
