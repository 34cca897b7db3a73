from __future__ import annotations

import pytest
import torch

from softtargets.models.pooling import Average, SameMaxPool

from .looking import same_pooled

SIDES = [(4, 4), (5, 5), (24, 24), (6, 9), (7, 4), (1, 2), (3, 1), (1, 1)]


@pytest.mark.parametrize("sides", SIDES)
def test_pooling_against_loops(sides):
    maps = torch.randn(2, 3, *sides, dtype=torch.float64)  # negative values too: padding must not win
    assert torch.equal(SameMaxPool()(maps), same_pooled(maps))


@pytest.mark.parametrize("sides", SIDES)
def test_the_gradient_of_a_window_goes_to_its_maximum(sides):
    maps = torch.randn(2, 3, *sides, dtype=torch.float64, requires_grad=True)
    pooled = SameMaxPool()(maps)
    upstream = torch.randn_like(pooled)
    (gradient,) = torch.autograd.grad(pooled, maps, upstream)
    # No two numbers are alike: each window's maximum is in one place of its plane.
    won = pooled.detach().flatten(2)[..., None] == maps.detach().flatten(2)[:, :, None]
    assert (won.sum(-1) == 1).all()
    expected = (won * upstream.flatten(2)[..., None]).sum(2).view_as(maps)
    torch.testing.assert_close(gradient, expected, rtol=1e-13, atol=1e-15)


@pytest.mark.parametrize("sides", [(1, 1), (4, 3), (8, 8)])
def test_the_average_against_loops(sides):
    maps = torch.randn(2, 3, *sides, dtype=torch.float64)
    found = Average()(maps)
    assert found.shape == (2, 3)
    for image, planes in zip(found.tolist(), maps.tolist(), strict=True):
        for mean, plane in zip(image, planes, strict=True):
            numbers = [number for line in plane for number in line]
            assert mean == pytest.approx(sum(numbers) / len(numbers), rel=1e-12)
