"""Processes that do not see the same are told so in one line, before anything is trained."""

from __future__ import annotations

import os

import pytest
import yaml

from softtargets.runs import RunStore

from .launching import commanded, said, together
from .trainings import BASE, trained


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump(BASE.to_dict()))
    return path


def refused(work, tmp_path, *words, ranks=2, **options):
    """What rank 0 says last; the others say nothing, and all end with the code of a mistake."""
    assert together(ranks, work, *words, folder=tmp_path, **options) == [2] * ranks
    assert all(said(tmp_path, rank) == "" for rank in range(1, ranks))
    (*_, line) = said(tmp_path, 0).splitlines()
    return line


def as_others(changes, *words):
    """A command that is another one in processes that do not lead."""
    commanded(*words, *(changes if os.environ["RANK"] != "0" else ()))


def test_other_recipes_are_told_apart(file, tmp_path):
    words = ("train", file, "--device", "cpu", "--runs-dir", tmp_path / "runs")
    line = refused(as_others, tmp_path, ("--set", "seed=1"), *words, ranks=3)
    other = BASE.replace({"seed": 1}).id
    assert line == (
        f"error: rank 1 has a different recipe from rank 0: {other} instead of {BASE.id}; start all ranks with the same"
    ) or line.startswith("error: rank 2 has a different recipe")
    assert not (tmp_path / "runs").exists()


def test_so_are_other_directories_of_runs(file, tmp_path):
    words = ("train", file, "--device", "cpu", "--runs-dir", tmp_path / "runs")
    line = refused(as_others, tmp_path, ("--runs-dir", str(tmp_path / "other")), *words)
    assert f"rank 1 has a different directory of runs from rank 0: {tmp_path}/other instead of" in line


def of_other_version(*words):
    import softtargets

    if os.environ["RANK"] == "1":
        softtargets.__version__ = "0.0.1"
    commanded(*words)


def test_so_are_other_versions(file, tmp_path):
    words = ("train", file, "--device", "cpu", "--runs-dir", tmp_path / "runs")
    assert "rank 1 has a different version of softtargets from rank 0: 0.0.1, " in refused(
        of_other_version, tmp_path, *words
    )


def with_other_data(*words):
    from softtargets.training.tasks.images import task

    load = task.load

    def other(*given, **named):
        found = load(*given, **named)
        found.images[0] = 255 - found.images[0]
        return found

    if os.environ["RANK"] == "1":
        task.load = other
    commanded(*words)


def test_so_are_other_data(file, tmp_path):
    words = ("train", file, "--device", "cpu", "--runs-dir", tmp_path / "runs")
    line = refused(with_other_data, tmp_path, *words)
    assert line.startswith("error: rank 1 has other data for digits than rank 0 (checksum ")
    assert line.endswith("put the same files on all machines")


def test_more_processes_than_rows_of_a_batch_are_refused(file, tmp_path):
    words = ("train", file, "--device", "cpu", "--runs-dir", tmp_path / "runs", "--set", "batch=2")
    assert refused(commanded, tmp_path, *words, ranks=3) == (
        "error: batch: a batch has at most 2 rows, fewer than the 3 ranks that share it; start fewer ranks, or give "
        "the recipe larger batches"
    )


def test_torchrun_and_other_ways_to_have_many_processes_are_told_apart(tmp_path):
    words = ("study", "run", "quickstart", "--device", "cpu", "--runs-dir", tmp_path / "runs")
    assert "--workers 3 cannot be used under torchrun" in refused(
        commanded, tmp_path, *words, "--workers", "3"
    )
    line = refused(commanded, tmp_path, *words, "--executor", "ranks", "--ranks", "2")
    assert line.startswith(
        "error: --executor ranks starts processes of its own, but torchrun has already started these"
    )


def test_an_environment_that_is_none_of_torchruns_is_refused(file, tmp_path):
    words = ("train", file, "--runs-dir", tmp_path / "runs")
    given = {"MASTER_ADDR": "absent"}
    assert together(1, commanded, *words, folder=tmp_path, environment=given) == [2]
    assert "error: RANK is 0, so this is one of several processes, but MASTER_ADDR is not set" in said(
        tmp_path, 0
    )


def test_a_python_program_calls_train_in_every_process_and_may_do_so_again(tmp_path):
    assert together(2, twice, tmp_path / "runs", folder=tmp_path) == [0, 0]
    for rank in (0, 1):
        assert said(tmp_path, rank).splitlines() == ["finished finished", "finished"]


def twice(root):
    once = BASE.replace({"epochs": 1})
    runs = trained([once, once.replace({"seed": 1})], root)
    print(*(run.status for run in runs))
    (other,) = trained([once.replace({"seed": 2})], root)
    print(other.status)


def test_the_others_read_no_runs_not_even_the_teachers(tmp_path):
    taught = BASE.replace({"regulariser": {"name": "distillation", "teacher": BASE.to_dict()}})
    assert together(2, blind_as_1, [taught], tmp_path / "runs") == [0, 0]
    assert RunStore(tmp_path / "runs").find(taught).status == "finished"


def blind_as_1(recipes, root):
    from softtargets.runs import Run

    def refuse(*_):
        raise AssertionError("this process has no directory of runs")

    if os.environ["RANK"] == "1":
        Run.weights = Run.predictions = RunStore.find = RunStore.claim = refuse
    trained(recipes, root)
