"""Which trainings a campaign needs, each once, and how far they are."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from softtargets.campaign import cells_of, outlook
from softtargets.campaign.cells import light_teachers, states, to_train, united, wanted_lessons
from softtargets.campaign.order import cost
from softtargets.campaign.status import coming, entry_statuses, totals
from softtargets.exceptions import Unfinished
from softtargets.runs import RunStore, measured_by, merge_runs, pack_runs
from softtargets.training import Watcher, train

from .making import BASE, TEACHER, campaign_of, session_of

BOTH = ({"study": "tiny"}, {"study": "curious", "seeds": 2}, {"study": "tiny", "seeds": 2})


@pytest.fixture
def campaign(tmp_path):
    return campaign_of(tmp_path, *BOTH)


def trained(campaign, root, *which, **how):
    cells = list(cells_of(campaign).values())
    train([cells[place].recipe for place in which], RunStore(root), device="cpu", **how)


def test_every_training_is_there_once_with_its_teacher_before_it(campaign):
    cells = cells_of(campaign)
    assert len(cells) == 8, "for each of two seeds two strengths, a teacher and a student"
    assert [cell.ranks for cell in cells.values()] == [(1, 2, 3)] * 4 + [(2, 3)] * 4
    recipes = [cell.recipe for cell in cells.values()]
    for place, recipe in enumerate(recipes):
        if recipe.teacher is not None:
            assert recipe.teacher in recipes[:place]


def test_what_is_kept_is_what_any_of_the_studies_needs(campaign):
    cells = cells_of(campaign)
    teacher = cells[TEACHER.id]
    assert teacher.keep == ("test:scores", "train:scores"), "its students need no more of it than its lessons"
    assert {cell.keep for cell in cells.values()} - {teacher.keep} == {("test", "train")}
    assert united(["test:scores"]) == ("test:scores",)


def test_states_are_those_of_the_store(campaign, tmp_path):
    cells, root = cells_of(campaign), tmp_path / "runs"
    keys = list(cells)
    trained(campaign, root, 0)

    class Late(Watcher):
        def progressed(self, recipe, step, units):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained(campaign, root, 1, watcher=Late(), checkpoint_seconds=0)
    with pytest.raises(Unfinished):
        trained(campaign, root, 4, until=0.0)
    store = RunStore(root)
    with store.claim(cells[keys[5]].recipe) as writer:
        writer.fail("it <diverged>", [], {})
    with store.claim(cells[keys[6]].recipe):
        found = states(cells, store)
    assert [found[key].status for key in keys[:7]] == [
        "done", "interrupted", "missing", "missing", "missing", "failed", "running",
    ]  # fmt: skip
    assert found[keys[0]].share == 1.0


def test_what_was_begun_counts_from_its_checkpoint(campaign, tmp_path):
    root, cells = tmp_path / "runs", cells_of(campaign)
    first = next(iter(cells.values())).recipe

    class Interrupting(Watcher):
        """After the first epoch of two."""

        def epoch(self, recipe, row):
            import os
            import signal

            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt):
        train([first], RunStore(root), device="cpu", watcher=Interrupting())
    found = outlook(campaign, RunStore(root), "cpu")
    assert (found.states[first.id].status, found.states[first.id].share) == ("interrupted", 0.5)
    wanted = {one.id: one for one in found.wanted()}
    assert (wanted[first.id].units, wanted[first.id].begun) == (64.0, True)
    assert wanted[BASE.replace({"seed": 1, "regulariser": first.regulariser}).id].units == 128.0


def test_a_teacher_without_weights_is_trained_again_if_a_student_needs_it(campaign, tmp_path):
    trained(campaign, tmp_path / "there", 0, 2)
    pack_runs(
        list(map(RunStore(tmp_path / "there").get, list(cells_of(campaign))[0:3:2])),
        tmp_path / "p.zip",
    )
    here = RunStore(tmp_path / "here")
    merge_runs(tmp_path / "p.zip", here)
    cells = cells_of(campaign)
    found = states(cells, here)
    student = next(key for key, cell in cells.items() if cell.recipe.teacher and cell.recipe.seed == 0)
    assert (found[TEACHER.id].status, found[TEACHER.id].light) == ("done", True)
    assert TEACHER.id not in to_train(cells, found), "it is done"
    assert light_teachers(cells[student].recipe, found) == [TEACHER]
    there = {one.id: one for one in outlook(campaign, here, "cpu").wanted()}
    (again,) = there[student].again
    assert (again.id, there[student].needs, again.units) == (TEACHER.id, None, TEACHER.units)
    alone = replace(there[student], again=())
    assert cost([there[student]]) == pytest.approx(cost([alone]) + cost([again]))
    session = session_of(campaign, here.root)
    session.run()
    assert (here.find(cells[student].recipe).status, here.find(TEACHER).is_light) == ("finished", False)
    assert light_teachers(cells[student].recipe, states(cells, here)) == []


def test_a_teacher_with_lessons_is_not_trained_again(campaign, tmp_path):
    trained(campaign, tmp_path / "there", 2, keep=("test:scores", "train:scores"))
    pack_runs(
        [RunStore(tmp_path / "there").find(TEACHER)], tmp_path / "p.zip", splits={TEACHER.id: ("train",)}
    )
    here = RunStore(tmp_path / "here")
    merge_runs(tmp_path / "p.zip", here)
    cells = cells_of(campaign)
    found = states(cells, here)
    student = next(key for key, cell in cells.items() if cell.recipe.teacher and cell.recipe.seed == 0)
    other = next(key for key, cell in cells.items() if cell.recipe.teacher and cell.recipe.seed == 1)
    assert (found[TEACHER.id].light, found[TEACHER.id].lessons) == (True, True)
    assert light_teachers(cells[student].recipe, found) == []
    assert next(one for one in outlook(campaign, here, "cpu").wanted() if one.id == student).again == ()
    assert wanted_lessons(cells, found) == {TEACHER.id, cells[other].recipe.teacher.id}
    session_of(campaign, here.root).run()
    assert (here.find(cells[student].recipe).status, here.find(TEACHER).is_light) == ("finished", True)
    assert wanted_lessons(cells, states(cells, here)) == set()


def test_entries_say_what_is_done_and_each_cell_costs_once(campaign, tmp_path):
    trained(campaign, tmp_path / "runs", 0, 1, 3)
    found = outlook(campaign, RunStore(tmp_path / "runs"), "cpu")
    first, second, third = entry_statuses(found)
    assert (first.cells["done"], first.left, first.total) == (4, 0, 4)
    assert (second.cells["done"], second.left, second.total) == (4, 4, 8)
    assert (first.waiting, second.waiting, third.waiting) == (1, 1, 1), (
        "claims of tiny wait for its second seed"
    )
    assert (first.seconds, third.seconds) == (0.0, 0.0), "what entry 2 trains costs nothing in entry 3"
    assert second.seconds > 0
    assert second.source == "measured"
    counted, seconds, _ = totals(found)
    assert (counted["done"], counted["missing"], seconds) == (4, 4, pytest.approx(second.seconds))
    groups = coming(found, 1000.0)
    assert sorted(key for group in groups for key in group.ids) == sorted(
        set(found.cells) - set(found.done())
    )


def test_claims_of_a_study_that_is_done_wait_for_nothing(tmp_path):
    campaign = campaign_of(tmp_path, {"study": "tiny"})
    trained(campaign, tmp_path / "runs", 0, 1, 3)
    (entry,) = entry_statuses(outlook(campaign, RunStore(tmp_path / "runs"), "cpu"))
    assert (entry.claims, entry.waiting) == (1, 0)


def test_claims_wait_that_the_page_calls_not_run_yet(tmp_path):
    campaign = campaign_of(tmp_path, {"study": "tiny"})
    trained(campaign, tmp_path / "runs", 0)
    found = outlook(campaign, RunStore(tmp_path / "runs"), "cpu")
    page = tmp_path / "tiny"
    page.mkdir()
    for told, claims, waiting in (
        ([{"verdict": "reproduced"}], 1, 0),
        ([{"verdict": "not run yet"}], 1, 1),
        ([{"verdict": "reproduced"}, {"verdict": "not run yet"}], 2, 1),  # of another size, say
        ([{}], 1, 1),
        ("damaged", 1, 1),
    ):
        (page / "results.json").write_text(json.dumps({"claims": told}))
        (entry,) = entry_statuses(found)
        assert (entry.claims, entry.waiting) == (claims, waiting)
    (page / "results.json").write_text("{")
    assert entry_statuses(found)[0].waiting == 1


def test_a_light_run_that_a_study_never_measured_is_trained_again_for_that_study(tmp_path):
    """As with two studies that share cells, of which only one was there when the runs were packed."""
    tiny, both = campaign_of(tmp_path, {"study": "tiny"}), tmp_path / "both"
    both.mkdir()
    session_of(tiny, tmp_path / "there", pack=tmp_path / "p.zip").run()
    campaign, here = campaign_of(both, {"study": "tiny"}, {"study": "curious"}), RunStore(tmp_path / "here")
    merge_runs(tmp_path / "p.zip", here)
    found = outlook(campaign, here, "cpu")
    shared = [key for key, cell in found.cells.items() if cell.studies]
    assert {found.states[key].unmeasured for key in shared} == {frozenset({"curious"})}
    first, second = entry_statuses(found)
    assert (first.left, first.waiting, first.seconds) == (0, 0, 0.0), "for tiny everything is done"
    assert (second.left, second.waiting) == (3, 1)
    assert second.seconds > 0
    assert {one.rank for one in found.wanted()} == {2}
    numbers = {key: found.run(key).history() for key in shared}
    session = session_of(campaign, here.root)
    session.run()
    assert sorted(session.trained) == sorted(shared)
    for key in shared:
        run = found.run(key)
        assert (run.is_light, run.history()) == (False, numbers[key])
        assert measured_by(run, "tiny") is not None
        assert measured_by(run, "curious") is not None
    assert totals(outlook(campaign, here, "cpu"))[0]["done"] == 4


def test_another_training_of_a_light_run_is_running_and_interrupted_like_any(tmp_path):
    tiny = campaign_of(tmp_path, {"study": "tiny"})
    session_of(tiny, tmp_path / "there", pack=tmp_path / "p.zip").run()
    both = tmp_path / "both"
    both.mkdir()
    campaign, here = campaign_of(both, {"study": "curious"}), RunStore(tmp_path / "here")
    merge_runs(tmp_path / "p.zip", here)
    cells = cells_of(campaign)
    key, cell = next(iter(cells.items()))
    with here.claim(cell.recipe):
        assert states(cells, here)[key].status == "running"
    (here.root / key / "checkpoint.safetensors").write_bytes(b"no checkpoint")
    assert states(cells, here)[key].status == "missing"


def test_a_teacher_whose_students_are_done_is_not_missed(tmp_path):
    """As after merging results of a study, which have the runs of its cells alone."""
    campaign = campaign_of(tmp_path, {"study": "tiny"})
    session_of(campaign, tmp_path / "runs").run()
    store = RunStore(tmp_path / "runs")
    store.delete(TEACHER.id)
    found = outlook(campaign, store, "cpu")
    assert (found.wanted(), TEACHER.id in found.done()) == ([], False)
    (entry,) = entry_statuses(found)
    assert (entry.cells["done"], entry.waiting) == (4, 0)
    student = next(key for key, cell in found.cells.items() if cell.recipe.teacher)
    store.delete(student)
    found.look()
    assert {one.id for one in found.wanted()} == {TEACHER.id, student}
