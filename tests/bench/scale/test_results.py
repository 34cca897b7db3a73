from __future__ import annotations

import pytest

from bench.scale.making import claim, entry, made_up, store
from benchmarks.scale import BENCH
from benchmarks.scale.head import HeadLoad, loads
from benchmarks.scale.results import EACH, OPERATIONS, WHOLE, exponent
from benchmarks.scale.tables import TITLES


def test_every_operation_is_for_each_or_for_all_and_has_a_title():
    assert set(EACH) & set(WHOLE) == set()
    assert set(EACH) | set(WHOLE) == set(OPERATIONS) == set(TITLES)


def test_exponents():
    assert exponent((100, 3.0), (10_000, 3.0)) == 0.0
    assert exponent((100, 3.0), (1000, 300.0)) == pytest.approx(2.0)
    assert exponent((100, 3.0), (1000, 300.0)) == exponent((1000, 300.0), (100, 3.0))


def test_seconds_are_those_of_the_fastest_turn_for_one_or_for_all():
    found = store(100, [("find", 0.25), ("plan", 3.0)])
    assert found.seconds("find") == pytest.approx(0.25)
    assert found.entry("find").time.median == pytest.approx(1.5)
    assert found.seconds("plan") == 3.0
    assert found.seconds("merge") is None
    assert entry("find", 3.0, count=6).each == 0.5
    assert claim(2, 10, 30).entry("finishes").per_second == 30.0


def test_results_come_back_from_json(tmp_path):
    made_up().save(tmp_path / "results.json")
    assert BENCH.results().load(tmp_path / "results.json") == made_up()


def test_how_busy_a_head_is():
    """So many workers with runs of that length ask for workers / length seconds of the head in each second."""
    load = HeadLoad("merge", 0.004)
    assert load.per_second == 250.0
    for workers in (1, 8, 512):
        length = load.shortest(workers, busy=0.1)
        assert workers / length * load.seconds == pytest.approx(0.1)
    assert load.shortest(64, busy=1.0) == pytest.approx(64 * 0.004)


def test_the_costs_are_those_of_large_stores_and_the_fastest_competition():
    one, many, disk = loads(made_up())
    assert (one.seconds, many.seconds) == (pytest.approx(0.002), pytest.approx(0.002))
    assert disk.seconds == pytest.approx(1 / 400)
    assert loads(BENCH.results()) == []
