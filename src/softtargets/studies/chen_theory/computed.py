"""A claim about numbers that are computed: nothing varies from seed to seed, so one value decides."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from softtargets.claims import Claim, Verdict


@dataclass(frozen=True)
class Computed(Claim):
    """A claim whose sample is one computed value, the worst of all that were looked at.

    >>> from softtargets.claims import Region, Sample
    >>> Computed("", (), "", Sample.of([0.0]), Region(high=1e-6)).verdict
    'reproduced'
    """

    computed: ClassVar[bool] = True

    @property
    def interval(self) -> tuple[float, float]:
        """The lowest and the highest value."""
        return min(self.sample.values), max(self.sample.values)

    @property
    def verdict(self) -> Verdict:
        """Reproduced if every value lies inside the region."""
        inside = all(
            math.isfinite(value) and self.region.low < value < self.region.high
            for value in self.sample.values
        )
        return "reproduced" if inside else "not reproduced"
