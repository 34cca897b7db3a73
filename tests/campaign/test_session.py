"""Sessions of a campaign: what they train, in which order, and what is left when they are cut."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
import torch

from softtargets.campaign import cells_of
from softtargets.campaign import session as session_module
from softtargets.campaign.order import Group, Wanted
from softtargets.campaign.speeds import Speed
from softtargets.exceptions import DataError, SofttargetsError, StorageError, Unfinished
from softtargets.recipes import CIFAR10
from softtargets.runs import Run, RunStore, measured_by, merge_runs
from softtargets.training import Watcher, train
from softtargets.training.scheduling import loop

from .making import BASE, PARTS, STUDIES, TEACHER, Clock, Study, Trial, campaign_of, session_of

TINY = {"study": "tiny"}


def runs_in(root):
    return {entry.id: entry.status for entry in RunStore(root).entries()}


def same(one, other):
    weights = other.weights()
    equal = all(torch.equal(value, weights[name]) for name, value in one.weights().items())
    return equal and one.history() == other.history()


class Noted:
    """The engine, noting what it was asked for; `then` is called with each group before it is trained."""

    def __init__(self, then=lambda recipes: None):
        self.groups, self.how, self.then = [], [], then

    def __call__(self, recipes, store, **how):
        self.groups.append([recipe.id for recipe in recipes])
        self.how.append(how)
        self.then(recipes)
        return train(recipes, store, **how)


def test_a_session_trains_measures_and_packs_everything_once(tmp_path):
    campaign = campaign_of(tmp_path, TINY, {"study": "curious", "seeds": 2})
    engine, pack = Noted(), tmp_path / "pack.zip"
    session = session_of(campaign, tmp_path / "runs", pack=pack, engine=engine)
    session.run()
    cells = cells_of(campaign)
    assert runs_in(tmp_path / "runs") == dict.fromkeys(cells, "finished")
    assert sorted(session.trained) == sorted(cells)
    order = [key for group in engine.groups for key in group]
    assert sorted(order) == sorted(cells), "each once"
    teacher, student = TEACHER.id, next(key for key, cell in cells.items() if cell.recipe.teacher)
    assert order.index(teacher) < order.index(student)
    for key, cell in cells.items():
        run = Run(tmp_path / "runs" / key)
        for study in ("tiny", "curious"):
            found = measured_by(run, study)
            wanted = (
                key != teacher
                and cell.recipe.model == BASE.model
                and (study == "curious" or cell.recipe.seed == 0)
            )
            assert (found is not None) == wanted
            assert not wanted or set(found.measures) == {"accuracy"}
    merged = merge_runs(pack, RunStore(tmp_path / "elsewhere"))
    assert sorted(merged.added) == sorted(cells)
    again = session_of(campaign, tmp_path / "elsewhere", engine=None)
    again.run()  # an engine that is called would be missed
    assert again.trained == []


def test_predictions_that_a_study_has_come_to_want_are_added(tmp_path):
    session_of(campaign_of(tmp_path, TINY), tmp_path / "runs").run()
    first = BASE.replace({"regulariser": {"name": "label_smoothing", "alpha": 0.1}})
    assert not Run(tmp_path / "runs" / first.id).has_predictions("train")
    engine = Noted()
    session = session_of(campaign_of(tmp_path, TINY, {"study": "curious"}), tmp_path / "runs", engine=engine)
    session.run()
    run = Run(tmp_path / "runs" / first.id)
    assert (run.has_predictions("train"), session.trained) == (True, [])
    assert measured_by(run, "curious") is not None


def test_the_pack_is_written_after_each_group(tmp_path):
    seen, pack = [], tmp_path / "pack.zip"

    def look(recipes):
        if pack.exists():
            seen.append(len(merge_runs(pack, RunStore(tmp_path / f"store{len(seen)}")).added))

    session_of(campaign_of(tmp_path, TINY), tmp_path / "runs", pack=pack, engine=Noted(look)).run()
    assert seen == [2, 3], "two smoothed ones, then the teacher, then the student"


def test_finished_runs_are_packed_before_they_are_measured(tmp_path):
    """Measuring may take a minute, in which a rented machine is lost with ten minutes of training."""
    pack, there = tmp_path / "pack.zip", []

    def measured(trial, run):
        there.append(run.id in merge_runs(pack, RunStore(tmp_path / f"store{len(there)}")).added)
        return {}

    def look(recipes):
        if pack.exists():
            other = RunStore(tmp_path / f"before{len(seen)}")
            keys = merge_runs(pack, other).added
            seen.append(sum(measured_by(Run(other.root / key), "tiny") is not None for key in keys))

    seen: list[int] = []
    slow = Study(**{**PARTS, "measure": measured})
    campaign = campaign_of(tmp_path, {"study": "tiny"}, studies=(slow,))
    session_of(campaign, tmp_path / "runs", pack=pack, engine=Noted(look)).run()
    assert there == [True, True, True]
    assert seen == [2, 2], "and once more when they are measured, before the next group"


def test_a_pack_that_takes_long_is_not_written_after_every_group(tmp_path, monkeypatch):
    """It has all finished runs in it: with tens of thousands, one after each group would take all the time."""
    clock, written = Clock(), []
    campaign = campaign_of(tmp_path, {"study": "tiny", "seeds": 2})
    real = session_module.pack_runs

    def slow(runs, path, *what):
        clock.moment += 60.0
        written.append((clock.moment, len(runs)))
        return real(runs, path, *what)

    monkeypatch.setattr(session_module, "pack_runs", slow)
    monkeypatch.setattr("softtargets.training.packing.CPU_RUNS", 1)

    def busy(seconds):
        return Noted(lambda recipes: clock.sleep(seconds))

    how = {"pack": tmp_path / "p.zip", "clock": clock}
    session_of(campaign, tmp_path / "a", engine=busy(250.0), **how).run()
    # 600 seconds must pass after a pack that took 60: every third group of the eight; and there is one at the end.
    assert [count for _, count in written] == [1, 4, 7, 8]
    assert len(merge_runs(tmp_path / "p.zip", RunStore(tmp_path / "b")).added) == 8
    written.clear()
    session_of(campaign, tmp_path / "c", engine=busy(600.0), **how).run()
    assert [count for _, count in written] == [1, 2, 3, 4, 5, 6, 7, 8, 8]


def test_commands_that_share_a_campaign_take_their_share(tmp_path):
    campaign = campaign_of(tmp_path, {"study": "tiny", "seeds": 2})
    for sharing, sizes in ((1, [4, 2, 2]), (2, [2, 2, 1, 1, 1, 1])):
        engine = Noted()
        session_of(campaign, tmp_path / str(sharing), engine=engine, sharing=sharing).run()
        assert sorted(map(len, engine.groups), reverse=True) == sizes
        assert set(runs_in(tmp_path / str(sharing)).values()) == {"finished"}


def test_a_campaign_that_is_cut_and_goes_on_gives_the_same_runs(tmp_path, monkeypatch):
    campaign = campaign_of(tmp_path, {"study": "tiny", "size": "long"})
    session_of(campaign, tmp_path / "whole").run()
    clock = Clock()
    monkeypatch.setattr(loop, "time", clock)

    class Ageing(Watcher):
        def epoch(self, recipe, row):
            clock.moment += 1.0

    cuts = 0
    while True:
        session = session_of(campaign, tmp_path / "cut", end=clock.moment + 35, reserve=10.0, clock=clock)
        session.watching = lambda: nullcontext(Ageing())
        session.run()
        if set(runs_in(tmp_path / "cut").values()) == {"finished"} and len(runs_in(tmp_path / "cut")) == 4:
            break
        cuts += 1
        assert cuts < 30
        assert not any(status == "running" for status in runs_in(tmp_path / "cut").values())
    assert cuts > 2
    for key in cells_of(campaign):
        whole, cut = Run(tmp_path / "whole" / key), Run(tmp_path / "cut" / key)
        assert same(whole, cut)
        assert torch.equal(whole.predictions("test").logits, cut.predictions("test").logits)
    assert any(Run(tmp_path / "cut" / key).provenance["resumed"] for key in cells_of(campaign))


@pytest.mark.parametrize("beside", [False, True])
def test_ctrl_c_measures_and_packs_what_is_finished(tmp_path, beside):
    def interrupt(recipes):
        if recipes[0].teacher is not None:
            raise KeyboardInterrupt

    pack = tmp_path / "p.zip"
    how = {"engine": Noted(interrupt), "pack": pack, "beside": beside}
    session = session_of(campaign_of(tmp_path, TINY), tmp_path / "runs", **how)
    with pytest.raises(KeyboardInterrupt):
        session.run()
    merged = merge_runs(pack, RunStore(tmp_path / "other"))
    assert len(merged.added) == 3
    assert sum(measured_by(Run(tmp_path / "other" / key), "tiny") is not None for key in merged.added) == 2


def test_checkpoints_are_packed_before_the_last_measurements(tmp_path, monkeypatch):
    """A session that is killed while it measures, as by a limit on its time, has packed what it began."""
    clock, late = Clock(), []
    monkeypatch.setattr(loop, "time", clock)

    class Killed(BaseException):
        pass

    class Ageing(Watcher):
        def epoch(self, recipe, row):
            clock.moment += 100.0
            late.append(recipe)

    def measured(trial, run):
        raise Killed if late else ValueError("not yet")

    slow = Study(**{**PARTS, "measure": measured})
    campaign = campaign_of(tmp_path, {"study": "tiny", "size": "long"}, studies=(slow,))
    first = next(iter(cells_of(campaign).values())).recipe
    train([first], RunStore(tmp_path / "runs"), progress=False, device="cpu", keep=("test:scores",))
    pack = tmp_path / "p.zip"
    how = {"end": 1040.0, "reserve": 5.0, "clock": clock, "pack": pack, "include": ("checkpoints",)}
    session = session_of(campaign, tmp_path / "runs", **how)
    session.watching = lambda: nullcontext(Ageing())
    with pytest.raises(Killed):
        session.run()
    there = runs_in(tmp_path / "runs")
    assert set(there.values()) == {"finished", "interrupted"}
    merge_runs(pack, RunStore(tmp_path / "other"))
    assert runs_in(tmp_path / "other") == there


def test_checkpoints_travel_at_the_end_if_they_are_asked_for(tmp_path, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(loop, "time", clock)

    class Ageing(Watcher):
        def epoch(self, recipe, row):
            clock.moment += 100.0

    campaign, pack = campaign_of(tmp_path, {"study": "tiny", "size": "long"}), tmp_path / "p.zip"
    how = {"end": 1040.0, "reserve": 5.0, "clock": clock, "pack": pack, "include": ("checkpoints",)}
    session = session_of(campaign, tmp_path / "runs", **how)
    session.watching = lambda: nullcontext(Ageing())
    session.run()
    assert set(runs_in(tmp_path / "runs").values()) == {"interrupted"}
    merge_runs(pack, RunStore(tmp_path / "other"))
    assert runs_in(tmp_path / "other") == runs_in(tmp_path / "runs")


def test_each_run_keeps_what_its_own_studies_need(tmp_path):
    campaign = campaign_of(tmp_path, {"study": "tiny", "seeds": 2}, {"study": "curious"})
    session_of(campaign, tmp_path / "runs").run()
    first = BASE.replace({"regulariser": {"name": "label_smoothing", "alpha": 0.1}})
    kept = [Run(tmp_path / "runs" / first.replace({"seed": seed}).id) for seed in range(2)]
    assert [run.has_predictions("train") for run in kept] == [True, False]
    assert [run.has_predictions("test") for run in kept] == [True, True]


def test_time_that_is_up_begins_nothing(tmp_path):
    clock, engine = Clock(), Noted()
    session = session_of(
        campaign_of(tmp_path, TINY), tmp_path / "runs", end=1005.0, clock=clock, engine=engine
    )
    session.run()
    assert engine.groups == []


def test_the_end_leaves_the_reserve_and_what_concluding_took(tmp_path):
    clock = Clock()
    session = session_of(
        campaign_of(tmp_path, TINY), tmp_path / "runs", end=1100.0, reserve=20.0, clock=clock
    )
    assert session.seconds_left == 80.0
    session._concluding = 40.0
    assert session.seconds_left == 40.0
    session.end = None
    assert session.seconds_left == float("inf")


class Measuring:
    """Somebody who measures beside the training: 200 seconds of work are there, and a group makes 100."""

    pages, answers, failed = (), 0, False
    seconds_left = staticmethod(lambda: 200.0)
    seconds_for_another = staticmethod(lambda: 100.0)
    problems = staticmethod(lambda: [])

    def give(self, keys):
        pass

    def wait(self):
        pass

    def close(self):
        pass


def beside(tmp_path, left, *entries, **how):
    """A session with so many seconds left, in which somebody measures."""
    campaign = campaign_of(tmp_path, *entries or [TINY])
    how = {"reserve": 20.0, "clock": Clock(), "_helper": Measuring(), **how}
    return session_of(campaign, tmp_path / "runs", end=1000.0 + left, **how)


def test_what_is_measured_beside_the_training_takes_no_time_from_it(tmp_path):
    session = beside(tmp_path, 1000.0)
    assert session.seconds_left == 850.0, "150 for what the next group makes; the rest is done by then"
    assert session._seconds_left(finishing=False) == 980.0
    session._concluding = 40.0
    assert (session.seconds_left, session._seconds_left(finishing=False)) == (790.0, 940.0)
    session._helper.failed = True
    assert session._seconds_left(finishing=False) == 790.0, "what it has left is measured at the end"
    session.end = None
    assert session.seconds_left == session._seconds_left(finishing=False) == float("inf")


@pytest.mark.parametrize(
    ("left", "finishing", "going_on"),
    [(451.0, 301.0, 431.0), (449.0, -1.0, 429.0), (301.0, -149.0, 281.0), (299.0, -151.0, -1.0)],
)
def test_nothing_is_begun_while_measuring_may_last_until_the_end(tmp_path, left, finishing, going_on):
    session = beside(tmp_path, left)
    assert (session.seconds_left, session._seconds_left(finishing=False)) == (finishing, going_on)


@pytest.mark.parametrize(
    ("whole", "soonest", "kept"),
    [
        (True, 90.0, 150.0),
        (False, 981.0, 20.0),
        (False, 979.0, 150.0),  # one of them was begun before
        (False, 0.0, 150.0),  # nobody can tell
    ],
)
def test_a_group_of_which_no_run_ends_trains_until_the_reserve(tmp_path, monkeypatch, whole, soonest, kept):
    asked = []

    def engine(recipes, store, **how):
        asked.append(how["until"])
        raise Unfinished([], recipes)

    session = beside(tmp_path, 1000.0, engine=engine)
    first = session.outlook.wanted()[0].id
    groups = iter([Group((first,), None if soonest == 0.0 else 5000.0, whole, soonest)])
    monkeypatch.setattr(session_module, "next_round", lambda *given: next(groups, None))
    session.run()
    assert asked == [2000.0 - kept]


def test_where_measuring_a_group_would_come_too_late_runs_without_an_end_go_on(tmp_path):
    session = beside(tmp_path, 400.0)
    assert session.seconds_left < 0 < session._seconds_left(finishing=False)
    steady = Speed({1: 1.0}, setup=0.0, source="table")

    def wanted(name, units, **more):
        return Wanted(name, 1, name, units, steady, 8, **more)

    short, long, unknown = wanted("short", 50.0), wanted("long", 1000.0), wanted("unknown", None)
    assert session._group([short, unknown], ()) is None
    assert session._group([short, wanted("student", 1000.0, needs="short")], ()) is None
    group = session._group([short, unknown, long], ())
    assert (group.ids, group.whole) == (("long",), False)
    assert session._until_of(group) == 1400.0 - 20.0
    session.end = 2000.0
    assert session._group([short, unknown, long], ()).ids == ("short",)
    session.end = 1299.0
    assert session._group([long], ()) is None, "measuring may last until the end"


def test_an_engine_that_does_nothing_until_the_end_is_not_asked_for_ever_either(tmp_path):
    calls = []

    def idle(recipes, store, **how):
        calls.append((len(recipes), how["until"]))
        raise Unfinished([], recipes)

    session = beside(tmp_path, 400.0, {**TINY, "set": {"epochs": 10**9}}, engine=idle)
    session.run()
    assert calls == [(2, 1380.0), (1, 1380.0)]
    assert len(session.skipped) == 3


def test_the_next_session_is_taken_to_have_as_much_time_as_this_one_had_for_its_first_group(
    tmp_path, monkeypatch
):
    """Not as much as the whole command: something is measured first here, and may be again in the next one."""
    clock, asked = Clock(), []
    session = session_of(
        campaign_of(tmp_path, TINY), tmp_path / "runs", end=1100.0, reserve=20.0, clock=clock
    )
    monkeypatch.setattr(type(session), "_measure", lambda self, done: clock.sleep(30.0))
    chosen = session_module.next_round
    monkeypatch.setattr(
        session_module, "next_round", lambda *given: asked.append((given[1], given[-1])) or chosen(*given)
    )
    monkeypatch.setattr(type(session), "_train", lambda self, group: clock.sleep(10.0))
    session.run()
    assert asked[:3] == [(50.0, 50.0), (40.0, 50.0), (30.0, 50.0)]


def test_a_dataset_that_is_not_here_leaves_out_its_cells_only(tmp_path):
    def trials(settings):
        found = [Trial(BASE, {"data": "digits"})]
        recipe = BASE.replace({"data": CIFAR10()})
        return [*found, *(Trial(recipe.replace({"seed": seed}), {"data": "cifar10"}) for seed in range(2))]

    study = Study(**{**PARTS, "name": "two", "trials": trials, "sizes": ()})
    campaign = campaign_of(tmp_path, {"study": "two"}, studies=(study,))
    session = session_of(campaign, tmp_path / "runs", data_dir=tmp_path / "nothing")
    session.run()
    assert runs_in(tmp_path / "runs") == {BASE.id: "finished"}
    assert len(session.skipped) == 2
    assert [line for line in session.said if "dataset" in line] == [
        "2 runs left out: the dataset cifar10 is not on this machine; softtargets data fetch cifar10 downloads it, "
        "or says where to get it."
    ]


def test_a_run_that_diverges_is_recorded_and_the_rest_goes_on(tmp_path):
    entry = {"study": "tiny", "set": {"optimiser.lr": 1e30}}
    campaign = campaign_of(tmp_path, entry, {**TINY, "page": "fine"})
    session = session_of(campaign, tmp_path / "runs", pack=tmp_path / "p.zip")
    session.run()
    states = list(runs_in(tmp_path / "runs").values())
    assert (states.count("failed"), states.count("finished")) == (4, 4), (
        "the student of a failed teacher fails too"
    )
    assert sorted(session.trained) == sorted(cells_of(campaign))
    assert len(merge_runs(tmp_path / "p.zip", RunStore(tmp_path / "other")).added) == 8
    again = session_of(campaign, tmp_path / "runs", engine=None)
    again.run()  # what failed is not tried again


@pytest.mark.parametrize("error", [SofttargetsError("it does not fit"), DataError("a file is damaged")])
def test_a_group_that_is_refused_is_named_and_the_rest_goes_on(tmp_path, error):
    def refuse(recipes):
        if recipes[0].regulariser.name == "label_smoothing":
            raise error

    session = session_of(campaign_of(tmp_path, TINY), tmp_path / "runs", engine=Noted(refuse))
    session.run()
    assert f"2 runs left out: {error}." in session.said
    assert list(runs_in(tmp_path / "runs").values()) == ["finished"] * 2, "teacher and student"


def test_a_full_disk_ends_it_and_what_is_finished_is_packed(tmp_path):
    def full(recipes):
        if recipes[0].teacher is not None:
            raise StorageError("no space left")

    session = session_of(
        campaign_of(tmp_path, TINY), tmp_path / "runs", engine=Noted(full), pack=tmp_path / "p.zip"
    )
    with pytest.raises(StorageError):
        session.run()
    assert len(merge_runs(tmp_path / "p.zip", RunStore(tmp_path / "other")).added) == 3


def test_an_engine_that_does_nothing_is_not_asked_for_ever(tmp_path):
    calls = []

    def idle(recipes, store, **how):
        calls.append(len(recipes))
        raise Unfinished([], recipes)

    session = session_of(campaign_of(tmp_path, TINY), tmp_path / "runs", engine=idle)
    session.run()
    assert calls == [2, 1]
    assert len(session.skipped) == 3


def test_a_damaged_run_is_named_and_left_to_people(tmp_path):
    campaign = campaign_of(tmp_path, TINY)
    session_of(campaign, tmp_path / "runs").run()
    (tmp_path / "runs" / TEACHER.id / "run.json").write_text("{")
    student = next(key for key, cell in cells_of(campaign).items() if cell.recipe.teacher)
    RunStore(tmp_path / "runs").delete(student)
    session = session_of(campaign, tmp_path / "runs")
    session.run()
    assert any(f"Run {TEACHER.id} is damaged" in line for line in session.said)
    assert session.trained == []


def test_a_study_that_cannot_measure_does_not_stop_the_others(tmp_path):
    def broken(trial, run):
        raise KeyError("oops")

    studies = (Study(**{**PARTS, "name": "broken", "measure": broken}), *STUDIES)
    campaign = campaign_of(tmp_path, {"study": "broken"}, TINY, studies=studies)
    session = session_of(campaign, tmp_path / "runs")
    session.run()
    assert len(session.trained) == 4
    assert "broken could not measure its runs: KeyError('oops')." in session.said


def test_what_others_train_is_waited_for_and_taken_over(tmp_path):
    campaign = campaign_of(tmp_path, TINY)
    store, clock = RunStore(tmp_path / "runs"), Clock()
    other = store.claim(TEACHER)

    class Dying(Clock):
        """The other process dies after five seconds."""

        def sleep(self, seconds):
            super().sleep(seconds)
            if self.moment >= 1005.0:
                other.release()

    clock = Dying()
    session = session_of(campaign, store.root, clock=clock)
    session.run()
    assert clock.moment >= 1005.0
    assert "Other processes are training 1 run; waiting for them." in session.said
    assert set(runs_in(store.root).values()) == {"finished"}


SCRIPT = """
import sys
from pathlib import Path
sys.path[:0] = {path!r}
from campaign.making import STUDIES, session_of
from softtargets.campaign import load_campaign
session = session_of(load_campaign(Path(sys.argv[1]), STUDIES), sys.argv[2], checkpoint_seconds=0.05)
session.run()
print(len(session.trained))
"""


def process(tmp_path, root):
    """A session in a process of its own."""
    tests = Path(__file__).parents[1]
    script = SCRIPT.format(path=[str(tests), *sys.path])
    words = [sys.executable, "-c", script, str(tmp_path / "campaign.yaml"), str(root)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def test_kill_9_loses_at_most_a_checkpoint(tmp_path):
    campaign = campaign_of(tmp_path, {"study": "tiny", "set": {"epochs": 150}})
    session_of(campaign, tmp_path / "whole").run()
    root, cells = tmp_path / "killed", cells_of(campaign)
    for wanted in (1, 2):  # once in the first group, once in a later one
        child = process(tmp_path, root)
        end = time.monotonic() + 120
        while sum(status == "finished" for status in runs_in(root).values()) < 2 * (wanted - 1) or not list(
            root.glob("*/checkpoint.safetensors")
        ):
            assert child.poll() is None, "it ended before it was killed"
            assert time.monotonic() < end
            time.sleep(0.001)
        child.kill()
        assert child.wait() == -signal.SIGKILL
        child.stdout.close()
    before = {key: status for key, status in runs_in(root).items() if status == "finished"}
    assert len(before) >= 2
    stamps = {key: os.stat(root / key / "run.json").st_mtime_ns for key in before}
    session_of(campaign, root).run()
    assert runs_in(root) == dict.fromkeys(cells, "finished")
    assert {key: os.stat(root / key / "run.json").st_mtime_ns for key in before} == stamps, "nothing twice"
    assert sum(Run(root / key).provenance["resumed"] for key in cells) >= 1
    assert all(same(Run(tmp_path / "whole" / key), Run(root / key)) for key in cells)


def test_two_processes_share_the_work(tmp_path):
    campaign = campaign_of(tmp_path, {"study": "tiny", "seeds": 4, "set": {"epochs": 60}})
    root = tmp_path / "runs"
    children = [process(tmp_path, root) for _ in range(2)]
    told = [int(child.communicate(timeout=240)[0].split()[-1]) for child in children]
    assert [child.returncode for child in children] == [0, 0]
    assert runs_in(root) == dict.fromkeys(cells_of(campaign), "finished")
    assert sum(told) >= len(cells_of(campaign))
