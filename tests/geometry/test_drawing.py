from __future__ import annotations

import pytest
import torch
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from softtargets.geometry.drawing import common_limits, draw_plane


def test_each_class_has_its_points_its_colour_and_its_name():
    points = torch.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0]])
    axes = Figure().subplots()
    draw_plane(axes, points, torch.tensor([7, 1, 7, 3]), {7: "cat", 1: "dog"}, {7: "#111111", 1: "#222222"})
    cats, dogs = axes.collections
    assert cats.get_offsets().tolist() == [[0, 1], [4, 5]]
    assert dogs.get_offsets().tolist() == [[2, 3]]
    assert [part.get_label() for part in axes.collections] == ["cat", "dog"]
    assert [to_hex(part.get_facecolor()[0]) for part in axes.collections] == ["#111111", "#222222"]


def test_common_limits_are_a_square_around_all_panels():
    panels = [torch.tensor([[0.0, 0.0], [10.0, 1.0]]), torch.tensor([[4.0, -3.0]])]
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
