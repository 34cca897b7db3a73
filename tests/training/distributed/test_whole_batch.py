"""What a process knows of a batch that it has some rows of."""

from __future__ import annotations

import torch

from softtargets.training.distributed.whole_batch import WholeBatch

from .fakes import in_threads


def test_labels_of_all_rows_are_put_together_in_their_order_and_taken_apart_again():
    numbers = torch.arange(12.0)  # five rows would be 15: of four rows three labels each

    def own(crew):
        whole = WholeBatch(crew)
        rows = whole.is_of(4, 12)
        mine = numbers.view(4, 3)[slice(0, 1) if whole.idle else rows].flatten()
        everyones = whole.all_labels(mine)
        return everyones, whole.own_labels(everyones), mine, whole.idle, whole.labels

    for ranks in (1, 2, 3, 6):
        found = in_threads(ranks, own)
        for everyones, back, mine, idle, labels in found:
            assert torch.equal(everyones, numbers)
            assert labels == 12
            assert len(back) == len(mine)
            assert idle or torch.equal(back, mine)
        assert [idle for *_, idle, _ in found] == [rank >= 4 for rank in range(ranks)]


def test_what_is_added_up_leaves_what_was_given_alone():
    def own(crew):
        mine = torch.full((2,), float(crew.share.rank + 1))
        return mine, WholeBatch(crew).added_up(mine)

    for rank, (mine, total) in enumerate(in_threads(3, own)):
        assert mine.tolist() == [rank + 1.0] * 2
        assert total.tolist() == [6.0] * 2
