"""A campaign at work for a while: train what is next, measure it, pack it, and so on until the time is up."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from softtargets.campaign.beside import Beside
from softtargets.campaign.cells import State, wanted_lessons
from softtargets.campaign.file import PlannedPage
from softtargets.campaign.measuring import measure_page, to_measure
from softtargets.campaign.order import Group, Wanted, next_round, soonest
from softtargets.campaign.planning import Outlook
from softtargets.data import status
from softtargets.exceptions import SofttargetsError, StorageError, Unfinished
from softtargets.recipes import Recipe
from softtargets.report import plural
from softtargets.runs import SCORES, Run, pack_runs
from softtargets.studies import Place
from softtargets.training import (
    CHECKPOINT_SECONDS,
    LESSONS,
    Resources,
    Watcher,
    Watchers,
    kind_of_run,
    train,
)

RESERVE = 30.0  # seconds of the time there is, for checkpoints, measurements and the pack
# Estimates of what comes after training are rough: so many times as long is kept for it.
SLACK = 1.5
POLL_SECONDS = 1.0  # between two looks at what other processes are doing
# A pack has all finished runs in it. Where writing it takes longer than this many seconds, it is not written after
# every group but so that it takes at most this share of the time: a campaign of n runs would cost n squared.
LONG_PACK, SHARE_OF_PACKING = 10.0, 0.1
QUICK_PACK = 1.0  # seconds: one that takes no longer is also written before runs are measured

Watching = Callable[[], AbstractContextManager[Watcher | None]]


@dataclass
class Session:
    """One call of ``softtargets campaign run``.

    end:      a moment of the clock at which all must be over; None: when everything is done.
    reserve:  seconds before it after which nothing is trained any more.
    pack:     a file that gets all finished runs of the campaign after each group (after some, where there are tens of
              thousands of runs) and at the end, unless they are light: those came from such a file. Lessons that
              students wait for go with their teachers. `include` is what goes into it besides (`pack_runs`);
              checkpoints only at the end.
    sharing:  how many of these commands share the campaign, on a device each.
    watching: makes what shows the progress of a group.
    say:      tells people a line.
    engine:   who trains (`softtargets.executors`), on so many `devices` at a time; `measured_on` is the device that
              studies measure on, where that is not the one of the outlook.
    beside:   measure in another process while the next group is trained: for a GPU, which neither keeps busy alone.
    """

    outlook: Outlook
    end: float | None = None
    reserve: float = RESERVE
    data_dir: Path | None = None
    workers: int | None = 1
    sharing: int = 1
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    pack: Path | None = None
    include: Collection[str] = ()
    watching: Watching = nullcontext
    say: Callable[[str], None] = print
    engine: Callable[..., list[Run]] = train
    clock: Any = time
    devices: int = 1
    measured_on: str | None = None
    beside: bool = False
    skipped: dict[str, str] = field(default_factory=dict)  # cells that cannot be trained here, and why
    trained: list[str] = field(default_factory=list)  # cells that came to their end in this session
    _ready: set[Hashable] = field(default_factory=set)
    _place: Place = field(init=False)  # where studies measure
    _helper: Beside | None = None
    _heard: int = 0  # how many of its answers are packed
    _told: set[str] = field(default_factory=set)  # what went wrong with measuring
    _careful: bool = False  # one kind at a time: something of the last round was refused
    _concluding: float = 0.0  # seconds that measuring and packing the last group took
    _whole_time: float = 0.0  # seconds there were for the first group: what the next session will have
    _packing: float = 0.0  # seconds that the last pack took,
    _packed: float = -math.inf  # and when it was written

    def run(self) -> None:
        """Train until everything is done or the time is up; whatever happens, finished runs are packed."""
        outlook = self.outlook
        self._resources = Resources(outlook.store, outlook.device, self.data_dir)
        self._place = Place(self.data_dir, self.measured_on or str(outlook.device))
        if self.beside:
            self._helper = Beside(outlook.campaign.pages, outlook.store, self._place)
        self._skip_missing_data()
        self._skip_damaged()
        try:
            self._complete_predictions()
            self._measure(outlook.done())
            while group := self._next():
                self._train(group)
        finally:
            # Also after Ctrl-C, which comes with a run or two finished since the last group: a run that travels without
            # what studies measured on it would have to be trained again.
            try:
                self._conclude_all()
            finally:
                if self._helper is not None:
                    self._helper.close()

    def _conclude_all(self) -> None:
        """Measure whatever is finished, and pack it."""
        self.outlook.look()
        done = self.outlook.done()
        if self._is_left_to_measure(done):
            # Measuring takes minutes where translations are made; whoever ends the session may not wait for it, and
            # checkpoints must not be lost then.
            self._write_pack(self.include)
            self._wait_for_helper()
            self._measure_here(done, self.outlook.campaign.pages)
        self._write_pack(self.include)

    @property
    def seconds_left(self) -> float:
        """For training runs that come to their end, from now."""
        return self._seconds_left(finishing=True)

    def _seconds_left(self, finishing: bool) -> float:
        until = self._until(finishing)
        return math.inf if until is None else until - self.clock.monotonic()

    def _until(self, finishing: bool) -> float | None:
        """When training is to end, whether runs come to their end in it, which are then measured, or only go on."""
        if self.end is None:
            return None
        helper, backlog, after = self._helper, 0.0, self._concluding
        if helper is not None:
            backlog = helper.seconds_left()
            # What one that died has left is measured here, at the end.
            if finishing or helper.failed:
                after += helper.seconds_for_another()
        # The backlog is measured while training goes on, and takes no time from it as long as all should be measured by
        # the end. If it may not be, nothing more is trained, so that the other process has the device to itself.
        if self.clock.monotonic() + SLACK * (backlog + after) > self.end:
            after += backlog
        return self.end - max(self.reserve, SLACK * after)

    def _until_of(self, group: Group) -> float | None:
        """When training a group is to end."""
        return self._until(finishing=group.soonest <= self._seconds_left(finishing=False))

    def _next(self) -> Group | None:
        """What is trained next; where other processes have it all, whatever becomes free."""
        told = False
        while True:
            self.outlook.look()
            wanted, running = self.outlook.wanted(), self.outlook.running()
            group = self._group(wanted, running)
            if group is not None or not running or self._group(wanted, ()) is None:
                return group
            if not told:
                self.say(f"Other processes are training {plural(len(running), 'run')}; waiting for them.")
            told = True
            self.clock.sleep(POLL_SECONDS)

    def _group(self, wanted: Sequence[Wanted], running: Collection[str]) -> Group | None:
        left, blocked = self.seconds_left, [*self.skipped, *running]
        group = self._round(wanted, left, blocked)
        longer = self._seconds_left(finishing=False)
        if group is None and longer > left:
            # Too late for runs that would have to be measured. Others may go on until the end, and leave checkpoints.
            blocked += [one.id for one in wanted if soonest([one], self._ready) <= longer]
            group = self._round(wanted, longer, blocked)
        return group

    def _round(self, wanted: Sequence[Wanted], left: float, blocked: Collection[str]) -> Group | None:
        # Also with time enough for a group a clock that has run out ends the session.
        if left <= 0:
            return None
        devices = 1 if self._careful else self.devices
        self._whole_time = self._whole_time or left
        return next_round(wanted, left, devices, self._ready, blocked, self.sharing, self._whole_time)

    def _train(self, group: Group) -> None:
        outlook = self.outlook
        before = {key: outlook.states[key] for key in group.ids}
        kinds = {kind_of_run(outlook.cells[key].recipe) for key in group.ids}
        refused = False
        self._tell(group)
        until = self._until_of(group)
        try:
            self._call_engine(group, until)
        except Unfinished:
            pass
        except StorageError:
            raise
        except SofttargetsError as error:
            if len(kinds) == 1:
                self._skip(group.ids, str(error))
            refused = True
        self._careful = refused and len(kinds) > 1
        self._ready |= kinds
        outlook.look()
        ended = [key for key in group.ids if _is_concluded(outlook.states[key])]
        if not self._careful:
            self._check_progress(group, before, until)
        self._conclude(ended)
        outlook.learn(key for key in ended if outlook.states[key].status == "done")

    def _call_engine(self, group: Group, until: float | None) -> None:
        outlook = self.outlook
        cells = [outlook.cells[key] for key in group.ids]
        with self.watching() as watcher:
            packing = [] if self._helper is None else [_Packing(self)]
            watchers = [*packing, *([] if watcher is None else [watcher])]
            self.engine(
                [cell.recipe for cell in cells],
                outlook.store,
                device=str(outlook.device),
                keep={cell.recipe.id: cell.keep for cell in cells},
                data_dir=self.data_dir,
                watcher=Watchers(*watchers) if packing else watcher,
                progress=False,
                checkpoint_seconds=self.checkpoint_seconds,
                workers=self.workers,
                until=until,
                wait=False,
                resources=self._resources,
                afresh=[key for key in group.ids if outlook.states[key].light],
            )

    def _tell(self, group: Group) -> None:
        cells = [self.outlook.cells[key] for key in group.ids]
        recipe = cells[0].recipe
        rank = self.outlook.rank(group.ids[0])
        entry = self.outlook.campaign.entries[rank - 1]
        begun = sum(self.outlook.states[key].status == "interrupted" for key in group.ids)
        what = f"{plural(len(cells), 'run')} of {entry.study.name} ({recipe.data.name}, {recipe.model.name})"
        if len({kind_of_run(cell.recipe) for cell in cells}) > 1:
            what = f"{what[:-1]} first, and other kinds)"
        going_on = f", {begun} of them begun before" if begun else ""
        estimate = "unknown time" if group.seconds is None else f"about {group.seconds / 60:.1f} min"
        ending = "" if group.whole else ", more than the time left, so they leave checkpoints"
        self.say(f"Entry {rank}: {what}{going_on}, {estimate}{ending}.")

    def _check_progress(self, group: Group, before: dict[str, State], until: float | None) -> None:
        """A group that comes back as it was would come back for ever."""
        after = self.outlook.states
        stuck = [key for key in group.ids if key not in self.skipped and after[key] == before[key]]
        early = until is None or self.clock.monotonic() < until
        if len(stuck) == len(group.ids) and early:
            self._skip(stuck, "the engine returned without training")

    def _conclude(self, ended: Sequence[str]) -> None:
        """Measure runs that have come to their end for the studies that want them, and pack what there is."""
        begun = self.clock.monotonic()
        self.trained += ended
        done = [key for key in ended if self.outlook.states[key].status == "done"]
        due, include = bool(ended) and self._pack_is_due(begun), set(self.include) - {"checkpoints"}
        # Before they are measured too: that may take a minute, in which a rented machine may be lost.
        early = due and self._packing <= QUICK_PACK and self._is_left_to_measure(done)
        if early:
            self._write_pack(include)
        measured_here = self._measure(done)
        if due and (measured_here or not early) and self._pack_is_due(self.clock.monotonic()):
            self._write_pack(include)
        self._concluding = self.clock.monotonic() - begun

    def pack_what_is_measured(self) -> None:
        """In the middle of a training: runs that are lost with their measures would have to be trained again."""
        helper = self._helper
        if helper is None:
            return
        self._tell_problems(helper.problems())
        if helper.answers > self._heard:
            self._heard = helper.answers
            if self._pack_is_due(self.clock.monotonic()):
                self._write_pack(set(self.include) - {"checkpoints"})

    def _is_left_to_measure(self, done: Collection[str]) -> bool:
        keys = set(done)
        return any(to_measure(page, keys, self.outlook.store) for page in self.outlook.campaign.pages)

    def _measure(self, done: Sequence[str]) -> bool:
        """Measure finished runs here, or have it done; whether something was measured here."""
        pages, helper = self.outlook.campaign.pages, self._helper
        if helper is not None:
            helper.give(done)
            self._tell_problems(helper.problems())
            if not helper.failed:
                theirs = {page.name for page in helper.pages}
                pages = [page for page in pages if page.name not in theirs]
        keys = set(done)
        pages = [page for page in pages if to_measure(page, keys, self.outlook.store)]
        if any(page.study.timed for page in pages):
            self._wait_for_helper()  # it would slow down what is timed
        self._measure_here(done, pages)
        return bool(pages)

    def _measure_here(self, done: Collection[str], pages: Sequence[PlannedPage]) -> None:
        keys = set(done)
        for page in pages:
            self._tell_problems(measure_page(page, keys, self.outlook.store, self._place))
        self._place.supplies.clear()  # which take memory that training may want

    def _wait_for_helper(self) -> None:
        if self._helper is not None:
            self._helper.wait()
            self._tell_problems(self._helper.problems())

    def _tell_problems(self, problems: Sequence[str]) -> None:
        """Once each: what could not be measured is tried again at the end."""
        for problem in problems:
            if problem not in self._told:
                self._told.add(problem)
                self.say(problem)

    def _pack_is_due(self, moment: float) -> bool:
        return self._packing <= LONG_PACK or SHARE_OF_PACKING * (moment - self._packed) >= self._packing

    def _write_pack(self, include: Collection[str]) -> None:
        if self.pack is None:
            return
        begun = self.clock.monotonic()
        self.outlook.look()
        kept = [
            self.outlook.run(key)
            for key, state in self.outlook.states.items()
            if (_is_concluded(state) and not state.light)
            or ("checkpoints" in include and state.status == "interrupted")
        ]
        if kept:
            lessons = wanted_lessons(self.outlook.cells, self.outlook.states)
            for problem in pack_runs(kept, self.pack, include, dict.fromkeys(lessons, (LESSONS,))).left_out:
                self.say(f"Not packed: {problem}")
        self._packed = self.clock.monotonic()
        self._packing = self._packed - begun

    def _complete_predictions(self) -> None:
        """Finished runs that lack predictions which a study has come to want get them, from their weights."""
        lacking = {
            key: self.outlook.cells[key].keep for key in self.outlook.done() if self._lacks_predictions(key)
        }
        if not lacking or self.seconds_left <= 0:
            return
        self.say(f"Adding predictions that a study needs to {plural(len(lacking), 'finished run')}.")
        recipes = [self.outlook.cells[key].recipe for key in lacking]
        try:
            self.engine(recipes, self.outlook.store, keep=lacking, progress=False, resources=self._resources)
        except StorageError:
            raise
        except SofttargetsError as error:
            self.say(f"They could not be added: {error}.")

    def _lacks_predictions(self, key: str) -> bool:
        cell, run = self.outlook.cells[key], self.outlook.run(key)
        if self.outlook.states[key].light or status(cell.recipe.data.name, self.data_dir) != "ready":
            return False
        named = ((name, name.removesuffix(SCORES)) for name in cell.keep)
        return any(
            not run.has_predictions(split) or (name == split and run.has_only_scores(split))
            for name, split in named
            if split in cell.recipe.data.splits
        )

    def _skip_missing_data(self) -> None:
        lacking: dict[str, list[str]] = {}
        for one in self.outlook.wanted():
            name = self.outlook.cells[one.id].recipe.data.name
            if status(name, self.data_dir) != "ready":
                lacking.setdefault(name, []).append(one.id)
        for name, keys in lacking.items():
            self._skip(
                keys,
                f"the dataset {name} is not on this machine; softtargets data fetch {name} downloads it, or says "
                "where to get it",
            )

    def _skip_damaged(self) -> None:
        for key in self.outlook.unreachable():
            self.skipped[key] = "its run is damaged"
            self.say(
                f"Run {key} is damaged: delete it with `softtargets runs delete {key}`, and it is trained again."
            )

    def _skip(self, keys: Sequence[str], why: str) -> None:
        self.skipped |= dict.fromkeys(keys, why)
        self.say(f"{plural(len(keys), 'run')} left out: {why}.")


class _Packing(Watcher):
    """Looks now and then whether the helper of a session has measured something."""

    def __init__(self, session: Session) -> None:
        self._session, self._looked = session, -math.inf

    def progressed(self, recipe: Recipe, step: int, units: int) -> None:
        moment = self._session.clock.monotonic()
        if moment - self._looked >= POLL_SECONDS:
            self._looked = moment
            self._session.pack_what_is_measured()


def _is_concluded(state: State) -> bool:
    return state.status in ("done", "failed")
