"""A claim of a paper, what we measured of it, and a verdict by a rule that is stated before measuring."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from softtargets.claims.published import Published
from softtargets.claims.sample import Sample

Verdict = Literal["reproduced", "not reproduced", "not enough seeds"]

SEEDS_NEEDED = 3
CONFIDENCE = 0.95

RULE = (
    "A claim names a quantity and the region it must lie in. With at least "
    f"{SEEDS_NEEDED} seeds we take the {CONFIDENCE:.0%} t-interval of its mean: wholly inside the region is "
    "“reproduced”, wholly outside is “not reproduced”, anything else, or fewer seeds, is “not enough seeds”."
)
# Said instead, or besides, on pages with claims that are computed.
COMPUTED_RULE = (
    "A claim that is computed, not measured, has no seeds and no interval: it is “reproduced” if all that was "
    "computed lies inside the region, else “not reproduced”."
)


@dataclass(frozen=True)
class Region:
    """The values that would bear a claim out; ends are excluded.

    >>> str(Region(low=0)), str(Region(low=-0.01, high=0.01))
    ('above 0', 'between -0.01 and 0.01')
    """

    low: float = -math.inf
    high: float = math.inf

    def __str__(self) -> str:
        if math.isinf(self.high):
            return f"above {self.low:g}"
        if math.isinf(self.low):
            return f"below {self.high:g}"
        return f"between {self.low:g} and {self.high:g}"


@dataclass(frozen=True)
class Claim:
    """One statement of a paper put to the test.

    statement: the claim in words;  published: what the paper printed for it;  quantity: what we measured;
    sample: its value for each seed;  region: where it must lie;  measured: our figures as the paper prints its
    own, to stand beside them;  remark: what the reader should know.
    """

    computed: ClassVar[bool] = False

    statement: str
    published: tuple[Published, ...]
    quantity: str
    sample: Sample
    region: Region
    measured: str = ""
    remark: str = ""
    digits: int = field(default=3, compare=False)

    @property
    def interval(self) -> tuple[float, float]:
        """The confidence interval the verdict rests on."""
        return self.sample.interval(CONFIDENCE)

    @property
    def verdict(self) -> Verdict:
        """By `RULE`.

        >>> tested = lambda *values: Claim("", (), "", Sample.of(values), Region(low=0)).verdict
        >>> tested(0.9, 1.0, 1.1), tested(-0.9, -1.0, -1.1), tested(-1.0, 0.1, 1.0), tested(1.0, 1.0)
        ('reproduced', 'not reproduced', 'not enough seeds', 'not enough seeds')
        """
        if self.sample.n < SEEDS_NEEDED or not all(map(math.isfinite, self.sample.values)):
            return "not enough seeds"
        low, high = self.interval
        if self.region.low < low and high < self.region.high:
            return "reproduced"
        if high <= self.region.low or low >= self.region.high:
            return "not reproduced"
        return "not enough seeds"


@dataclass(frozen=True)
class ComputedClaim(Claim):
    """A claim about numbers that are computed: nothing varies from seed to seed, so the worst of them decides.

    >>> ComputedClaim("", (), "", Sample.of([0.0]), Region(high=1e-6)).verdict
    'reproduced'
    """

    computed: ClassVar[bool] = True

    @property
    def interval(self) -> tuple[float, float]:
        """The lowest and the highest value."""
        return min(self.sample.values), max(self.sample.values)

    @property
    def verdict(self) -> Verdict:
        """By `COMPUTED_RULE`."""
        inside = all(
            math.isfinite(value) and self.region.low < value < self.region.high
            for value in self.sample.values
        )
        return "reproduced" if inside else "not reproduced"


def above(end: float, found: Sample | float) -> tuple[Sample, Region]:
    """What a claim rests on that a quantity, over seeds or computed, lies above `end`; written where it is claimed.

    >>> Claim("It gains.", (), "accuracy gained", *above(0, Sample.of([0.1, 0.1, 0.1]))).verdict
    'reproduced'
    """
    return _sample(found), Region(low=end)


def below(end: float, found: Sample | float) -> tuple[Sample, Region]:
    """The same for a quantity that must lie below `end`."""
    return _sample(found), Region(high=end)


def _sample(found: Sample | float) -> Sample:
    return found if isinstance(found, Sample) else Sample.of([found])
