"""Light runs in a training: done, unless a student needs their weights and not only their lessons."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace

import pytest
import torch

from softtargets.recipes import CrossEntropy, Distillation
from softtargets.runs import (
    Measured,
    Run,
    RunStore,
    environment,
    keep_measures,
    merge_runs,
    pack_runs,
    read_measures,
)
from softtargets.training import Plan, Resources
from softtargets.training import train as train_anywhere
from softtargets.training.scheduling.light import light_teachers, not_needed
from softtargets.training.scheduling.plan import with_teachers

from ..noting import Noting

train = partial(train_anywhere, device="cpu")


class Listening(Noting):
    def __init__(self):
        super().__init__()
        self.notes = []

    def noted(self, sentence):
        self.notes.append(sentence)


@pytest.fixture
def elsewhere(tmp_path):
    return RunStore(tmp_path / "elsewhere")


@pytest.fixture
def store(tmp_path):
    return RunStore(tmp_path / "here")


@pytest.fixture
def teacher(recipe):
    return recipe.replace({"epochs": 2})


def student_of(teacher, **changes):
    return teacher.replace({"regulariser": Distillation(teacher=teacher), "seed": 7, **changes})


def brought(runs, store, tmp_path, lessons=False):
    """Runs of another store, light; with what they said of their training examples, or without."""
    pack_runs(runs, tmp_path / "p.zip", splits={run.id: ("train",) for run in runs if lessons})
    merge_runs(tmp_path / "p.zip", store)
    return [Run(store.root / run.id) for run in runs]


def test_a_light_run_is_done_and_nothing_can_be_added_to_it(teacher, store, elsewhere, tmp_path):
    brought(train([teacher], elsewhere), store, tmp_path)
    before = {path: path.read_bytes() for path in store.root.rglob("*") if path.is_file()}
    watcher = Listening()
    (run,) = train([teacher], store, keep=("train", "test"), watcher=watcher)
    assert run.is_light
    assert watcher.plans == [Plan(runs=1, reused=1)]
    assert watcher.starts == []
    assert watcher.notes == [
        "1 finished run is light: it has no weights, and nothing can be predicted with them."
    ]
    assert {path: path.read_bytes() for path in store.root.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("workers", [1, 2])
def test_a_light_teacher_is_trained_again_for_its_student(teacher, store, elsewhere, tmp_path, workers):
    (whole,) = train([teacher], elsewhere)
    keep_measures(whole, "s", Measured({"m": 1.0}))
    brought([whole], store, tmp_path)
    watcher = Listening()
    (student,) = train([student_of(teacher)], store, watcher=watcher, workers=workers)
    assert student.status == "finished"
    again = store.find(teacher)
    assert not again.is_light
    assert again.problems() == []
    assert torch.equal(again.weights()["head.weight"], whole.weights()["head.weight"])
    assert again.has_predictions("test")
    assert read_measures(again).keys() == {"s"}, "of the same numbers, so they are still true"
    assert watcher.notes == [
        f"Run {teacher.id} is light and is trained again: runs that learn from it need its weights."
    ]
    (alone,) = train([student_of(teacher)], elsewhere)
    assert torch.equal(alone.weights()["head.weight"], student.weights()["head.weight"])


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_lessons_of_a_light_teacher_are_enough_for_students_that_ask_once(
    teacher, store, elsewhere, tmp_path, workers, precision
):
    teacher = teacher.replace({"precision": precision})
    assert teacher.augmentation
    stored = student_of(teacher).replace({"regulariser.view": "stored", "regulariser.temperature": 2.0})
    students = [student_of(teacher, augmentation=()), stored]
    whole = train([teacher, *students], elsewhere, keep=("test", "train:scores"))
    brought(whole[:1], store, tmp_path, lessons=True)
    watcher = Listening()
    taught = train(students, store, watcher=watcher, workers=workers)
    assert sorted(key for key, _ in watcher.starts) == sorted(student.id for student in students)
    assert store.find(teacher).is_light
    assert "1 finished run is light" in watcher.notes[0]
    for one, other in zip(taught, whole[1:], strict=True):
        assert one.history() == other.history()
        assert all(torch.equal(value, other.weights()[name]) for name, value in one.weights().items())


def test_one_student_that_needs_weights_has_its_teacher_trained_again(teacher, store, elsewhere, tmp_path):
    brought(train([teacher], elsewhere, keep=("test", "train:scores")), store, tmp_path, lessons=True)
    once, live = student_of(teacher, augmentation=()), student_of(teacher)
    train([once, live], store)
    assert not store.find(teacher).is_light
    assert {store.find(one).status for one in (once, live)} == {"finished"}


def test_a_teacher_that_taught_by_lessons_teaches_with_its_weights_once_it_has_them(
    teacher, store, elsewhere, tmp_path
):
    brought(train([teacher], elsewhere, keep=("test", "train:scores")), store, tmp_path, lessons=True)
    shared = Resources(store, torch.device("cpu"), None)  # as from group to group of a campaign
    train([student_of(teacher, augmentation=())], store, resources=shared)
    assert store.find(teacher).is_light
    (live,) = train([student_of(teacher)], store, resources=shared)
    (alone,) = train([student_of(teacher)], elsewhere)
    assert all(torch.equal(value, alone.weights()[name]) for name, value in live.weights().items())


def test_a_light_teacher_whose_students_are_done_is_left_alone(teacher, store, elsewhere, tmp_path):
    runs = train([teacher, student_of(teacher)], elsewhere)
    brought(runs, store, tmp_path)
    watcher = Listening()
    train([student_of(teacher)], store, watcher=watcher)
    assert watcher.starts == []
    assert "2 finished runs are light" in watcher.notes[0]


def test_a_teacher_that_is_not_there_is_not_trained_for_a_light_student(teacher, store, elsewhere, tmp_path):
    brought(train([student_of(teacher)], elsewhere), store, tmp_path)
    watcher = Listening()
    (run,) = train([student_of(teacher)], store, watcher=watcher)
    assert run.is_light
    assert (watcher.starts, watcher.plans) == ([], [Plan(runs=1, reused=1)])
    train([teacher, student_of(teacher)], store, watcher=watcher)
    assert [start for start, _ in watcher.starts] == [teacher.id], "unless somebody asks for it"


def test_other_numbers_than_the_light_runs_are_told_and_its_measures_forgotten(
    teacher, store, elsewhere, tmp_path
):
    (whole,) = train([teacher], elsewhere)
    other = RunStore(tmp_path / "other")
    with other.claim(teacher) as writer:  # as another engine might have rounded
        history = [{**row, "test_loss": row["test_loss"] + 1e-6} for row in whole.history()]
        light = writer.finish(whole.weights(), {}, history, whole.provenance)
    keep_measures(light, "s", Measured({"m": 1.0}))
    brought([light], store, tmp_path)
    watcher = Listening()
    train([student_of(teacher)], store, watcher=watcher)
    again = store.find(teacher)
    assert again.history() == whole.history()
    assert again.problems() == []
    assert read_measures(again) == {}
    assert f"Run {teacher.id}, trained again for its weights, has different numbers" in watcher.notes[1]


def test_a_light_teacher_that_fails_here_stays_and_its_students_fail(teacher, store, elsewhere, tmp_path):
    wild = teacher.replace({"optimiser.lr": 1e30, "regulariser": CrossEntropy()})
    with elsewhere.claim(wild) as writer:  # elsewhere it came to an end
        finished = writer.finish(
            {"w": torch.zeros(1)}, {}, [{"epoch": 1, "test_loss": 1.0}], environment("cpu") | {"seconds": 1.0}
        )
    brought([finished], store, tmp_path)
    watcher = Listening()
    pupil, other = train([student_of(wild), teacher], store, watcher=watcher)
    assert store.find(wild).is_light
    assert store.find(wild).problems() == []
    assert not (store.root / wild.id / "checkpoint.safetensors").exists()
    assert pupil.status == "failed"
    assert "failed when it was trained again for its weights" in pupil.provenance["reason"]
    assert other.status == "finished"
    assert any("The light run stays." in note for note in watcher.notes)


def test_an_interrupted_second_training_goes_on_and_the_light_run_stays_until_its_end(
    teacher, store, elsewhere, tmp_path
):
    (whole,) = train([teacher], elsewhere)
    brought([whole], store, tmp_path)

    class Pressed(Listening):
        def epoch(self, recipe, row):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train([student_of(teacher)], store, watcher=Pressed(), checkpoint_seconds=0)
    assert store.find(teacher).is_light
    assert store.find(teacher).history() == whole.history()
    assert (store.root / teacher.id / "checkpoint.safetensors").exists()
    watcher = Listening()
    train([student_of(teacher)], store, watcher=watcher)
    assert dict(watcher.starts)[teacher.id] > 0
    assert torch.equal(store.find(teacher).weights()["head.weight"], whole.weights()["head.weight"])


def test_chains_of_light_teachers(teacher):
    """A student of a student: weights are needed all the way up, or nowhere."""
    second = student_of(teacher, augmentation=())
    third = student_of(second, seed=8)
    todo = with_teachers([third])
    light = SimpleNamespace(is_light=True, has_predictions=lambda split: False)
    lessons = SimpleNamespace(is_light=True, has_predictions=lambda split: split == "train")
    whole = SimpleNamespace(is_light=False)
    assert light_teachers(todo, {teacher.id: light, second.id: light}) == [teacher.id, second.id]
    assert light_teachers(todo, {teacher.id: light, second.id: whole}) == []
    assert light_teachers(todo, {teacher.id: lessons, second.id: light}) == [second.id]
    assert light_teachers(todo, {teacher.id: light, second.id: lessons}) == []
    assert light_teachers(todo, dict.fromkeys(todo, light)) == []
    assert not_needed([third], todo, {third.id: light}) == {teacher.id, second.id}
    assert not_needed([third, teacher], todo, {third.id: light}) == {second.id}
    assert not_needed([third], todo, {third.id: whole}) == set()
    assert not_needed([third], todo, {}) == set()
