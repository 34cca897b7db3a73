from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from softtargets.information.kernels import blocks, nearest


@settings(max_examples=60, deadline=None)
@given(
    ranges=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), min_size=1, max_size=40),
    size=st.integers(1, 60),
)
def test_every_point_is_in_one_block_with_all_its_bells(ranges, size):
    low, high = [a for a, _ in ranges], [a + n for a, n in ranges]
    seen = []
    for points, bells in blocks(torch.tensor(low), torch.tensor(high), size):
        rows = range(points.start, points.stop)
        seen += rows
        assert bells.start == min(low[row] for row in rows)
        assert bells.stop == max(high[row] for row in rows)
        assert len(rows) == 1 or len(rows) * (bells.stop - bells.start) <= size
    assert seen == list(range(len(ranges)))


@pytest.mark.parametrize("seed", range(5))
def test_the_nearest_against_loops(seed):
    generator = torch.Generator().manual_seed(seed)
    centres = torch.randn(20, generator=generator).sort().values
    points = 2 * torch.randn(50, generator=generator)
    expected = [min(range(20), key=lambda k: abs(y - centres[k].item())) for y in points.tolist()]
    assert nearest(points, centres).tolist() == expected
