from __future__ import annotations

import random

import numpy as np
import pytest

from softtargets.exceptions import SofttargetsError
from softtargets.translation import frequencies
from softtargets.translation.symbols import EOS


def test_every_label_is_counted_and_an_end_for_every_sentence(monkeypatch):
    draw = random.Random(2)
    sentences = [[draw.randrange(3, 20) for _ in range(draw.randrange(9))] for _ in range(200)]
    expected = [0] * 25
    for sentence in sentences:
        for token in [*sentence, EOS]:
            expected[token] += 1
    counted = frequencies(iter(sentences), 25)
    assert counted.dtype == np.int64
    assert counted.tolist() == expected
    monkeypatch.setattr("softtargets.translation.unigrams._AT_ONCE", 7)
    assert frequencies(sentences, 25).tolist() == expected


def test_no_sentences_count_nothing():
    assert frequencies([], 5).tolist() == [0] * 5
    assert frequencies([[]], 5).tolist() == [0, 0, 1, 0, 0]


@pytest.mark.parametrize("wrong", [5, -100])
def test_a_token_outside_the_vocabulary_is_refused(wrong):
    with pytest.raises(SofttargetsError, match=f"tokens contain {wrong}, but the vocabulary has 5"):
        frequencies([[3], [4, wrong]], 5)
