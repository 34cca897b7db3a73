from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.scale.grid import grid
from benchmarks.scale.results import COMPETITIONS, OPERATIONS, ClaimCase, StoreCase
from softtargets.exceptions import SofttargetsError


def test_all_of_it():
    found = grid("cpu")
    assert [case.runs for case in found.cases if isinstance(case, StoreCase)] == [
        10,
        100,
        1000,
        10_000,
        100_000,
    ]
    assert [case.processes for case in found.cases if isinstance(case, ClaimCase)] == [1, 2, 4, 8]
    assert found.names(StoreCase(10)) == OPERATIONS
    assert found.names(ClaimCase(1, 10)) == COMPETITIONS
    assert found.repeats == 3


def test_some_of_it():
    found = grid("cpu", sizes="20,10", operations="find,take", processes="3", claims=7, where=Path("there"))
    assert found.cases == (StoreCase(10), StoreCase(20), ClaimCase(3, 7))
    assert found.names(StoreCase(10)) == ("find", "take")
    assert found.data_dir == Path("there")
    assert [str(case) for case in found.cases] == ["10 runs", "20 runs", "3 processes, 7 runs"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"sizes": "ten"}, "--sizes: 'ten' is not a whole number from 1"),
        ({"operations": "fnd"}, "--operations: no 'fnd' (did you mean 'find'?)"),
        ({"claims": 0}, "--claims must be at least 1"),
        ({"repeats": 0}, "--repeats must be at least 1"),
    ],
)
def test_refusals(words, said):
    with pytest.raises(SofttargetsError) as caught:
        grid("cpu", **words)
    assert said in str(caught.value)
