"""BLEU from kept counts: exactly sacreBLEU's, and intervals that plain resampling gives too."""

from __future__ import annotations

import random

import numpy as np
import pytest

from softtargets.exceptions import SofttargetsError
from softtargets.translation import bleu, bleu_difference, bleu_interval, bleu_of, sentence_statistics

pytest.importorskip("sacrebleu")


@pytest.fixture(scope="module")
def corpus():
    draw = random.Random(4)
    words = ["the", "a", "cat", "dog", "sat", "on", "mat", "and", "then", "Ran", ",", "away", ".", "3", "km"]
    references = [" ".join(draw.choices(words, k=draw.randint(1, 14))) for _ in range(120)]
    worse = [" ".join(w for w in r.split() if draw.random() < 0.8) for r in references]
    better = [" ".join(w for w in r.split() if draw.random() < 0.9) for r in references]
    return references, worse, better


@pytest.mark.parametrize("lowercase", [False, True])
def test_the_same_as_sacrebleu(corpus, lowercase):
    references, worse, better = corpus
    for hypotheses in (worse, better, references, [""] * len(references)):
        counts = sentence_statistics(hypotheses, references, lowercase)
        assert counts.dtype == np.uint16
        assert bleu_of(counts) == pytest.approx(bleu(hypotheses, references, lowercase).value, abs=1e-10)


@pytest.mark.parametrize(
    ("hypothesis", "reference"),
    [
        ("a b", "a b"),  # no trigram: 0 by definition
        ("a b c d", "a x c y"),  # smoothed, twice and more
        ("x y z w", "a b c d"),  # nothing at all
        ("a b c d e f g h", "a b c"),  # longer than the reference
    ],
)
def test_short_and_bad_sentences(hypothesis, reference):
    found = bleu_of(sentence_statistics([hypothesis], [reference]))
    assert found == pytest.approx(bleu([hypothesis], [reference]).value, abs=1e-10)


def test_several_references(corpus):
    references, worse, better = corpus
    counts = sentence_statistics(worse, [references, better])
    assert bleu_of(counts) == pytest.approx(bleu(worse, [references, better]).value, abs=1e-10)


def test_any_rows_are_a_corpus(corpus):
    references, worse, _ = corpus
    counts = sentence_statistics(worse, references)
    some = [5, 17, 17, 80]
    assert bleu_of(counts[some]) == pytest.approx(
        bleu([worse[i] for i in some], [references[i] for i in some]).value, abs=1e-10
    )


def test_intervals_are_those_of_plain_resampling(corpus):
    references, worse, better = corpus
    counts, others = (sentence_statistics(h, references) for h in (better, worse))
    found = bleu_interval(better, references, resamples=400, seed=1)
    assert found == bleu_interval(counts, resamples=400, seed=1)
    draw = random.Random(9)
    plain = sorted(bleu_of(counts[draw.choices(range(120), k=120)]) for _ in range(2000))
    assert found.low == pytest.approx(plain[50], abs=1.5)
    assert found.high == pytest.approx(plain[1949], abs=1.5)
    assert found.low < found.value < found.high

    apart = bleu_difference(counts, others, resamples=400, seed=1)
    assert apart.value == pytest.approx(bleu(better, references).value - bleu(worse, references).value)
    assert apart.low > 0
    assert apart.share_above_zero == 1
    # Paired: a system beside itself does not scatter at all.
    same = bleu_difference(counts, counts, resamples=50)
    assert (same.low, same.high) == (0, 0)
    alone = bleu_interval(others, resamples=400, seed=1)
    assert apart.high - apart.low < (found.high - found.low) + (alone.high - alone.low)


def test_a_seed_is_an_interval(corpus):
    references, worse, _ = corpus
    counts = sentence_statistics(worse, references)
    assert bleu_interval(counts, seed=3) == bleu_interval(counts, seed=3)
    assert bleu_interval(counts, seed=3) != bleu_interval(counts, seed=4)


def test_pieces_of_resamples_do_not_matter(corpus, monkeypatch):
    from softtargets.translation import bleu_statistics

    references, worse, _ = corpus
    counts = sentence_statistics(worse, references)
    whole = bleu_interval(counts, resamples=50)
    monkeypatch.setattr(bleu_statistics, "AT_ONCE", 7 * 120)
    assert bleu_interval(counts, resamples=50) == whole


def test_refusals():
    one = sentence_statistics(["a b"], ["a b"])
    with pytest.raises(SofttargetsError, match="same sentences, not 1 and 2"):
        bleu_difference(one, np.concatenate([one, one]))
    with pytest.raises(SofttargetsError, match="resamples must be at least 2"):
        bleu_interval(one, resamples=1)
    with pytest.raises(SofttargetsError, match="level must lie"):
        bleu_interval(one, level=95)
    with pytest.raises(SofttargetsError, match="references are missing"):
        bleu_interval(["a"])
    with pytest.raises(SofttargetsError, match=r"not \(0, 10\)"):
        bleu_of(one[:0])
    with pytest.raises(SofttargetsError, match="at most 65535"):
        sentence_statistics(["a " * 70_000], ["a"])
