"""What studies of translation share when they measure: pseudo-values, translations and corpora."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from softtargets.studies import Place
from softtargets.studies.examples import GROUPS, pseudo_values
from softtargets.studies.translation import measures
from softtargets.studies.translation.measures import TranslatedRuns, ece_shares
from softtargets.training.scheduling import Resources
from softtargets.translation import TokenCollector

from .small import recipes


def tokens(sentences, *, seed=0):
    """Predictions of sentences of one to twelve tokens, some of them empty."""
    generator = torch.Generator().manual_seed(seed)
    collector = TokenCollector()
    for _ in range(sentences):
        length = int(torch.randint(0, 13, (1,), generator=generator))
        logits = 3 * torch.randn(1, length + 1, 7, generator=generator)
        labels = logits.argmax(-1)
        wrong = torch.rand(1, length + 1, generator=generator) < 0.4
        labels = torch.where(wrong, torch.randint(0, 7, labels.shape, generator=generator), labels)
        labels[:, length:] = -100
        collector.add(logits, labels)
    return collector.finish()


@pytest.mark.parametrize("sentences", [7, GROUPS, 333])
def test_shares_of_the_ece_are_those_of_counting_again_without_each_group(sentences):
    found = tokens(sentences)
    again = pseudo_values(lambda chosen: found.part(chosen).ece(), sentences, neighbours=True)
    assert ece_shares(found) == pytest.approx(again.tolist(), abs=1e-9)
    assert np.ptp(again) > 0


def test_a_corpus_is_read_once_for_all_instruments_of_a_place(data_dir, store, monkeypatch):
    read = []
    real = Resources.task
    monkeypatch.setattr(Resources, "task", lambda self, data: read.append(self) or real(self, data))
    run, place = store.find(recipes()[0]), Place(data_dir, "cpu")
    one, other = TranslatedRuns(place), TranslatedRuns(place)
    assert one.loaded(run)[0] is other.loaded(run)[0]
    assert len({id(supplies) for supplies in read}) == 1
    elsewhere = TranslatedRuns(Place(data_dir, "cpu"))
    assert elsewhere.loaded(run)[0] is not one.loaded(run)[0]


def test_ngrams_of_translations_are_counted_once(runs, store, monkeypatch):
    counted = []
    real = measures.sentence_statistics

    def noted(*texts, lowercase):
        counted.append(lowercase)
        return real(*texts, lowercase=lowercase)

    monkeypatch.setattr(measures, "sentence_statistics", noted)
    found = runs.translations(store.find(recipes()[0]), most=20)
    found.bleu(), found.bleu(slice(0, 5)), found.quality(), found.statistics(lowercase=True)
    assert sorted(counted) == [False, True]
