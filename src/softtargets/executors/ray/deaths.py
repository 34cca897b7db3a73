"""How often runs may lose their workers: retries end, and who is to blame is found out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

RETRIES = 3


@dataclass
class Deaths:
    """Counts the workers that died with a run under way.

    A run that went on from a later step than the time before has got somewhere, and is counted anew: machines that
    come and go are no fault of runs. One that has not is tried `retries` times; from the second death on alone, so
    that no other run is blamed for it.

    >>> deaths = Deaths(retries=2)
    >>> deaths.died({"a": 0, "b": 0}), deaths.is_alone("a")
    ([], False)
    >>> deaths.died({"a": 0, "b": 5}), deaths.is_alone("a"), deaths.is_alone("b")
    ([], True, False)
    >>> deaths.died({"a": 0})
    ['a']
    """

    retries: int = RETRIES
    _counts: dict[str, int] = field(default_factory=dict)
    _steps: dict[str, int] = field(default_factory=dict)

    def died(self, steps: Mapping[str, int]) -> list[str]:
        """A worker died that had these runs, which go on from these steps; returns those that are given up."""
        for run, step in steps.items():
            stuck = step <= self._steps.get(run, -1)
            self._counts[run] = self._counts.get(run, 0) + 1 if stuck else 1
            self._steps[run] = step
        return [run for run in steps if self._counts[run] > self.retries]

    def is_alone(self, run: str) -> bool:
        """Whether a run must not share its next worker with others."""
        return self._counts.get(run, 0) > 1

    def count(self, run: str) -> int:
        """How many workers died with a run without its getting any further."""
        return self._counts.get(run, 0)
