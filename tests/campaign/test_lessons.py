"""Lessons travel with teachers for as long as students wait for them, so that no teacher is trained twice."""

from __future__ import annotations

import torch

from softtargets.campaign import cells_of, write_lessons
from softtargets.recipes import Shift
from softtargets.runs import Run, RunStore, merge_runs
from softtargets.training import train

from .making import PARTS, TEACHER, Study, Trial, campaign_of, session_of, trials

TINY = {"study": "tiny"}


def cut_after_the_teacher(campaign, root, **how):
    """A session whose machine is lost when the first teacher is there."""

    def engine(recipes, store, **asked):
        runs = train(recipes, store, **asked)
        if any(run.id == TEACHER.id for run in runs):
            raise KeyboardInterrupt
        return runs

    session = session_of(campaign, root, engine=engine, **how)
    try:
        session.run()
    except KeyboardInterrupt:
        return session
    raise AssertionError("it was not cut")


def student_in(campaign):
    return next(cell.recipe for cell in cells_of(campaign).values() if cell.recipe.teacher == TEACHER)


def test_a_student_is_trained_on_another_machine_without_its_teacher_being_trained_again(tmp_path):
    campaign, first, second = campaign_of(tmp_path, TINY), tmp_path / "first.zip", tmp_path / "second.zip"
    cut_after_the_teacher(campaign, tmp_path / "there", pack=first)
    here = RunStore(tmp_path / "here")
    merge_runs(first, here)
    assert here.find(TEACHER).is_light
    session = session_of(campaign, here.root, pack=second)
    session.run()
    assert session.trained == [student_in(campaign).id]
    assert here.find(TEACHER).is_light, "what it says of its training examples came with it"
    (alone,) = train([student_in(campaign)], RunStore(tmp_path / "alone"), device="cpu")
    weights = here.find(student_in(campaign)).weights()
    assert all(torch.equal(value, weights[name]) for name, value in alone.weights().items())


def test_a_pack_has_no_lessons_that_nobody_waits_for(tmp_path):
    campaign = campaign_of(tmp_path, TINY)
    session_of(campaign, tmp_path / "there", pack=tmp_path / "p.zip").run()
    here = RunStore(tmp_path / "here")
    merge_runs(tmp_path / "p.zip", here)
    assert here.find(TEACHER).is_light
    assert not here.find(TEACHER).has_predictions("train")


def test_lessons_are_kept_beside_the_pages_until_the_last_student_is_trained(tmp_path):
    campaign, results = campaign_of(tmp_path, TINY), tmp_path / "results"
    store = RunStore(tmp_path / "there")
    cut_after_the_teacher(campaign, store.root)
    (path,) = write_lessons(campaign, store, results)
    assert path == results / "teachers" / f"{TEACHER.id}.zip"
    content = path.read_bytes()
    assert write_lessons(campaign, store, results) == [path]
    assert path.read_bytes() == content, "the same run gives the same bytes"

    here = RunStore(tmp_path / "here")
    merge_runs(results, here)
    path.write_bytes(b"as it was")
    assert write_lessons(campaign, here, results) == [path]
    assert path.read_bytes() == b"as it was", "a light run is no reason to write it again"

    (results / "teachers" / "of-a-user.zip").write_bytes(b"kept")
    assert write_lessons(campaign, RunStore(tmp_path / "empty"), results) == []
    assert path.exists(), "a store without the students does not say that they are trained"
    session_of(campaign, here.root).run()
    assert write_lessons(campaign, here, results) == []
    assert [left.name for left in results.glob("teachers/*")] == ["of-a-user.zip"]
    (results / "teachers" / "of-a-user.zip").unlink()
    write_lessons(campaign, here, results)
    assert not (results / "teachers").exists()


def test_teachers_of_students_that_ask_in_every_step_have_no_lessons(tmp_path):
    live = {"augmentation": (Shift(pixels=1),)}
    study = Study(
        **PARTS
        | {
            "trials": lambda settings: [
                Trial(one.recipe.replace(live), one.labels) for one in trials(settings)
            ]
        }
    )
    campaign, store = campaign_of(tmp_path, TINY, studies=(study,)), RunStore(tmp_path / "runs")
    cells = cells_of(campaign)
    assert {cell.keep for key, cell in cells.items() if key == TEACHER.id} == {("test:scores",)}
    cut_after_the_teacher(campaign, store.root)
    assert write_lessons(campaign, store, tmp_path / "results") == []
    assert not Run(store.root / TEACHER.id).has_predictions("train")
    assert not (tmp_path / "results").exists()
