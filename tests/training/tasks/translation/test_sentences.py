from __future__ import annotations

import numpy as np
import pytest
import torch

from softtargets.data import Pairs
from softtargets.training.tasks.translation.sentences import Ragged, Sentences
from softtargets.translation import BOS, EOS, IGNORED, PAD

CPU = torch.device("cpu")
ROWS = [[5, 6, 7], [], [8], [9, 9, 9, 9, 9]]


def test_rows_of_different_lengths_come_back_as_they_were():
    ragged = Ragged.of(ROWS)
    assert [ragged[row] for row in range(len(ragged))] == ROWS
    assert ragged.lengths.tolist() == [3, 0, 1, 5]
    table = ragged.padded(np.array([3, 0, 1]), 6, fill=-1)
    assert table.tolist() == [[9, 9, 9, 9, 9, -1], [5, 6, 7, -1, -1, -1], [-1] * 6]


@pytest.fixture
def split():
    targets = [[4, 4], [5], [], [6, 7, 8, 9]]
    texts = Pairs(("",) * 4, ("",) * 4)
    return Sentences.of(ROWS, targets, texts, {}, CPU)


def test_both_sides_end_with_the_symbol_for_the_end(split):
    assert split.sources[0] == [5, 6, 7, EOS]
    assert split.targets[2] == [EOS]


def test_tables_hold_every_sentence_padded_and_an_empty_one(split):
    seen = {}
    for table in split.tables:
        sources, read, labels = table.shown(torch.arange(len(table) + 1))
        for row, sentence in enumerate(table.bucket.members):
            seen[int(sentence)] = row
            own = split.sources[sentence]
            assert sources[row].tolist() == own + [PAD] * (table.bucket.source - len(own))
            own = split.targets[sentence]
            assert labels[row].tolist() == own + [IGNORED] * (table.bucket.target - len(own))
            assert read[row].tolist()[: len(own)] == [BOS, *own[:-1]]
        assert sources[-1].tolist() == [EOS] + [PAD] * (table.bucket.source - 1)
        assert set(labels[-1].tolist()) == {IGNORED}
    assert sorted(seen) == [0, 1, 2, 3]


def test_batches_of_a_table_are_all_rows_in_order_filled_up_with_the_empty_one(split):
    table = split.tables[-1]
    rows = torch.cat(list(table.batches(tokens=1)))
    assert rows.tolist() == list(range(len(table)))
    several = Sentences.of([[4]] * 5, [[4]] * 5, Pairs(("",) * 5, ("",) * 5), {}, CPU).tables[0]
    assert [batch.tolist() for batch in several.batches(tokens=8)] == [[0, 1], [2, 3], [4, 5]]
