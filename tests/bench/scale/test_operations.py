from __future__ import annotations

import pytest

from benchmarks.scale import operations
from benchmarks.scale.operations import _OPERATIONS, Broken, done, done_apart
from benchmarks.scale.results import OPERATIONS
from benchmarks.scale.stores import fill, recipes
from softtargets.runs import RunStore

RUNS = 5


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = RunStore(tmp_path_factory.mktemp("scale") / "runs")
    fill(store, recipes(RUNS))
    return store


def test_there_is_one_for_each_name():
    assert set(_OPERATIONS) == set(OPERATIONS)


@pytest.mark.parametrize("name", OPERATIONS)
def test_it_is_timed_and_leaves_the_store_as_it_was(name, store, monkeypatch):
    monkeypatch.setattr(operations, "FEW", 3)
    before = {path.relative_to(store.root) for path in store.root.rglob("*") if path.name != "index.json"}
    found = done(name, store.root, RUNS)
    assert found.seconds > 0
    assert found.count >= 1
    assert found.busy > 0
    assert {
        path.relative_to(store.root) for path in store.root.rglob("*") if path.name != "index.json"
    } == before
    assert [path.name for path in store.root.parent.iterdir()] == ["runs"]


def test_what_is_timed_is_the_operation(store, tmp_path, monkeypatch):
    monkeypatch.setattr(operations, "FEW", 3)
    new = recipes(3, start=RUNS)
    task = _OPERATIONS["write"](RunStore(tmp_path / "a"), RUNS, tmp_path)
    assert all(RunStore(tmp_path / "a").find(recipe) is None for recipe in new)
    task.run()
    assert all(RunStore(tmp_path / "a").find(recipe).status == "finished" for recipe in new)
    assert task.count == 3
    task = _OPERATIONS["carry 1"](RunStore(tmp_path / "b"), RUNS, tmp_path)
    task.run()
    assert not any(RunStore(tmp_path / "b").find(recipe).is_light for recipe in new)
    task = _OPERATIONS["merge"](store, RUNS, tmp_path)
    task.run()
    assert len(RunStore(tmp_path / "merged").entries()) == RUNS


def test_in_a_process_of_its_own(store):
    found = done_apart("find", store.root, RUNS)
    assert found.count == RUNS
    assert 0 < found.seconds < 60
    with pytest.raises(Broken, match="KeyError"):
        done_apart("fnd", store.root, RUNS)
