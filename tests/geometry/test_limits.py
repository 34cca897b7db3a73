from __future__ import annotations

import pytest
import torch

from softtargets.geometry.limits import common_limits


def test_common_limits_are_a_square_around_all_panels():
    panels = [torch.tensor([[0.0, 0.0], [10.0, 1.0]]), torch.tensor([[4.0, -3.0]]), torch.zeros(0, 2)]
    x, y = common_limits(panels, margin=0.1)
    assert x == pytest.approx((-1, 11))
    assert y == pytest.approx((-7, 5))


@pytest.mark.parametrize("seed", range(5))
def test_no_point_lies_outside_the_common_limits(seed):
    generator = torch.Generator().manual_seed(seed)
    panels = [torch.randn(20, 2, generator=generator) * (1 + k) + k for k in range(3)]
    (left, right), (bottom, top) = common_limits(panels)
    every = torch.cat(panels)
    assert left < every[:, 0].min()
    assert every[:, 0].max() < right
    assert bottom < every[:, 1].min()
    assert every[:, 1].max() < top
    assert right - left == pytest.approx(top - bottom)


def test_one_point_has_limits_and_none_has_not():
    assert common_limits([torch.tensor([[2.0, 3.0]])]) == ((1, 3), (2, 4))
    with pytest.raises(ValueError, match="need at least one point to find limits for"):
        common_limits([torch.zeros(0, 2)])
