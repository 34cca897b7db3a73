from __future__ import annotations

import os

from benchmarks.scale.stores import campaign_of, disk, fill, prepare, recipes, study_of
from softtargets.campaign import cells_of
from softtargets.runs import RunStore
from softtargets.training import kind_of_run, train


def test_recipes_are_the_same_in_sweeps_of_any_size():
    few, many = recipes(5), recipes(25)
    assert [recipe.id for recipe in few] == [recipe.id for recipe in many[:5]]
    assert [recipe.id for recipe in recipes(3, start=20)] == [recipe.id for recipe in many[20:23]]
    assert len({recipe.id for recipe in many}) == 25
    assert len({kind_of_run(recipe) for recipe in many}) == 2


def test_runs_are_finished_whole_and_the_same_whoever_makes_them(tmp_path):
    one, other = RunStore(tmp_path / "a"), RunStore(tmp_path / "b")
    fill(one, recipes(4))
    fill(one, recipes(6))  # those that are there stay
    fill(other, reversed(recipes(6)))
    assert {entry.status for entry in one.entries()} == {"finished"}
    for recipe in recipes(6):
        run = one.find(recipe)
        assert run.problems() == []
        assert run.history() == other.find(recipe).history()
        assert run.manifest["files"] == other.find(recipe).manifest["files"]
        assert run.predictions("test").features.shape == (32, 4)


def test_stores_that_do_not_wait_for_the_disk_have_the_same_bytes(tmp_path, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(descriptor) or real(descriptor))
    fill(RunStore(tmp_path / "a"), recipes(3))
    assert len(synced) > 3 * 5
    synced.clear()
    prepare(RunStore(tmp_path / "b"), recipes(3))
    assert synced == []

    def contents(root):
        return {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}

    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    fill(RunStore(tmp_path / "c"), recipes(1))
    assert synced  # it waits again


def test_the_engine_takes_them_for_its_own(tmp_path):
    """Nothing is trained again, and no prediction is missing: what is measured is what a user has."""
    store = RunStore(tmp_path)
    fill(store, recipes(3))
    before = {entry.id: entry.finished for entry in store.entries()}
    runs = train(recipes(3), store, device="cpu", keep=("test",))
    assert {run.id: run.provenance["finished"] for run in runs} == before


def test_a_trained_run_has_the_same_files(tmp_path):
    made, trained = RunStore(tmp_path / "made"), RunStore(tmp_path / "trained")
    (recipe,) = recipes(1)
    fill(made, [recipe])
    (run,) = train([recipe], trained, device="cpu", keep=("test",))
    assert made.find(recipe).manifest["files"].keys() == run.manifest["files"].keys()
    ours, theirs = made.find(recipe).weights(), run.weights()
    assert {name: value.shape for name, value in ours.items()} == {
        name: value.shape for name, value in theirs.items()
    }


def test_what_a_directory_takes(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").write_bytes(b"x" * 5000)
    (tmp_path / "b").write_bytes(b"")
    taken, number = disk(tmp_path)
    assert number == 3
    assert 5000 <= taken <= 40_000


def test_a_study_and_a_campaign_of_them(tmp_path):
    study = study_of(recipes(7))
    assert len(study.trials(study.settings(None, {}))) == 7
    assert set(cells_of(campaign_of(study, tmp_path))) == {recipe.id for recipe in recipes(7)}
