"""What is found out about a translation model, against plain computations, and what is said of it."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from softtargets.exceptions import SofttargetsError
from softtargets.inspection.translate import page, words
from softtargets.inspection.translate.finding import assess, score_text
from softtargets.models import Transformer
from softtargets.report import write_page
from softtargets.translation import Tokeniser, Translator, bleu, chrf, decode, score

SOURCES = ["a b c", "b", "", "c c a b", "a a", "b c"]
REFERENCES = ["x y z", "y", "y", "z z x y", "x x", "y z"]


@pytest.fixture(scope="module")
def translator():
    tokeniser = Tokeniser.learn(["a b c x y z Z"] * 9, 12)
    torch.manual_seed(0)
    net = Transformer(len(tokeniser), width=16, heads=2, inner=32, encoder_layers=1, decoder_layers=1)
    with torch.no_grad():
        net.head.bias[:2] = -30
        net.head.bias[2] = 1
    return Translator(net.eval(), tokeniser)


@pytest.fixture(scope="module")
def found(translator):
    return assess(translator, SOURCES, REFERENCES, temperatures=(0.5, 1.0, 2.0), beam=3)


def test_scores_are_those_of_the_translations(found, translator):
    texts = translator.translate(SOURCES, beam=3)
    assert list(found.translations) == texts
    assert found.text.bleu == bleu(texts, REFERENCES)
    assert found.text.chrf == chrf(texts, REFERENCES)
    ends = found.text.chrf_interval
    assert ends.low <= found.text.chrf.value <= ends.high
    hotter = translator.translate(SOURCES, beam=3, temperature=2.0)
    assert found.bleu_at == pytest.approx(
        {0.5: bleu(translator.translate(SOURCES, beam=3, temperature=0.5), REFERENCES).value}
        | {1.0: found.text.bleu.value, 2.0: bleu(hotter, REFERENCES).value}
    )


def test_tokens_are_measured_with_the_correct_prefix(found, translator):
    codec = translator.tokeniser
    rows = score(translator.model, codec.encode(SOURCES), codec.encode(REFERENCES))
    tokens = [one for row in rows for one in row]
    assert len(found.tokens) == len(tokens)
    assert found.tokens.nll == pytest.approx(-np.mean(tokens), rel=1e-3)
    assert found.numbers()["tokens"]["perplexity"] == pytest.approx(math.exp(-np.mean(tokens)), rel=1e-3)
    at = found.sweep.temperatures.index(1.0)
    assert found.sweep.nll[at] == pytest.approx(-np.mean(tokens), rel=1e-6)
    assert found.sweep.ece[at] == pytest.approx(found.tokens.ece(), abs=1e-3)
    gap = float(found.tokens.confidence.mean() - found.tokens.right.mean())
    assert found.overconfidence.value == pytest.approx(gap)


def test_whole_translations_are_those_of_beam_search(found, translator):
    hypotheses = [one[0] for one in decode(translator.model, translator.tokeniser.encode(SOURCES), beam=3)]
    assert found.sequences.expected_exact == pytest.approx(sum(math.exp(one.log_prob) for one in hypotheses))
    assert found.unfinished == sum(not one.finished for one in hypotheses)


def test_without_temperatures_nothing_is_swept(translator):
    plain = assess(translator, SOURCES, REFERENCES)
    assert plain.sweep is None
    assert plain.numbers()["temperatures"] == []
    assert not any(one.title == "Over temperature" for one in page.translate_page(plain, "x").sections)


def test_a_model_of_lower_case_is_scored_without_case():
    tokeniser = Tokeniser.learn(["a b x y"] * 9, 9, lowercase=True)
    torch.manual_seed(0)
    net = Transformer(len(tokeniser), width=8, heads=2, inner=16, encoder_layers=1, decoder_layers=1)
    with torch.no_grad():
        net.head.bias[:2] = -30
    found = assess(Translator(net.eval(), tokeniser), ["A b"], ["X Y"])
    assert "case:lc" in found.text.bleu.signature


def test_sides_of_different_lengths_are_refused(translator):
    with pytest.raises(SofttargetsError, match="there are 2 source sentences and 1 references"):
        assess(translator, ["a", "b"], ["x"])


def test_the_page_says_it_all(found, tmp_path):
    written = write_page(page.translate_page(found, "0123"), tmp_path).read_text(encoding="utf-8")
    assert found.text.bleu.signature in written
    for said in ("Probabilities of tokens", "Over temperature", "rank correlation", words.TEMPERATURE):
        assert said in written
    assert (tmp_path / "figures" / "reliability.svg").exists()
    assert (tmp_path / "figures" / "temperatures.svg").exists()


def test_an_error_that_scatter_does_not_change_is_told_once(found):
    plain = found.calibration.expected_calibration_error
    for corrected, twice in ((plain, False), (plain / 2, True)):
        known = {**found.calibration.corrected, "expected_calibration_error": corrected}
        sentences = words.verdict_on(
            replace(found, calibration=replace(found.calibration, corrected=known))
        ).sentences
        assert ("corrected for scatter" in sentences[1]) == twice
        assert sentences[1].startswith("Token ECE: ")


class Told:
    """As much of an assessment as the words look at."""

    def __init__(self, confidence, right):
        from softtargets.calibration import ConfidenceSums, confidence_calibration_of
        from softtargets.inspection.shared.measured import overconfidence

        sums = ConfidenceSums.empty().add(confidence, right)
        self.tokens = confidence
        self.calibration = confidence_calibration_of(sums, level=0.95)
        self.overconfidence = overconfidence(sums)


@pytest.mark.parametrize(
    ("says", "truth", "count", "sentence"),
    [
        (0.9, 0.6, 4000, "cannot be taken at their word: tokens are right less often than the model says"),
        (0.5, 0.8, 4000, "cannot be taken at their word: tokens are right more often than the model says"),
        (0.7, 0.7, 40_000, "can be trusted: tokens are right as often as the model says"),
        (0.7, 0.6, 20, "With 20 tokens we cannot tell whether the token probabilities can be trusted"),
    ],
)
def test_whether_probabilities_can_be_trusted_is_one_sentence(says, truth, count, sentence):
    right = torch.zeros(count, dtype=torch.int64)
    right[: int(truth * count)] = 1
    assert sentence in words.trust(Told(torch.full((count,), says), right))


def test_both_errors_at_once_are_said():
    confidence = torch.tensor([0.9, 0.3]).repeat_interleave(3000)
    right = torch.cat((torch.arange(3000) % 10 < 6, torch.arange(3000) % 10 < 6)).long()
    assert "too confident of some tokens and not confident enough of others" in words.trust(
        Told(confidence, right)
    )


def test_scores_of_text_have_numbers_for_scripts():
    found = score_text(["x y"], ["X y"], lowercase=True).numbers()
    assert found["sentences"] == 1
    assert found["chrf"]["value"] == pytest.approx(100)
    assert "case:lc" in found["bleu"]["signature"]


def test_what_the_model_has_never_seen_is_said(translator, found):
    assert found.unknown == ()
    sources, references = ["a b Q", "b", "Q!"], ["x y z", "y\0", "y"]
    strange = assess(translator, sources, references)
    said = words.warnings_on(strange)
    assert said[:2] == [
        "2 of 3 sources have characters that the training text does not have: Q (U+0051), ! (U+0021). The model reads "
        "them as unknown.",
        "1 of 3 references has characters that the training text does not have: U+0000. The model reads "
        "them as unknown.",
    ]
    many = assess(translator, ["QWERTUI"], ["x"])
    assert "T (U+0054) and 2 more. The" in words.warnings_on(many)[0]
