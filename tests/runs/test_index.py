"""The index of a store: what it spares, when it is written, and that it is never believed against the runs."""

from __future__ import annotations

import gc
import json
import pickle

import pytest

from softtargets.exceptions import RunError
from softtargets.recipes import Recipe
from softtargets.runs import RunStore
from softtargets.runs import index as index_module
from softtargets.runs import store as module
from softtargets.runs.index import INDEX, NEW_ONE_IN, RunIndex, stamp_of


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "runs")


def finish(store, recipe, seeds):
    """Concluded runs by the real writer."""
    for seed in seeds:
        with store.claim(recipe.replace({"seed": seed})) as writer:
            writer.fail("it was not meant to succeed", [], {"seconds": 0.0, "finished": "2026-01-01"})


@pytest.fixture
def read(monkeypatch):
    """The runs that are read, one after the other."""
    found, one = [], module._read_entry
    monkeypatch.setattr(
        module, "_read_entry", lambda directory: found.append(directory.name) or one(directory)
    )
    return found


def test_the_file_is_written_when_one_entry_in_so_many_is_new(store, recipe, read):
    """For a store of n runs that are finished one by one, all that is written stays in proportion to n."""
    count = 2 * NEW_ONE_IN
    finish(store, recipe, range(count))
    store.entries()
    before = stamp_of(store.root / INDEX)
    for more in (1, 2):
        finish(store, recipe, [count + more])
        assert len(store.entries()) == count + more
        assert stamp_of(store.root / INDEX) == before
    read.clear()
    assert len(RunStore(store.root).entries()) == count + 2  # another process reads the two that are new
    assert len(read) == 2
    finish(store, recipe, [count + 3])
    assert len(store.entries()) == count + 3
    assert stamp_of(store.root / INDEX) != before
    read.clear()
    assert len(RunStore(store.root).entries()) == count + 3
    assert read == []


def test_runs_that_are_gone_count_as_new_does(store, recipe):
    count = NEW_ONE_IN
    finish(store, recipe, range(count))
    ids = [entry.id for entry in store.entries()]
    store.delete(ids[0])
    assert len(store.entries()) == count - 1
    assert len(json.loads((store.root / INDEX).read_text())["runs"]) == count
    store.delete(ids[1])
    assert len(store.entries()) == count - 2
    assert len(json.loads((store.root / INDEX).read_text())["runs"]) == count - 2


def test_the_file_is_read_once_and_again_when_another_process_has_written_it(
    store, recipe, read, monkeypatch
):
    files = []
    real = index_module.read_json
    monkeypatch.setattr(
        index_module, "read_json", lambda path, **how: files.append(path) or real(path, **how)
    )
    finish(store, recipe, range(3))
    for _ in range(3):
        assert len(store.entries()) == 3
    assert len(files) == 1
    assert len(read) == 3
    finish(store, recipe, [3])
    other = RunStore(store.root)
    assert len(other.entries()) == 4
    assert len(read) == 4
    assert len(store.entries()) == 4
    assert len(read) == 4
    assert len(files) == 3


def test_where_nothing_can_be_written_memory_serves(store, recipe, read, monkeypatch):
    finish(store, recipe, range(3))

    def refuse(path, content):
        raise module.StorageError("the disk is read-only")

    monkeypatch.setattr(index_module, "write_atomically", refuse)
    assert len(store.entries()) == len(store.entries()) == 3
    assert len(read) == 3
    assert not (store.root / INDEX).exists()


def test_what_is_in_memory_does_not_travel_to_other_processes(store, recipe):
    finish(store, recipe, range(5))
    store.entries()
    sent = pickle.dumps(store)
    assert len(sent) < 500
    assert pickle.loads(sent).root == store.root
    assert pickle.loads(sent).entries() == store.entries()


def test_garbage_is_collected_as_before(store, recipe):
    finish(store, recipe, [0])
    for enabled in (True, False):
        (gc.enable if enabled else gc.disable)()
        try:
            RunIndex(store.root / INDEX).read()
            (store.root / INDEX).write_text("{")
            RunIndex(store.root / INDEX).read()
            assert gc.isenabled() is enabled
        finally:
            gc.enable()


def test_a_whole_id_is_not_looked_for_among_all_runs(store, recipe, monkeypatch):
    finish(store, recipe, range(2))
    ids = [entry.id for entry in store.entries()]

    def refuse(self):
        raise AssertionError("all runs are listed")

    with monkeypatch.context() as only:
        only.setattr(RunStore, "_ids", refuse)
        assert store.get(ids[0]).id == ids[0]
        assert store.delete(ids[0]) == ids[0]
        with pytest.raises(AssertionError, match="all runs are listed"):
            store.get(ids[1][:15])
    with pytest.raises(RunError, match=f"no run '{ids[0]}'"):
        store.get(ids[0])
    assert store.get(ids[1][:15]).id == ids[1]


def test_a_recipe_that_is_known_is_not_made_again(store, recipe, monkeypatch):
    finish(store, recipe, [1])
    known = recipe.replace({"seed": 1})

    def refuse(tree):
        raise AssertionError("the recipe is made again")

    with monkeypatch.context() as only:
        only.setattr(Recipe, "from_dict", refuse)
        assert store.find(known).status == "failed"
        store.claim(known).release()
    path = store.root / known.id / "recipe.json"
    tree = json.loads(path.read_text())
    for edit in (
        {"seed": 2},
        {"seed": True},
        {"batch": 64},
        {"a field": 1},
    ):  # True is 1 for Python, not for us
        path.write_text(json.dumps(tree | edit))
        for ask in (store.find, store.claim):
            with pytest.raises(RunError, match="edited by hand"):
                ask(known)
    path.write_text(json.dumps({key: value for key, value in tree.items() if key != "probes"}))
    with pytest.raises(RunError, match="bytes, not"):  # it says the same, and is no longer what was sealed
        store.find(known)
    store.claim(known).release()
