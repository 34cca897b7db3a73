from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from softtargets.training.tasks.translation.buckets import Bucket, into_buckets, padding

LENGTHS = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), min_size=1, max_size=40)


def room(longer, ends):
    """What all pairs take on their longer side if each is filled up to the next of these ends."""
    return sum(min(end for end in ends if end >= length) for length in longer)


@settings(max_examples=60, deadline=None)
@given(pairs=LENGTHS, most=st.integers(1, 4), even=st.sampled_from([1, 4]))
def test_every_pair_is_in_one_bucket_that_it_fits_into_and_no_other_bounds_take_less_room(pairs, most, even):
    source, target = (np.array(side) for side in zip(*pairs, strict=True))
    buckets = into_buckets(source, target, most, even)
    assert len(buckets) <= most
    assert sorted(one for bucket in buckets for one in bucket.members) == list(range(len(pairs)))
    filled = [-(-max(pair) // even) * even for pair in pairs]
    ends = []
    for bucket in buckets:
        assert bucket.source == -(-source[bucket.members].max() // even) * even
        assert bucket.target == -(-target[bucket.members].max() // even) * even
        ends.append(max(filled[one] for one in bucket.members))
        assert ends == sorted(set(ends))
    there = sorted(set(filled))
    others = (
        room(filled, [*chosen, there[-1]])
        for count in range(min(most, len(there)))
        for chosen in combinations(there[:-1], count)
    )
    assert room(filled, ends) == min(others)


def test_padding_is_the_share_of_target_positions_without_a_token():
    target = np.array([3, 1, 8])
    buckets = [Bucket(np.array([0, 1]), 4, 4), Bucket(np.array([2]), 4, 8)]
    assert padding(buckets, target) == pytest.approx(1 - 12 / 16)
    assert padding([], np.array([], dtype=np.int64)) == 0.0


@pytest.mark.parametrize(("tokens", "rows"), [(40, 4), (39, 3), (10, 1), (5, 1), (4000, 7)])
def test_a_batch_holds_as_many_rows_as_fit_on_either_side_and_there_are(tokens, rows):
    assert Bucket(np.arange(7), 10, 8).rows(tokens) == rows
