"""Sentences as tensors: what is padded, what goes together, what a decoder has read."""

from __future__ import annotations

import pytest
import torch

from softtargets.models import Transformer, evaluating
from softtargets.translation import BOS, EOS, IGNORED, PAD, prefixes
from softtargets.translation.batching import longest_first, padded, room_for


def test_what_a_decoder_has_read_is_one_behind_and_padding_is_a_token_of_its_own():
    labels = torch.tensor([[7, 8, EOS, IGNORED, IGNORED], [EOS, IGNORED, IGNORED, IGNORED, IGNORED]])
    assert prefixes(labels).tolist() == [[BOS, 7, 8, EOS, PAD], [BOS, EOS, PAD, PAD, PAD]]


def test_rows_are_filled_up_at_their_ends():
    assert padded([[5, EOS], [EOS], [6, 7, EOS]]).tolist() == [[5, EOS, PAD], [EOS, PAD, PAD], [6, 7, EOS]]
    assert padded([[5], [6, 7]], IGNORED).tolist() == [[5, IGNORED], [6, 7]]


@pytest.mark.parametrize("room", [1, 7, 20, 1000])
def test_every_sentence_once_longest_first_and_no_batch_beyond_its_room(room):
    lengths = {4: 3, 1: 9, 7: 1, 0: 9, 2: 4, 9: 2}
    batches = list(longest_first(lengths, room))
    flat = [place for batch in batches for place in batch]
    assert flat == [1, 0, 2, 4, 9, 7]  # of equal ones the first stays the first
    for batch, after in zip(batches, [*batches[1:], []], strict=True):
        filled = lengths[batch[0]] * len(batch)
        assert filled <= room or len(batch) == 1
        assert not after or filled + lengths[batch[0]] > room  # another one would not have fitted
    assert list(longest_first({}, room)) == []


def test_a_device_that_nobody_knows_has_the_room_of_a_cpu():
    net = Transformer(vocabulary=9, width=8, heads=2, inner=16, encoder_layers=1, decoder_layers=1)
    assert room_for(net, {"cpu": 5, "cuda": 9}) == 5
    assert room_for(net.to("meta"), {"cpu": 5, "cuda": 9}) == 5


def test_the_mode_of_a_net_comes_back_even_if_looking_at_it_fails():
    net = torch.nn.Linear(2, 2)
    modes = []

    def fail():
        with evaluating(net):
            modes.append(net.training)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert (modes, net.training) == ([False], True)
    net.eval()
    with evaluating(net):
        pass
    assert not net.training
