from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmarks.translation import sentences
from benchmarks.translation.grid import grid
from benchmarks.translation.sentences import HELD_OUT, made_up, read_text
from softtargets.exceptions import SofttargetsError

CPU = torch.device("cpu")


def test_made_up_sentences_are_as_long_as_those_of_multi30k_and_the_same_every_time():
    one, again = (made_up(3000, 20, CPU) for _ in range(2))
    train = one.task.splits["train"]
    source, target = train.sources.lengths, train.targets.lengths
    assert (source.mean(), target.mean()) == pytest.approx((15.3, 15.7), abs=0.4)
    assert (source.std(), target.std()) == pytest.approx((4.7, 5.4), abs=0.4)
    assert np.corrcoef(np.log(source), np.log(target))[0, 1] == pytest.approx(0.885, abs=0.03)
    assert train.padding == pytest.approx(0.13, abs=0.02)
    assert np.array_equal(train.targets.flat, again.task.splits["train"].targets.flat)
    assert one.sources == again.sources
    flat = train.targets.flat
    assert flat.max() < 8000
    assert set(np.unique(flat[flat < 4])) == {2}
    assert len(one.task.splits["test"]) == HELD_OUT
    assert len(one.sources) == 20


def test_data_go_by_the_name_in_a_case(monkeypatch):
    asked = []
    monkeypatch.setattr(sentences, "made_up", lambda *given: asked.append(given))
    read_text("synthetic 70 pairs", CPU)
    read_text("synthetic", CPU)
    assert [given[0] for given in asked] == [70, sentences.PAIRS]


@pytest.mark.realdata
def test_multi30k_is_what_made_up_sentences_imitate(monkeypatch):
    try:
        text = read_text("multi30k", CPU)
    except SofttargetsError as error:
        pytest.skip(str(error))
    train = text.task.splits["train"]
    assert (len(train), len(text.sources), text.pieces) == (sentences.PAIRS, sentences.TEST, sentences.PIECES)
    for side, mean, deviation in zip(
        (train.sources, train.targets), sentences._MEANS, sentences._DEVIATIONS, strict=True
    ):
        logarithms = np.log(side.lengths)
        assert (logarithms.mean(), logarithms.std()) == pytest.approx((mean, deviation), abs=1e-3)
    assert max(train.sources.lengths.max(), train.targets.lengths.max()) <= sentences.LONGEST


def test_what_is_measured_by_default():
    cases = [str(case) for case in grid("cuda").cases]
    assert len(cases) == 5 + 1 + 2 + 1 + 1
    assert cases[4] == "replication, 16 runs, batches of 4096 tokens bf16, multi30k"
    assert cases[-1] == "decoding, multi30k, beam 5, 1000 sentences to 32 tokens bf16, multi30k"
    assert str(grid("cpu").cases[0]) == "tiny, 1 run, batches of 256 tokens fp32, multi30k 64 pairs"


def test_words_that_are_none_are_refused():
    for words, message in (
        ({"sizes": "iwslt14"}, "no 'iwslt14'"),
        ({"packs": "0"}, "'0' is not a whole number from 1"),
        ({"sizes": "none", "decoded": "none"}, "nothing to measure"),
        ({"precision": "fp8"}, "no 'fp8'"),
    ):
        with pytest.raises(SofttargetsError, match=message):
            grid("cpu", **words)
