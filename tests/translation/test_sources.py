"""Sources one behind the other against lists."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from softtargets.translation.batching import padded
from softtargets.translation.sources import Packed, checked_sources
from softtargets.translation.symbols import EOS, PAD
from tests.translation.test_decoding import make, texts

ROWS = [[5, EOS], [6, 7, EOS], [EOS], [8, 9, 10, EOS]]


@pytest.mark.parametrize("chosen", [[0, 1, 2, 3], [3, 0], [2], [1, 1], []])
def test_some_of_the_rows_in_any_order(chosen):
    taken = Packed.of(ROWS).take(np.array(chosen, np.int64))
    assert taken.rows() == [ROWS[place] for place in chosen]
    assert len(taken) == len(chosen)


def test_padding_and_blanks():
    packed = Packed.of(ROWS).and_blanks(2)
    assert packed.rows() == [*ROWS, [EOS], [EOS]]
    assert torch.equal(packed.padded(5), padded([*ROWS, [EOS], [EOS]], PAD, (6, 5)))
    assert packed.places.tolist() == [0, 1, 0, 1, 2, 0, 0, 1, 2, 3, 0, 0]


def test_the_end_is_added_where_it_is_missing_and_in_its_place_where_it_is_cut():
    net = make(longest=6)
    given = [[], [5], [5, EOS], [EOS, 5], [EOS], [], *texts(9, longest=6), [4] * 5, []]
    assert checked_sources(net, given) == [[*each] if each[-1:] == [EOS] else [*each, EOS] for each in given]
    assert checked_sources(net, []) == []
    with pytest.warns(UserWarning, match=r"^2 of 4 sources"):
        found = checked_sources(net, [[4] * 6, [5], [6] * 6 + [EOS], [7] * 5])
    assert found == [[4] * 5 + [EOS], [5, EOS], [6] * 5 + [EOS], [7] * 5 + [EOS]]
