"""Runs that another process measures while the next ones are trained."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from softtargets.campaign import cells_of
from softtargets.campaign.beside import Beside
from softtargets.runs import Run, RunStore, measured_by, merge_runs
from softtargets.studies import Place
from softtargets.training import train

from .making import PARTS, Clock, Study, campaign_of, measure, session_of

HINT = "SOFTTARGETS_TEST_BESIDE"  # a file that a measurement waits for


def by_whom(trial, run):
    """The accuracy, and which process measured it."""
    return {**measure(trial, run), "process": float(os.getpid())}


class Asked:
    """A study that looks at the model once more, at a place."""

    def __init__(self, place):
        self.place = place

    def __call__(self, trial, run):
        return {"process": float(os.getpid()), "weights": float(len(run.weights()))}


def when_it_may(trial, run):
    """The same as soon as a file is there."""
    for _ in range(800):
        if Path(os.environ[HINT]).exists():
            return by_whom(trial, run)
        time.sleep(0.05)
    raise AssertionError("the next group was not trained meanwhile")


def never(trial, run):
    """A study with a mistake in it."""
    raise RuntimeError("a mistake")


def at_last(trial, run):
    """Measuring that takes for ever in any process but the one of the test."""
    if os.getpid() != int(os.environ[HINT]):
        time.sleep(600)
    return by_whom(trial, run)


def without_end(trial, run):
    """Says that it has begun, and does not come back."""
    Path(os.environ[HINT]).touch()
    time.sleep(600)


ENDLESS = Study(**{**PARTS, "name": "endless", "measure": without_end})
ASKING = Study(**{**PARTS, "name": "asking", "measure": by_whom})
AGAIN = Study(**{**PARTS, "name": "again", "again": Asked})
TIMED = Study(**{**PARTS, "name": "timed", "measure": by_whom, "timed": True})
WAITING = Study(**{**PARTS, "name": "waiting", "measure": when_it_may})
MISTAKEN = Study(**{**PARTS, "name": "mistaken", "measure": never})
SLOW = Study(**{**PARTS, "name": "slow", "measure": at_last})


def numbers(root, campaign, study):
    """By run, what a study measured; of those alone that it measured."""
    found = {key: measured_by(Run(root / key), study) for key in cells_of(campaign)}
    return {key: dict(one.measures) for key, one in found.items() if one is not None}


def finished(root, campaign):
    """A store with all runs of a campaign, unmeasured."""
    store = RunStore(root)
    train([cell.recipe for cell in cells_of(campaign).values()], store, progress=False, device="cpu")
    return store


def test_it_measures_what_is_measured_without_it(tmp_path):
    campaign = campaign_of(tmp_path, {"study": "asking", "seeds": 2}, studies=(ASKING,))
    here, beside = tmp_path / "here", tmp_path / "beside"
    session_of(campaign, here).run()
    pack = tmp_path / "pack.zip"
    session = session_of(campaign, beside, beside=True, pack=pack)
    session.run()
    one, other = numbers(here, campaign, "asking"), numbers(beside, campaign, "asking")
    assert {row.pop("process") for row in one.values()} == {float(os.getpid())}
    processes = {row.pop("process") for row in other.values()}
    assert len(processes) == 1
    assert float(os.getpid()) not in processes
    assert one == other
    assert len(one) == 6
    assert not [line for line in session.said if not line.startswith("Entry")]
    elsewhere = RunStore(tmp_path / "elsewhere")
    merge_runs(pack, elsewhere)
    assert len(numbers(elsewhere.root, campaign, "asking")) == 6, "measured before the last pack"


def test_the_next_group_is_trained_meanwhile(tmp_path, monkeypatch):
    monkeypatch.setenv(HINT, str(tmp_path / "go"))
    campaign = campaign_of(tmp_path, {"study": "waiting"}, studies=(WAITING,))

    def engine(recipes, store, **how):
        if recipes[0].teacher is not None:
            (tmp_path / "go").touch()  # the student is the last group: the others are being measured
        return train(recipes, store, **how)

    session = session_of(campaign, tmp_path / "runs", beside=True, engine=engine)
    session.run()
    measured = numbers(tmp_path / "runs", campaign, "waiting")
    assert len(measured) == 3
    assert float(os.getpid()) not in {row["process"] for row in measured.values()}
    assert not [line for line in session.said if "could not" in line]


def test_what_takes_time_on_the_device_is_measured_here_and_alone(tmp_path):
    campaign = campaign_of(tmp_path, {"study": "timed"}, {"study": "asking"}, studies=(TIMED, ASKING))
    session_of(campaign, tmp_path / "runs", beside=True).run()
    timed = numbers(tmp_path / "runs", campaign, "timed")
    assert [row["process"] for row in timed.values()] == [float(os.getpid())] * 3
    others = {row["process"] for row in numbers(tmp_path / "runs", campaign, "asking").values()}
    assert float(os.getpid()) not in others


def test_a_study_that_cannot_be_sent_is_measured_here(tmp_path):
    local = Study(**{**PARTS, "name": "local", "measure": lambda trial, run: by_whom(trial, run)})
    campaign = campaign_of(tmp_path, {"study": "local"}, studies=(local,))
    session_of(campaign, tmp_path / "runs", beside=True).run()
    found = numbers(tmp_path / "runs", campaign, "local")
    assert [row["process"] for row in found.values()] == [float(os.getpid())] * 3


def test_a_mistake_is_told_once_and_keeps_nothing_else_from_being_measured(tmp_path):
    campaign = campaign_of(tmp_path, {"study": "mistaken"}, {"study": "asking"}, studies=(MISTAKEN, ASKING))
    session = session_of(campaign, tmp_path / "runs", beside=True)
    session.run()
    told = [line for line in session.said if "mistake" in line and "could not" in line]
    assert told == ["mistaken could not measure its runs: RuntimeError('a mistake')."]
    assert len(numbers(tmp_path / "runs", campaign, "asking")) == 3


def test_one_that_is_killed_is_replaced_by_its_parent(tmp_path, monkeypatch):
    monkeypatch.setenv(HINT, str(os.getpid()))
    campaign = campaign_of(tmp_path, {"study": "slow"}, studies=(SLOW,))
    session = session_of(campaign, tmp_path / "runs", beside=True)
    real = session._conclude

    def conclude(ended):
        real(ended)
        session._helper._process.kill()
        session._conclude = real

    session._conclude = conclude
    session.run()
    found = numbers(tmp_path / "runs", campaign, "slow")
    assert [row["process"] for row in found.values()] == [float(os.getpid())] * 3
    assert sum("has died" in line for line in session.said) == 1


def test_one_that_cannot_have_the_device_ends_and_says_so(tmp_path):
    campaign = campaign_of(tmp_path, {"study": "asking"}, studies=(ASKING,))
    store = finished(tmp_path / "runs", campaign)
    helper = Beside(campaign.pages, store, Place(device="cuda:99"))
    helper.give(list(cells_of(campaign)))
    helper.wait()
    assert helper.failed
    assert not helper.busy
    assert [line for line in helper.problems() if "has died" in line]
    helper.give(list(cells_of(campaign)))  # is left to others
    assert not helper.busy
    assert not helper.problems()
    helper.close()


def test_nothing_to_measure_begins_no_process(tmp_path):
    campaign = campaign_of(tmp_path, {"study": "asking"}, studies=(ASKING,))
    session_of(campaign, tmp_path / "runs").run()
    helper = Beside(campaign.pages, RunStore(tmp_path / "runs"), Place(device="cpu"))
    helper.give(list(cells_of(campaign)))
    assert helper._process is None
    assert not helper.busy
    helper.close()


def test_time_is_kept_for_what_is_still_to_be_measured(tmp_path):
    campaign = campaign_of(tmp_path, {"study": "asking"}, {"study": "again"}, studies=(ASKING, AGAIN))
    store = finished(tmp_path / "runs", campaign)
    helper = Beside(campaign.pages, store, Place(device="cpu"))
    assert helper.seconds_left() == helper.seconds_for_another() == 0.0
    helper._hear = lambda: None  # as if it had not begun yet
    helper.give([*cells_of(campaign), "no run at all"])
    # Three runs of each study: half a second each, and ten seconds each where the model is asked again; and as much for
    # the group that comes.
    assert helper.seconds_left() == helper.seconds_for_another() == 3 * 0.5 + 3 * 10.0
    how = {"reserve": 20.0, "_helper": helper, "clock": Clock()}
    session = session_of(campaign, tmp_path / "runs", end=2000.0, **how)
    assert session.seconds_left == 1000.0 - 1.5 * 31.5, "the group that comes is measured at the end"
    session.end = 1090.0  # not enough for both
    assert session.seconds_left == 90.0 - 1.5 * 63.0
    del helper._hear
    helper.wait()
    rates = dict(helper._rates)
    assert set(rates) == {"asking", "again"}
    assert helper.seconds_left() == 0.0
    assert helper.seconds_for_another() == pytest.approx(3 * sum(rates.values()))
    helper._hear = lambda: None
    helper._given = [{"again": 20}, {"asking": 30}]
    helper._rates = {"asking": 2.0, "again": 3.0}
    assert helper.seconds_left() == 20 * 3.0 + 30 * 2.0
    assert helper.seconds_for_another() == 3 * 5.0
    helper._rates, helper._given = {}, [{"again": 200}]
    assert helper.seconds_left() == 120.0, "a guess is no more than two minutes"
    helper._given = []
    helper.close()


def test_what_it_measures_is_packed_while_the_next_group_trains(tmp_path):
    """Of a machine that is lost then, runs without measures would be trained again."""
    campaign, pack, seen = (
        campaign_of(tmp_path, {"study": "asking"}, studies=(ASKING,)),
        tmp_path / "p.zip",
        [],
    )

    def packed():
        other = RunStore(tmp_path / f"store{len(seen)}")
        merge_runs(pack, other)
        return len(numbers(other.root, campaign, "asking"))

    def engine(recipes, store, **how):
        if recipes[0].teacher is not None:  # the last group
            session._helper.wait()
            seen.append(packed())
            how["watcher"].progressed(recipes[0], 1, 1)
            seen.append(packed())
        return train(recipes, store, **how)

    session = session_of(campaign, tmp_path / "runs", beside=True, engine=engine, pack=pack)
    session.run()
    assert seen == [0, 2]


def test_one_that_dies_while_it_starts_is_noticed(tmp_path):
    """A large campaign is not sent along at the start, where nobody would notice that nobody reads it."""
    campaign = campaign_of(tmp_path, {"study": "asking", "seeds": 400}, studies=(ASKING,))
    store = RunStore(tmp_path / "runs")
    (first, *_) = cells_of(campaign).values()
    train([first.recipe], store, progress=False, device="cpu")
    helper = Beside(campaign.pages, store, Place(device="cpu"))
    begun = time.monotonic()
    helper.give([first.recipe.id])
    assert time.monotonic() - begun < 5
    helper._process.kill()
    helper.wait()
    assert helper.failed


def test_studies_of_the_main_program_are_left_to_it(tmp_path, monkeypatch):
    monkeypatch.setattr(by_whom, "__module__", "__main__")
    monkeypatch.setattr(sys.modules["__main__"], "by_whom", by_whom, raising=False)
    campaign = campaign_of(tmp_path, {"study": "asking"}, studies=(ASKING,))
    assert Beside(campaign.pages, RunStore(tmp_path / "runs"), Place(device="cpu")).pages == []


ORPHAN = """
import os, sys, time
from pathlib import Path
from softtargets.campaign import load_campaign, cells_of
from softtargets.campaign.beside import Beside
from softtargets.runs import RunStore
from softtargets.studies import Place
from tests.campaign.test_beside import ENDLESS

if __name__ == "__main__":
    root = Path(sys.argv[1])
    campaign = load_campaign(root / "campaign.yaml", (ENDLESS,))
    helper = Beside(campaign.pages, RunStore(root / "runs"), Place(device="cpu"))
    helper.give(list(cells_of(campaign)))
    while not (root / "busy").exists():
        time.sleep(0.05)
    print(helper._process.pid, flush=True)
    os.kill(os.getpid(), 9)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_it_does_not_outlive_its_parent(tmp_path):
    campaign = campaign_of(tmp_path, {"study": "endless"}, studies=(ENDLESS,))
    finished(tmp_path / "runs", campaign)
    script = tmp_path / "orphan.py"
    script.write_text(ORPHAN)
    path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": path, HINT: str(tmp_path / "busy")},
        timeout=120,
    )
    assert done.returncode == -9
    child = Path("/proc") / done.stdout.decode().strip()
    for _ in range(200):
        if not child.exists() or "\nState:\tZ" in (child / "status").read_text():
            break
        time.sleep(0.05)
    else:
        raise AssertionError("it is still there after ten seconds")


def leaves_somebody(trial, run):
    """Dies in the middle of a measurement, and leaves a process behind that holds all it had open."""
    if not os.fork():
        time.sleep(60)
    os._exit(1)


LEAVING = Study(**{**PARTS, "name": "leaving", "measure": leaves_somebody})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_compiler_that_a_dead_helper_has_left_behind_is_not_waited_for(tmp_path):
    campaign = campaign_of(tmp_path, {"study": "leaving"}, studies=(LEAVING,))
    helper = Beside(campaign.pages, finished(tmp_path / "runs", campaign), Place(device="cpu"))
    helper.give(list(cells_of(campaign)))
    while (
        helper._process.is_alive()
    ):  # to start takes long on a busy machine; join would wait for who is left behind
        time.sleep(0.05)
    begun = time.monotonic()
    helper.wait()
    assert helper.failed
    assert time.monotonic() - begun < 30, "who is left behind holds the pipe for a minute"
