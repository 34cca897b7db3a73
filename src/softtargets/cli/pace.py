"""How fast trainings go and how long they still take. Arithmetic only: numbers go in, and a clock."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Mapping

Clock = Callable[[], float]

WINDOW_SECONDS = 30.0
_MARKS = 60  # kept per window, however often something is added


class Rate:
    """Amounts per second over the last half minute.

    Time begins with the first amount, which itself is not counted: nobody knows since when it was under way, and a
    training may have compiled its model for a minute before.

    >>> moment = 0.0
    >>> rate = Rate(lambda: moment)
    >>> rate.add(500)
    >>> rate.per_second() is None
    True
    >>> moment = 2.0
    >>> rate.add(100)
    >>> rate.per_second()
    50.0
    """

    def __init__(self, clock: Clock = time.monotonic, window: float = WINDOW_SECONDS) -> None:
        self._clock = clock
        self._window = window
        self._gap = window / _MARKS
        self._total = 0.0
        self._opened = 0.0  # when the last mark was set; it takes up what comes shortly after
        self._marks: deque[tuple[float, float]] = deque()  # a moment, and the total by then

    def add(self, amount: float) -> None:
        """So much was done since the last call."""
        moment = self._clock()
        self._total += amount
        if self._marks and moment - self._opened < self._gap:
            self._marks[-1] = (moment, self._total)
            return
        self._opened = moment
        self._marks.append((moment, self._total))
        # Two marks stay however old they are: a step may take longer than the window.
        while len(self._marks) > 2 and self._marks[1][0] <= moment - self._window:
            self._marks.popleft()

    def per_second(self) -> float | None:
        """The rate, or None until it is known; while nothing is added, it falls."""
        if not self._marks:
            return None
        moment, total = self._marks[0]
        seconds = self._clock() - moment
        # Right after the first mark a whole pack reports at once, which would look like an enormous speed.
        if seconds < self._gap or self._total <= total:
            return None
        return (self._total - total) / seconds


class Lap:
    """One run under way: how far it is, how fast it goes, how long it still takes.

    What was done before it was resumed is progress, but not speed. `id`, `name` and `row`, the last of its metrics, are
    for whoever shows it.
    """

    def __init__(
        self, step: int, total: int, batch: int, clock: Clock = time.monotonic, unit: str = "images"
    ) -> None:
        self.id = self.name = ""
        self.row: dict[str, float] = {}
        self.step = self._first = step
        self.total = total
        self.unit = unit
        self._batch = batch
        self._units = 0
        self._rate = Rate(clock)

    def progressed(self, step: int, units: int) -> None:
        """So many steps are done, and `units` were seen since the last call."""
        self.step = step
        self._units += units
        self._rate.add(units)

    @property
    def fraction(self) -> float:
        """How much is done, from 0 to 1."""
        return min(1.0, self.step / self.total) if self.total > 0 else 1.0

    @property
    def units(self) -> float:
        """How many images or tokens the whole run sees; estimated, because the last batch may be smaller."""
        return self.total * self._units_per_step

    @property
    def units_left(self) -> float:
        """How many it will still see."""
        return max(0, self.total - self.step) * self._units_per_step

    def units_per_second(self) -> float | None:
        """Lately; None until it is known."""
        return self._rate.per_second()

    def seconds_left(self) -> float | None:
        """Until this run is finished; None until it is known."""
        rate = self._rate.per_second()
        return self.units_left / rate if rate else None

    @property
    def _units_per_step(self) -> float:
        steps = self.step - self._first
        return self._units / steps if steps > 0 and self._units > 0 else float(self._batch)


def common_unit(units: Collection[str]) -> str:
    """What several runs count their work in.

    >>> common_unit({"images"}), common_unit({"images", "tokens"})
    ('images', 'units')
    """
    return next(iter(units)) if len(set(units)) == 1 else "units"


class Pace:
    """A whole command: what is done, what is under way, and how long the rest takes.

    The work left is counted in units (images, tokens): of runs under way what they still need, of others what the plan
    says they need, or else as much as the runs known so far need on average. The speed is ours, over the last half
    minute, and that of other processes, as far as they finished runs that began after us.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        self.runs = self.done = self.reused = self.resumed = self.failed = 0
        self.laps: dict[str, Lap] = {}
        self._words: set[str] = set()
        self._clock = clock
        self._begun = clock()
        self._rate = Rate(clock)
        self._elsewhere = 0
        self._to_begin: dict[str, int] = {}
        self._ended, self._ended_units = 0, 0.0

    def planned(self, runs: int, reused: int, units: Mapping[str, int] | None = None) -> None:
        """The command needs so many runs; `units` says what those to be trained will see, where it is known."""
        self.runs, self.done, self.reused = runs, reused, reused
        self._to_begin = dict(units or {})

    @property
    def unit(self) -> str:
        """What work is counted in, where all runs that have begun agree on it."""
        return common_unit(self._words)

    def started(self, run: str, step: int, total: int, batch: int, unit: str = "images") -> Lap:
        """A run begins, or goes on from `step`."""
        self._words.add(unit)
        self._to_begin.pop(run, None)
        self.resumed += step > 0 and run not in self.laps
        self.laps[run] = Lap(step, total, batch, self._clock, unit)
        return self.laps[run]

    def progressed(self, run: str, step: int, units: int) -> None:
        """A run got on."""
        if run in self.laps:
            self.laps[run].progressed(step, units)
        self._rate.add(units)

    def finished(self, run: str, failed: bool = False, units: int = 0, since_we_began: bool = False) -> None:
        """A run has ended; `units` is what it saw, and is asked for only if it was not trained here."""
        self._to_begin.pop(run, None)
        self.done += 1
        self.failed += failed
        lap = self.laps.pop(run, None)
        if lap is None and since_we_began:
            self._elsewhere += units
        size = lap.units if lap else units
        if size > 0 and not (failed and lap is None):
            self._ended += 1
            self._ended_units += size

    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return self._clock() - self._begun

    def units_per_second(self) -> float | None:
        """Of all runs together; None until it is known."""
        ours, elapsed = self._rate.per_second(), self.elapsed()
        theirs = self._elsewhere / elapsed if elapsed > 0 else 0.0
        return (ours or 0.0) + theirs or None

    def seconds_left(self) -> float | None:
        """Until everything is done; None until it is known."""
        if not self.runs:
            return None
        if self.done >= self.runs:
            return 0.0
        left, rate = self._units_left(), self.units_per_second()
        return left / rate if left is not None and rate else None

    def _units_left(self) -> float | None:
        left = sum(lap.units_left for lap in self.laps.values()) + sum(self._to_begin.values())
        unknown = self.runs - self.done - len(self.laps) - len(self._to_begin)
        if unknown <= 0:
            return left
        known = self._ended + len(self.laps) + len(self._to_begin)
        if not known:
            return None
        sizes = sum(lap.units for lap in self.laps.values()) + sum(self._to_begin.values())
        return left + unknown * (self._ended_units + sizes) / known
