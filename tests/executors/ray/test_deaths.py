"""Retries end, and no run is blamed for another."""

from __future__ import annotations

from softtargets.executors.ray.deaths import Deaths


def test_a_run_that_never_gets_further_is_given_up_after_its_retries():
    deaths = Deaths(retries=3)
    assert [deaths.died({"bad": 7}) for _ in range(4)] == [[], [], [], ["bad"]]
    assert deaths.count("bad") == 4


def test_a_run_that_gets_further_is_never_given_up():
    deaths = Deaths(retries=1)
    assert not any(deaths.died({"run": step}) for step in range(1, 50))
    assert deaths.count("run") == 1
    assert deaths.died({"run": 49}) == ["run"]


def test_only_one_is_to_blame_in_the_end():
    # A pack of four, one of which kills its worker whenever it trains.
    deaths, pack, given_up, alone = Deaths(retries=3), {"a", "bad", "b", "c"}, [], []
    while pack:
        together = sorted(run for run in pack if not deaths.is_alone(run))
        group = together or [min(pack)]
        alone += group if len(group) == 1 else []
        if "bad" in group:
            ended = deaths.died(dict.fromkeys(group, 0))
            given_up += ended
            pack -= set(ended)
        else:
            pack -= set(group)
    assert given_up == ["bad"]
    assert alone.count("a") == alone.count("b") == alone.count("c") == 1
