from __future__ import annotations

import pytest
import torch

from softtargets.translation.ranking import best


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("length", "count"), [(1, 1), (5, 5), (300, 4), (1100, 4), (1024, 4), (5000, 10), (128, 0)]
)
def test_the_best_are_those_of_a_stable_sort(dtype, length, count):
    generator = torch.Generator().manual_seed(length)
    values = torch.randint(-6, 3, (40, length), generator=generator).to(dtype) / 4  # many are equal
    values[1::3] = torch.randn(len(values[1::3]), length, generator=generator).to(dtype)
    values[2, : length // 2] = -torch.inf
    values[3] = -torch.inf
    values[4, ::2] = -0.0
    found, places = best(values, count)
    for row, numbers, where in zip(values.tolist(), found.tolist(), places.tolist(), strict=True):
        expected = sorted(range(length), key=lambda place: (-row[place], place))[:count]
        assert where == expected
        assert numbers == [row[place] for place in expected]


@pytest.mark.parametrize("negative", [False, True])  # inf - inf has the sign on a CPU
@pytest.mark.parametrize("length", [50, 5000])
def test_not_a_number_is_not_lost(length, negative):
    values = torch.zeros(1, length)
    values[0, length - 3] = -torch.tensor(torch.nan) if negative else torch.nan
    assert values[0, length - 3].signbit() == negative
    assert best(values, 2)[0].isnan().any()
