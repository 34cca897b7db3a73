from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

pytest.importorskip("triton")

from softtargets.models.kernels import launch, ops
from softtargets.models.kernels.launch import Pooling
from softtargets.models.pooling import SameMaxPool

from .running import DTYPES, interpreted, near, numbers

pytestmark = interpreted

NAN, INF = math.nan, math.inf


def side_by_side(sides, kernel=2, stride=2):
    """As ``nn.MaxPool2d`` has it: what does not fill a window is left out."""
    return Pooling(kernel, stride, 0, 0, *((side - kernel) // stride + 1 for side in sides))


def overlapping(sides):
    """TensorFlow's "SAME" for windows of 3 with stride 2; of the padding, the odd place is at the end."""
    new = [(side + 1) // 2 for side in sides]
    top, left = (max(2 * (count - 1) + 3 - side, 0) // 2 for count, side in zip(new, sides, strict=True))
    return Pooling(3, 2, top, left, *new)


def windows(sides, pooling):
    """Every window, with its places (tap, y, x) in the order in which they are looked at, those inside only."""
    for row in range(pooling.new_height):
        for column in range(pooling.new_width):
            places = []
            for tap in range(pooling.kernel**2):
                y = row * pooling.stride - pooling.top + tap // pooling.kernel
                x = column * pooling.stride - pooling.left + tap % pooling.kernel
                if 0 <= y < sides[0] and 0 <= x < sides[1]:
                    places.append((tap, y, x))
            yield row, column, places


def slowly(maps, upstream, pooling):
    """Maxima and the gradient of the maps, number by number: the first of several wins, and what is no number does."""
    images, height, width, channels = maps.shape
    pooled = torch.empty(images, pooling.new_height, pooling.new_width, channels, dtype=torch.float64)
    gradient = torch.zeros(maps.shape, dtype=torch.float64)
    for image in range(images):
        for channel in range(channels):
            plane, pulled = maps[image, :, :, channel].tolist(), upstream[image, :, :, channel].tolist()
            for row, column, places in windows((height, width), pooling):
                best, winner = -INF, None
                for tap, y, x in places:
                    # Where nothing wins the first place does, if it is inside.
                    if plane[y][x] > best or math.isnan(plane[y][x]) or (tap == 0 and winner is None):
                        best, winner = plane[y][x], (y, x)
                pooled[image, row, column, channel] = best
                if winner is not None:
                    gradient[image, winner[0], winner[1], channel] += pulled[row][column]
    return pooled, gradient


def check(maps, pooling):
    upstream = numbers(
        len(maps), pooling.new_height, pooling.new_width, maps.shape[-1], dtype=maps.dtype, seed=1
    )
    pooled, winners = launch.pool(maps, pooling)
    exact, exact_gradient = slowly(maps, upstream, pooling)
    assert pooled.dtype == maps.dtype
    torch.testing.assert_close(pooled.double(), exact, rtol=0, atol=0, equal_nan=True)
    gradient = launch.gradient_of_pool(upstream, winners, *maps.shape[1:3], pooling)
    assert gradient.dtype == maps.dtype
    near(gradient, exact_gradient, 1e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sides", [(4, 4), (5, 6), (7, 3), (2, 9)])
def test_maxima_and_their_gradient_against_loops(sides, dtype):
    maps = numbers(2, *sides, 5, dtype=dtype)
    for pooling in (side_by_side(sides), overlapping(sides), side_by_side(sides, 2, 1)):
        check(maps, pooling)


def test_more_numbers_than_one_program_takes():
    maps = numbers(2, 9, 12, 20)
    assert maps[0].numel() > 2 * launch.POOL_BLOCK
    check(maps, side_by_side((9, 12)))
    check(maps, overlapping((9, 12)))


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    images=st.integers(1, 2),
    sides=st.tuples(st.integers(1, 7), st.integers(1, 7)),
    channels=st.integers(1, 4),
    kernel=st.integers(1, 4),
    stride=st.integers(1, 5),
    before=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    values=st.sampled_from(
        [(0.0,), (1.0, 2.0), (-1.0, 0.0, -INF), (-INF,), (INF, -INF, 3.0), (NAN, 1.0, -INF)]
    ),
    dtype=st.sampled_from(DTYPES),
    seed=st.integers(0, 99),
)
def test_ties_infinities_and_what_is_no_number(
    images, sides, channels, kernel, stride, before, values, dtype, seed
):
    """Few different numbers, so that most windows have several maxima."""
    generator = torch.Generator().manual_seed(seed)
    chosen = torch.randint(len(values), (images, *sides, channels), generator=generator)
    top, left = (min(each, kernel - 1) for each in before)
    new = [(side + first - 1) // stride + 1 for side, first in zip(sides, (top, left), strict=True)]
    check(torch.tensor(values, dtype=dtype)[chosen], Pooling(kernel, stride, top, left, *new))


TIED = ["distinct", "tied", "no number", "infinite"]


def values(kind, *shape):
    maps = numbers(*shape)
    if kind == "tied":
        maps = maps.round()
    elif kind == "no number":
        maps[maps > 1] = NAN
    elif kind == "infinite":
        maps[maps < 0.5] = -INF
    return maps


@pytest.mark.parametrize("kind", TIED)
@pytest.mark.parametrize(("kernel", "stride"), [(2, 2), (3, 2), (3, 1), (2, 3)])
def test_torch_pools_the_same_way_and_gives_the_gradient_to_the_same_places(kind, kernel, stride):
    maps = values(kind, 2, 7, 8, 3).requires_grad_()
    upstream = numbers(2, (7 - kernel) // stride + 1, (8 - kernel) // stride + 1, 3, seed=1)
    wanted = functional.max_pool2d(maps.permute(0, 3, 1, 2), kernel, stride).permute(0, 2, 3, 1)
    found, _ = ops.max_pool(maps, list(side_by_side((7, 8), kernel, stride)))
    torch.testing.assert_close(found, wanted, rtol=0, atol=0, equal_nan=True)
    gradients = [torch.autograd.grad(each, maps, upstream)[0] for each in (found, wanted)]
    torch.testing.assert_close(*gradients, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", TIED)
@pytest.mark.parametrize("sides", [(4, 4), (5, 5), (5, 8), (1, 3)])
def test_same_padding_is_that_of_the_layer(kind, sides):
    maps = values(kind, 2, *sides, 3).requires_grad_()
    wanted = SameMaxPool()(maps.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
    found, _ = ops.max_pool(maps, list(overlapping(sides)))
    torch.testing.assert_close(found, wanted, rtol=0, atol=0, equal_nan=True)
    upstream = numbers(*wanted.shape, seed=1)
    gradients = [torch.autograd.grad(each, maps, upstream)[0] for each in (found, wanted)]
    torch.testing.assert_close(*gradients, rtol=1e-6, atol=1e-6)


def test_windows_as_large_as_a_byte_can_count():
    """Which of its 256 places won is kept in a byte."""
    maps = torch.zeros(1, 16, 17, 1)
    maps[0, 15, 15] = 1.0
    pooling = side_by_side((16, 17), 16, 1)
    pooled, winners = launch.pool(maps, pooling)
    assert pooled.flatten().tolist() == [1.0, 1.0]
    assert winners.flatten().tolist() == [255, 254]
    gradient = launch.gradient_of_pool(torch.tensor([2.0, 3.0]).view_as(pooled), winners, 16, 17, pooling)
    assert gradient[0, 15, 15].item() == 5
    assert gradient.sum().item() == 5


def test_nothing_is_read_before_or_after_the_maps():
    """Around them lies NaN, which would win."""
    maps = numbers(1, 5, 5, 3)
    around = torch.full((3 * maps.numel(),), NAN)
    inside = around[maps.numel() : 2 * maps.numel()].view_as(maps).copy_(maps)
    for pooling in (overlapping((5, 5)), side_by_side((5, 5)), Pooling(4, 3, 3, 3, 3, 3)):
        for one, other in zip(launch.pool(inside, pooling), launch.pool(maps, pooling), strict=True):
            assert torch.equal(one, other)


# --- torch around the kernels ---


def test_any_number_of_dimensions_before_the_maps():
    maps, pooling = numbers(2, 3, 4, 5, 2), overlapping((4, 5))
    pooled, winners = launch.pool(maps, pooling)
    upstream = numbers(*pooled.shape, seed=1)
    gradient = launch.gradient_of_pool(upstream, winners, 4, 5, pooling)
    for run in range(2):
        alone, own = launch.pool(maps[run], pooling)
        assert torch.equal(pooled[run], alone)
        assert torch.equal(winners[run], own)
        assert torch.equal(gradient[run], launch.gradient_of_pool(upstream[run], own, 4, 5, pooling))


def test_an_upstream_gradient_may_lie_in_memory_as_it_likes():
    maps = numbers(2, 4, 4, 3).requires_grad_()
    pooled, _ = ops.max_pool(maps, list(overlapping((4, 4))))
    upstream = numbers(2, 3, 2, 2, seed=1).permute(0, 2, 3, 1)
    (found,) = torch.autograd.grad(pooled, maps, upstream, retain_graph=True)
    (wanted,) = torch.autograd.grad(pooled, maps, upstream.contiguous())
    assert torch.equal(found, wanted)


def test_the_operators_keep_to_the_rules_of_torch():
    pooling = list(overlapping((4, 5)))
    maps = numbers(2, 4, 5, 3)
    pooled, winners = ops.max_pool(maps, pooling)
    torch.library.opcheck(ops.max_pool, (maps.requires_grad_(), pooling))
    torch.library.opcheck(ops.max_pool_gradient, (pooled, winners, 4, 5, pooling))


@pytest.mark.parametrize("dim", [0, 2, -1])
def test_under_vmap_every_net_gets_what_it_gets_alone(dim):
    maps, pooling = (
        numbers(3, 2, 4, 5, 2).movedim(0, dim).contiguous().requires_grad_(),
        list(overlapping((4, 5))),
    )
    found, _ = torch.vmap(lambda own: ops.max_pool(own, pooling), in_dims=dim)(maps)
    alone = torch.stack([ops.max_pool(maps.select(dim, run).contiguous(), pooling)[0] for run in range(3)])
    assert torch.equal(found, alone)
    upstream = numbers(*found.shape, seed=1)
    one, other = (torch.autograd.grad(each, maps, upstream)[0] for each in (found, alone))
    assert torch.equal(one, other)
