"""The fast path against beam search over the whole model, and against the model's own log-probabilities."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from softtargets.exceptions import SofttargetsError
from softtargets.models import Transformer
from softtargets.translation import Hypothesis, Translator, beam_search, decode, score
from softtargets.translation.decoding import _Search, looking
from softtargets.translation.sources import Packed
from softtargets.translation.symbols import BOS, EOS, PAD, UNK

VOCABULARY = 23


def make(seed=0, dtype=torch.float64, **options):
    torch.manual_seed(seed)
    sizes = {"width": 16, "heads": 2, "inner": 24, "encoder_layers": 2, "decoder_layers": 2, "longest": 24}
    net = Transformer(VOCABULARY, **sizes | options).to(dtype)
    with torch.no_grad():
        for value in net.parameters():
            value.mul_(1.5)  # less alike
        net.head.bias[EOS] += 1.0
    return net


def texts(count, seed=0, longest=8):
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, longest, (count,), generator=generator).tolist()
    return [torch.randint(4, VOCABULARY, (length,), generator=generator).tolist() for length in lengths]


def uncached(net, source, beam, limit, alpha, penalty="length", nbest=None, temperature=1.0):
    tokens = torch.tensor([[*source, EOS]]).repeat(beam, 1)
    training = net.training
    net.eval()

    def next_log_probs(prefixes):
        return (net(tokens, prefixes)[:, -1] / temperature).log_softmax(-1)

    found = beam_search(next_log_probs, 1, beam, BOS, EOS, limit, alpha, penalty=penalty, nbest=nbest)[0]
    net.train(training)
    return found


def same(one, other, rel=1e-9):
    assert [(each.tokens, each.finished) for each in one] == [(each.tokens, each.finished) for each in other]
    for a, b in zip(one, other, strict=True):
        assert (a.score, a.log_prob) == pytest.approx((b.score, b.log_prob), rel=rel)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize(
    ("beam", "alpha", "penalty", "temperature"),
    [(1, 0.0, "length", 1.0), (4, 1.0, "length", 1.0), (5, 0.6, "google", 1.7), (30, -0.5, "length", 0.6)],
)
def test_it_finds_what_beam_search_over_the_whole_model_finds(norm, beam, alpha, penalty, temperature):
    net = make(norm=norm)
    sources = texts(7)
    nbest = min(beam, 3)
    found = decode(net, sources, beam, alpha, temperature, nbest=nbest, penalty=penalty)
    for source, hypotheses in zip(sources, found, strict=True):
        limit = min(int(1.2 * len(source)) + 10, 24)
        same(hypotheses, uncached(net, source, beam, limit, alpha, penalty, nbest, temperature))


@pytest.mark.parametrize("room", [1, 90, 10_000])
def test_company_and_order_change_nothing(room):
    net, sources = make(), texts(9, seed=1)
    together = decode(net, sources, 3, max_length=9, tokens_at_a_time=room)
    alone = [decode(net, [source], 3, max_length=9)[0] for source in sources]
    backwards = decode(net, sources[::-1], 3, max_length=9, tokens_at_a_time=room)[::-1]
    for a, b, c in zip(together, alone, backwards, strict=True):
        same(a, b)
        same(a, c)


@pytest.mark.parametrize("temperature", [1.0, 2.5])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_log_probabilities_are_the_models_own(temperature, dtype):
    net, sources = make(dtype=dtype), texts(6, seed=2)
    found = decode(net, sources, 4, temperature=temperature, max_length=7, nbest=4)
    for place, source in enumerate(sources):
        for hypothesis in found[place]:
            (tokens,) = score(net, [source], [hypothesis.tokens], temperature, end=False)
            assert len(tokens) == len(hypothesis.tokens)
            assert sum(tokens) == pytest.approx(
                hypothesis.log_prob, rel=1e-4 if dtype == torch.float32 else 1e-10
            )
            assert hypothesis.score == pytest.approx(hypothesis.log_prob / len(hypothesis.tokens))


def test_scores_are_by_hand_the_log_softmax_at_each_place():
    net, sources = make().eval(), texts(5, seed=3)
    targets = texts(5, seed=4)
    found = score(net, sources, targets, temperature=1.3, tokens_at_a_time=20)
    for source, target, numbers in zip(sources, targets, found, strict=True):
        labels = [*target, EOS]
        logits = net(torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *target]]))[0] / 1.3
        expected = [row[label] - row.logsumexp(0) for row, label in zip(logits, labels, strict=True)]
        assert numbers == pytest.approx([each.item() for each in expected], rel=1e-10)
    again = score(net, [[*each, EOS] for each in sources], [[*each, EOS] for each in targets], 1.3)
    assert [len(each) for each in again] == [len(each) for each in found]
    assert [x for each in again for x in each] == pytest.approx([x for each in found for x in each])
    assert score(net, [[5]], [[]], end=False) == [[]]


def test_empty_sources_have_empty_translations():
    net = make()
    empty = [Hypothesis([EOS], 0.0, 0.0, True)]
    found = decode(net, [[], [5, 6], [EOS]], 2, max_length=4)
    assert found[0] == found[2] == empty
    assert found[1] == decode(net, [[5, 6]], 2, max_length=4)[0]
    assert decode(net, []) == []
    assert decode(net, [[]]) == [empty]


def test_sources_that_are_too_long_are_cut_and_counted():
    net = make()
    long = texts(1, seed=5)[0] * 40
    with pytest.warns(
        UserWarning, match=r"^2 of 3 sources have more than the 24 tokens that the model can take"
    ):
        found = decode(net, [long, [5], long[:24]], 2)
    same(found[0], decode(net, [long[:23]], 2)[0])
    same(found[2], found[0])
    assert len(found[0][0].tokens) <= 24


def test_sources_of_unknown_words_are_translated():
    net = make()
    (found,) = decode(net, [[UNK, UNK, UNK]], 2, max_length=5)
    same(found, uncached(net, [UNK, UNK, UNK], 2, 5, 1.0, nbest=1))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sources": [[5], [VOCABULARY]]}, r"^sources must have tokens from 1 to 22, not 23 \(number 1\)$"),
        ({"sources": [[PAD]]}, "^sources must have tokens from 1 to 22, not 0"),
        ({"temperature": 0.0}, "^temperature must be above 0, not 0.0$"),
        ({"temperature": 1e-40}, "^temperature must be at least 1e-30 and finite, not 1e-40$"),
        ({"temperature": float("inf")}, "^temperature must be at least 1e-30 and finite, not inf$"),
        ({"nbest": 9}, "^nbest must be from 1 to the beam, 5, not 9$"),
        ({"max_length": 0}, "^max_length must be at least 1, not 0$"),
        ({"beam": 0, "nbest": 0}, "^beam must be at least 1, not 0$"),
    ],
)
def test_what_cannot_be_is_refused(arguments, message):
    with pytest.raises(SofttargetsError, match=message):
        decode(make(), **{"sources": [[5]]} | arguments)


def test_scores_of_what_cannot_be_are_refused():
    with pytest.raises(SofttargetsError, match=r"^there are 1 sources and 2 targets$"):
        score(make(), [[5]], [[5], [6]])
    with pytest.raises(SofttargetsError, match=r"^a target of 25 tokens is longer than the 24 of the model$"):
        score(make(), [[5]], [[5] * 24])
    with pytest.raises(SofttargetsError, match=r"^temperature must be above 0"):
        score(make(), [[5]], [[5]], -1.0)


def test_the_model_is_left_as_it_was_and_progress_is_told():
    net = make(dropout=0.5).train()
    seen = []
    sources = [*texts(5), []]
    first = decode(
        net, sources, 2, max_length=4, tokens_at_a_time=16, progress=lambda *each: seen.append(each)
    )
    assert net.training
    assert seen == [(3, 6), (5, 6), (6, 6)]
    assert decode(net.eval(), sources, 2, max_length=4, tokens_at_a_time=16) == first
    assert not net.training


class Letters:
    def encode(self, texts):
        return [[ord(letter) - 93 for letter in text] for text in texts]

    def decode(self, tokens):
        return ["".join(chr(token + 93) for token in row if token > 3) for row in tokens]


def test_a_translator_goes_from_text_to_text():
    net = make()
    found = Translator(net, Letters()).translate(["abc", "", "hello"], beam=3, max_length=6)
    expected = [
        each[0].tokens for each in decode(net, Letters().encode(["abc", "", "hello"]), 3, max_length=6)
    ]
    assert found == Letters().decode(expected)
    assert found[1] == ""


def test_what_is_done_for_recording_changes_nothing(monkeypatch):
    """Rounded lengths, blank sources, and shapes that come back, without a GPU."""

    def recorded(step, graphs):
        recorded.kinds += 1
        return step

    recorded.kinds = 0
    net, sources = make(longest=40), texts(70, seed=6, longest=12)
    expected = decode(net, sources, 3, nbest=2)
    monkeypatch.setattr("softtargets.translation.decoding._records", lambda device: True)
    monkeypatch.setattr("softtargets.translation.decoding._Recorded", recorded)
    for room in (400, 100_000):
        for a, b in zip(expected, decode(net, sources, 3, nbest=2, tokens_at_a_time=room), strict=True):
            same(a, b)
    assert recorded.kinds < 14


def test_a_step_never_asks_for_a_value():
    """What would make the host wait for a GPU, and cannot be recorded."""

    class Noting(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            asked.append(str(func))
            return func(*args, **(kwargs or {}))

    asked = []
    net = make()
    with looking(net):
        kind = _Search(net, 3, 1.0, "length", 1, 1.0).ready(Packed.of([[5, 6, 2]]), np.array([8]))
        with Noting():
            kind.replay()
    assert len(asked) > 50
    assert not [
        name for name in asked if any(word in name for word in ("_local_scalar", "nonzero", "masked_sel"))
    ]


def test_under_autocast_scores_are_those_of_the_model():
    net, sources = make(dtype=torch.float32), texts(20, seed=3, longest=8)
    with torch.autocast("cpu", torch.bfloat16):
        found = decode(net, sources, 3)
        again = score(net, sources, [each[0].tokens for each in found], end=False)
    for each, numbers in zip(found, again, strict=True):
        # States are, but differently with and without a cache.
        assert each[0].log_prob == pytest.approx(sum(numbers), abs=2e-2 * max(1, len(numbers)))


@pytest.mark.cuda
@pytest.mark.parametrize("beam", [1, 5])
def test_on_a_gpu_recorded_steps_find_the_same(beam):
    net, sources = make(), texts(90, seed=6, longest=12)
    expected = decode(net, sources, beam, nbest=min(beam, 2))
    found = decode(net.cuda(), sources, beam, nbest=min(beam, 2))
    small = decode(net, sources, beam, nbest=min(beam, 2), tokens_at_a_time=400)  # shapes come back
    for a, b, c in zip(expected, found, small, strict=True):
        same(a, b)
        same(a, c)
