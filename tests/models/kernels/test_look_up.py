from __future__ import annotations

import pytest
import torch

pytest.importorskip("triton")

from softtargets.models.kernels import joining, launch
from softtargets.models.look_up import _by_kernel

from .running import DTYPES, interpreted, near, numbers


def drawn(*shape, most, seed=0):
    return torch.randint(0, most, shape, generator=torch.Generator().manual_seed(seed))


@interpreted
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("places", "width", "count", "most"),
    [(1, 1, 1, 1), (9, 5, 7, 4), (2 * launch.PLACES + 3, launch.COLUMNS + 6, 3, 2), (40, 64, 12, 12)],
)
def test_each_row_is_the_sum_of_what_came_back_to_it(dtype, places, width, count, most):
    upstream, rows = numbers(places, width, dtype=dtype), drawn(places, most=most)
    found = launch.gradient_of_table(upstream, rows, count)
    exact = torch.zeros(count, width, dtype=torch.float64).index_add_(0, rows, upstream.double())
    size = torch.zeros(count, width, dtype=torch.float64).index_add_(0, rows, upstream.double().abs())
    assert found.dtype == dtype
    near(found, exact, 2e-6 * size)


@interpreted
def test_nothing_looked_up_is_nothing():
    found = launch.gradient_of_table(numbers(0, 3), torch.zeros(0, dtype=torch.int64), 2)
    assert torch.equal(found, torch.zeros(2, 3))


@interpreted
def test_a_table_in_a_stack_gets_the_bits_it_would_get_alone():
    upstream, tokens = numbers(3, 2, 90, 5), drawn(3, 2, 90, most=4)
    together = _by_kernel(upstream, tokens, 6, stacked=True)
    for run in range(3):
        assert torch.equal(together[run], _by_kernel(upstream[run], tokens[run], 6, stacked=False))


@interpreted
def test_what_lies_otherwise_in_memory_is_read_in_order():
    upstream, rows = numbers(4, 6).T, torch.tensor([1, 0, 1, 1, 0, 1])
    dense = upstream.contiguous()
    assert torch.equal(launch.gradient_of_table(upstream, rows, 2), launch.gradient_of_table(dense, rows, 2))


@interpreted
@pytest.mark.parametrize(
    ("places", "most"), [(1, 1), (7, 3), (launch.OTHERS + 5, 40), (2 * launch.OTHERS, 9)]
)
def test_places_are_put_in_order_as_a_stable_sort_does(places, most):
    rows = drawn(places, most=most)
    for found, wanted in zip(launch.in_order(rows), rows.sort(stable=True), strict=True):
        assert torch.equal(found, wanted)


@interpreted
def test_a_row_apart_is_left_to_the_caller():
    upstream, rows = numbers(60, 20), drawn(60, most=3)
    whole = launch.gradient_of_table(upstream, rows, 5)
    rest = launch.gradient_of_table(upstream, rows, 5, apart=1)
    assert torch.equal(rest[[0, 2, 3, 4]], whole[[0, 2, 3, 4]])
    joining.sum_of_rows(upstream, rows, 1, into=rest[1])
    assert torch.allclose(rest[1], whole[1], atol=1e-5)


@pytest.mark.cuda
@pytest.mark.parametrize("places", [1, 4000, launch.MOST_COMPARED, launch.MOST_COMPARED + 1])
def test_on_a_gpu_many_places_are_put_in_order(places):
    rows = drawn(places, most=8000).cuda()
    rows[::5] = 0
    for found, wanted in zip(launch._in_order(rows, 8000), rows.sort(stable=True), strict=True):
        assert torch.equal(found, wanted)
