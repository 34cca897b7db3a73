"""The head: gives runs to workers, hears of them, and goes on when one of them dies, until nothing is left to do."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from threading import Event as Flag
from typing import Any

from softtargets.exceptions import RunError, SofttargetsError
from softtargets.executors.ray.carrying import HeadStore, packed
from softtargets.executors.ray.deaths import Deaths
from softtargets.executors.ray.dispatch import Waiting, next_order
from softtargets.executors.ray.orders import Hello, Inspected, News, Order, Outcome, Refusal
from softtargets.executors.ray.staff import FAILED_STARTS, Staff, Station, check_versions, why_died
from softtargets.recipes import Recipe
from softtargets.runs import Run, progress_of
from softtargets.training import Watcher, kind_of_run

POLL_SECONDS = 0.2
LOOK_SECONDS = 0.5  # between two looks at runs that other processes are training
PATIENCE_SECONDS = 15.0  # until it is said that workers have not come
_SEEN_SECONDS = 60.0  # in which a file that a worker wrote must have become visible here
_LATE_SECONDS = 2.0  # after the end of the time, when workers that still train are asked to stop
_DATA = ("DataError",)  # refusals that are of a node, not of a recipe


@dataclass(frozen=True)
class Call:
    """What one call of the executor asks for.

    keep:   by id, the splits on which predictions are kept.
    afresh: ids of light runs that are trained once more.
    until:  a moment of `time.monotonic`.
    wait:   for runs that other processes are training.
    """

    keep: Mapping[str, tuple[str, ...]]
    afresh: frozenset[str]
    checkpoint_seconds: float
    until: float | None
    wait: bool


class Head:
    """Trains what is left (`todo`, by id, each after its teacher) on a staff.

    `completing` are finished runs among them that only lack predictions. What has come to its end leaves `todo`; what
    stays there at the end of `run` is not finished. `given_up` are those among them that lost too many workers, and
    why. `opening` is called with the units of work of all runs, before anything is trained.
    """

    def __init__(
        self,
        store: HeadStore,
        todo: dict[str, Recipe],
        call: Call,
        watcher: Watcher,
        deaths: Deaths,
        opening: Callable[[Mapping[str, int]], None],
        completing: frozenset[str] = frozenset(),
    ) -> None:
        self.todo = todo
        self.given_up: dict[str, str] = {}
        self._store, self._call, self._watcher = store, call, watcher
        self._deaths, self._opening, self._completing = deaths, opening, completing
        self._inspected: Inspected | None = None
        self._elsewhere: dict[str, float] = {}  # trained by other processes: when to look again
        self._taught: dict[str, Any] = {}  # packs of teachers, in Ray's object store
        self._refusal: Exception | None = None
        self._told_of_waiting = self._told_of_patience = False

    def run(self, staff: Staff, asked_to_stop: Flag) -> None:
        """Train until nothing is left to do, or the time is up; Ctrl-C ends it as soon as all is saved."""
        self._staff, self._ray, self._begun = staff, staff.cluster.ray, time.monotonic()
        try:
            while self.todo:
                if asked_to_stop.is_set():
                    self._stop_all()
                    raise KeyboardInterrupt
                late = self._seconds_left() is not None and (self._seconds_left() or 0.0) < -_LATE_SECONDS
                if late:
                    self._staff.ask_to_stop()
                self._look_elsewhere()
                self._give_work()
                if self._is_over():
                    return
                self._listen(POLL_SECONDS)
        except Exception:
            self._stop_all()  # what others have done is saved before the error is told
            raise
        finally:
            self._store.let_all_go()

    # What is to be done.

    def _seconds_left(self) -> float | None:
        return None if self._call.until is None else self._call.until - time.monotonic()

    def _time_is_up(self) -> bool:
        left = self._seconds_left()
        return left is not None and left <= 0

    def _busy(self) -> list[Station]:
        return [station for station in self._staff.stations if station.order is not None]

    def _is_over(self) -> bool:
        """Whether nobody trains, and nobody can or should begin to."""
        if not self.todo or self._busy():
            return not self.todo
        if self._time_is_up():
            return True
        left = [key for key in self.todo if key not in self.given_up]
        stations = self._staff.stations
        if stations and all(station.hello and not station.hello.shares for station in stations):
            left = [key for key in left if key not in self._completing]
        if not left:
            return True
        blocked = [key for key in left if key in self._elsewhere or self._needs(key) in self.todo]
        if len(blocked) == len(left):
            if not self._call.wait:
                return True
            if not self._told_of_waiting:
                self._watcher.waiting(self.todo[left[0]])
            self._told_of_waiting = True
        if not self._staff.stations:
            raise self._refusal or SofttargetsError(
                self._staff.why_failed or "no worker of the cluster could be started"
            )
        self._be_patient()
        return False

    def _be_patient(self) -> None:
        """Say once why nothing happens: the cluster has no room for workers yet."""
        arrived = any(station.hello for station in self._staff.stations)
        if arrived or self._told_of_patience or time.monotonic() - self._begun < PATIENCE_SECONDS:
            return
        self._told_of_patience = True
        needs = ", ".join(f"{size:g} {name}" for name, size in self._staff.sized.items())
        free = ", ".join(f"{self._staff.cluster.free(name):g} {name}" for name in self._staff.sized)
        self._watcher.noted(
            f"No worker has started yet: each needs {needs}, and the cluster has {free} free. Waiting for room; "
            "Ctrl-C stops waiting."
        )

    def _needs(self, key: str) -> str | None:
        teacher = self.todo[key].teacher
        return None if teacher is None else teacher.id

    def _look_elsewhere(self) -> None:
        """Runs that other processes had, and that they have finished or dropped, are ours again."""
        moment = time.monotonic()
        for key, when in list(self._elsewhere.items()):
            if moment >= when:
                if self._store.is_claimed(self.todo[key]):
                    self._elsewhere[key] = moment + LOOK_SECONDS
                else:
                    del self._elsewhere[key]

    def _waiting(self, station: Station) -> list[Waiting]:
        """What a worker could be given, in order."""
        assert self._inspected is not None
        assert station.hello is not None
        doing = {key for busy in self._busy() if busy.order for key in busy.order.ids}
        needed = {self._needs(key) for key in self.todo}
        found = []
        for key, recipe in self.todo.items():
            free = key not in doing and key not in self._elsewhere and key not in self.given_up
            reachable = station.hello.shares or key not in self._completing
            if free and reachable and self._needs(key) not in self.todo:
                together = self._inspected.together.get(key, 1)
                alone = self._deaths.is_alone(key)
                found.append(Waiting(key, kind_of_run(recipe), together, key in needed, alone))
        return found

    def _give_work(self) -> None:
        idle = [station for station in self._staff.stations if station.is_idle]
        if not idle or self._time_is_up():
            return
        if self._inspected is None:
            if not any(station.asked == "inspect" and station.waits_for for station in self._staff.stations):
                self._staff.inspect(idle[0], list(self.todo.values()))
            return
        for station in idle:
            self._give(station)

    def _give(self, station: Station) -> None:
        waiting = self._waiting(station)
        under_way: Counter[Hashable] = Counter()
        for busy in self._busy():
            assert busy.order is not None
            under_way[busy.kind] += sum(key in self.todo for key in busy.order.ids)
        ids = next_order(waiting, self._staff.size, under_way, station.kind)
        assert station.hello is not None
        packs: list[Any] = []
        if ids and not station.hello.shares:
            ids, packs = self._carried(station, ids)
        if not ids:
            return
        recipes = tuple(self.todo[key] for key in ids)
        order = Order(
            recipes,
            keep={key: self._call.keep.get(key, ()) for key in ids},
            checkpoint_seconds=self._call.checkpoint_seconds,
            seconds=self._seconds_left(),
            afresh=tuple(key for key in ids if key in self._call.afresh),
        )
        self._told_of_waiting = False
        self._staff.give(station, order, packs, kind_of_run(recipes[0]))

    def _carried(self, station: Station, ids: list[str]) -> tuple[list[str], list[Any]]:
        """Those of these runs that are ours to give away, with what must travel for them."""
        held: list[str] = []
        for key in ids:
            recipe = self.todo[key]
            if not self._store.hold(recipe):
                self._elsewhere[key] = time.monotonic() + LOOK_SECONDS
            elif (run := self._store.find(recipe)) and not (run.is_light and key in self._call.afresh):
                self._conclude(key)  # by another process, a moment ago
            else:
                held.append(key)
        packs = []
        for key in held:
            teacher = self.todo[key].teacher
            if teacher is not None and teacher.id not in station.taught:
                station.taught.add(teacher.id)
                packs.append(self._pack_of_teacher(teacher))
            if content := packed(Run(self._store.root / key)):
                packs.append(content)
        return held, packs

    def _pack_of_teacher(self, teacher: Recipe) -> Any:
        if teacher.id not in self._taught:
            content = packed(Run(self._store.root / teacher.id))
            if content is None:
                raise RunError(f"run {teacher.id}, a teacher, is no longer in {self._store.root}")
            self._taught[teacher.id] = self._ray.put(content)
        return self._taught[teacher.id]

    # What workers say.

    def _listen(self, seconds: float) -> None:
        """Take what workers have answered."""
        asked = {}
        for station in self._staff.stations:
            for reference in (station.waits_for, station.news):
                if reference is not None:
                    asked[reference] = station
        if not asked:
            time.sleep(seconds)
            return
        ready, rest = self._ray.wait(list(asked), num_returns=1, timeout=seconds)
        if ready and rest:
            ready += self._ray.wait(rest, num_returns=len(rest), timeout=0)[0]
        for station in dict.fromkeys(asked[reference] for reference in ready):
            if station in self._staff.stations:
                self._hear(station, set(ready))

    def _hear(self, station: Station, ready: set[Any]) -> None:
        try:
            if station.news in ready or (station.news is not None and station.waits_for in ready):
                news, station.news = self._ray.get(station.news), None
                self._take_news(news)
                if station.waits_for not in ready:
                    self._staff.ask_news(station)
            if station.waits_for in ready:
                answer, station.waits_for = self._ray.get(station.waits_for), None
                self._take_answer(station, answer)
        except SofttargetsError:
            raise
        except self._ray.exceptions.RayTaskError as error:
            if station.hello is None:  # the class of the worker could not even be loaded
                self._lost(station, error)
                return
            raise
        except self._ray.exceptions.RayError as error:
            self._lost(station, error)

    def _take_answer(self, station: Station, answer: Any) -> None:
        match answer:
            case Hello():
                self._staff.failed_starts = 0
                if answer.node in self._staff.shunned:
                    self._staff.lose(station)
                    return
                check_versions(answer)
                station.hello = answer
            case Inspected():
                self._inspected = answer
                self._opening(answer.units)
            case Outcome():
                self._take_outcome(station, answer)
            case Refusal():
                self._refused(station, answer)

    def _take_outcome(self, station: Station, outcome: Outcome) -> None:
        station.order = None
        self._take_news(outcome.news)
        for key in outcome.left:
            self._store.let_go(key)
        if outcome.refusal is not None:
            self._refused(station, outcome.refusal)
        elif not self._time_is_up():
            moment = time.monotonic()
            self._elsewhere |= {key: moment + LOOK_SECONDS for key in outcome.left if key in self.todo}

    def _refused(self, station: Station, refusal: Refusal) -> None:
        """An error of a worker is ours; where only its node is at fault, others go on."""
        node = station.node
        if refusal.kind not in _DATA:
            raise refusal.exception()
        error = refusal.exception(node)
        self._staff.shunned.add(node)
        for other in [*self._staff.stations]:
            if other is station or (other.node == node and other.is_idle):
                self._staff.lose(other)
        self._refusal = error  # told in the end if no other node has the data
        self._watcher.noted(f"Nothing is trained on {node}: {refusal.message}")

    def _take_news(self, news: News) -> None:
        for key, content in news.packs.items():
            if key in self.todo:
                for sentence in self._store.take_in(content, self.todo[key]):
                    self._watcher.noted(sentence)
        for kind, key, told in news.events:
            recipe = self.todo.get(key)
            if kind == "noted":
                self._watcher.noted(told)
            elif recipe is None or key in self._completing:
                if kind == "finished" and recipe is not None:
                    self.todo.pop(key)
            elif kind == "finished":
                self._conclude(key)
            elif kind == "epoch":
                self._watcher.epoch(recipe, told)
            else:
                getattr(self._watcher, kind)(recipe, *told)

    def _conclude(self, key: str) -> None:
        """A run has come to its end: nothing is left to do for it."""
        recipe = self.todo[key]
        patient_until = time.monotonic() + _SEEN_SECONDS
        while (run := self._store.find(recipe)) is None:
            if time.monotonic() > patient_until:
                raise RunError(
                    f"a worker has finished run {key}, but the run does not appear in {self._store.root}"
                )
            time.sleep(POLL_SECONDS)  # a network file system may take a while to show it
        self.todo.pop(key)
        self._store.let_go(key)
        self._watcher.finished(run)

    # When workers die, and the end.

    def _lost(self, station: Station, error: BaseException) -> None:
        """A worker died: others go on with its runs, and another one takes its place."""
        why, order, node, staff = why_died(self._ray, error), station.order, station.node, self._staff
        if station.hello is None:
            staff.failed_starts += 1
            staff.why_failed = f"no worker could be started: {why}"
            if "softtargets is not installed" in why:
                staff.failed_starts = FAILED_STARTS
        station.order = None
        staff.replace(station)
        if order is None:
            return
        steps = {
            key: int(progress_of(self._store.root / key).get("step", 0))
            for key in order.ids
            if key in self.todo
        }
        for key in steps:
            self._store.let_go(key)
        for key in self._deaths.died(steps):
            self.given_up[key] = f"{self._deaths.count(key)} workers died with it, the last one since {why}"
        for key in self.todo:  # teachers come first
            if key not in self.given_up and self._needs(key) in self.given_up:
                self.given_up[key] = f"its teacher {self._needs(key)} was left out"
        on = (
            "its run is resumed from its checkpoint"
            if len(steps) == 1
            else "its runs are resumed from their checkpoints"
        )
        self._watcher.noted(f"A worker on {node} died: {why}; {on}.")

    def _stop_all(self) -> None:
        """Let all workers save what they have under way, and hear of it."""
        self._staff.is_closing = True
        self._staff.ask_to_stop()
        while self._busy():
            try:
                self._listen(POLL_SECONDS)
            except self._ray.exceptions.RayError:
                return  # the cluster itself is gone
            except Exception:
                continue  # the first error is told
