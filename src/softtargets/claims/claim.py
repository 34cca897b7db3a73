"""A claim of a paper, what must be so for it to stand, fixed before measuring, and what we measured of it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from softtargets.claims.published import Published
from softtargets.claims.rule import CONFIDENCE, LEVEL, Verdict
from softtargets.claims.sample import Sample

SEEDS_NEEDED = 3
# A computed number nearer to an end of its region than this share of the end lies on its edge.
EDGE = 0.05

RULE = (
    "A false claim is called reproduced on at most one page in twenty. Each claim states beforehand what is "
    "measured, the region in which its mean must lie, how many seeds decide and, where that can be said, which effects "
    "are too small to count. A claim is “reproduced” if its mean is shown to lie in the region, “contradicted” if "
    "outside, “no effect” if among effects too small to count, “inconclusive” if none of these is shown, and “not run "
    "yet” if there are fewer seeds than stated. Further seeds are shown apart and decide nothing. Shown means by "
    f"one-sided t-tests at {100 * LEVEL:g} %, corrected for all claims of the page by Holm's method. Where a paper "
    "printed a number for the same quantity, a second verdict says whether our mean lies within a margin of it that "
    f"was stated beforehand. Intervals are {100 * CONFIDENCE:g} % intervals of one claim by itself: over seeds, and "
    "over test examples where it says so."
)
# Said instead, or besides, on pages with claims that are computed.
COMPUTED_RULE = (
    "A claim that is computed, not measured, has no seeds and no interval: it is “reproduced” if all that was "
    "computed lies inside the region, “contradicted” if not, and “inconclusive” where a number lies within "
    f"{100 * EDGE:g} % of the end of its region, since such a verdict would turn with the grid."
)


@dataclass(frozen=True)
class Region:
    """The values that would confirm a claim; ends are excluded.

    >>> str(Region(low=0)), str(Region(low=-0.01, high=0.01))
    ('above 0', 'between −0.01 and 0.01')
    """

    low: float = -math.inf
    high: float = math.inf

    def __str__(self) -> str:
        ends = self.ends
        if len(ends) == 2:
            return f"between {ends[0]} and {ends[1]}"
        return f"above {ends[0]}" if math.isinf(self.high) else f"below {ends[0]}"

    @property
    def ends(self) -> tuple[str, ...]:
        """The finite ends as people read them, with equally many decimals.

        >>> Region(0.72, 1.1).ends, Region(high=1e-6).ends
        (('0.72', '1.10'), ('1e−6',))
        """
        shown = [f"{end:g}" for end in (self.low, self.high) if math.isfinite(end)]
        if not any("e" in end for end in shown):
            places = max((len(end.partition(".")[2]) for end in shown), default=0)
            shown = [f"{float(end):.{places}f}" for end in shown]
        return tuple(end.replace("-", "−").replace("e−0", "e−") for end in shown)

    def room(self, value: float) -> float:
        """How far inside a value lies: below 0 it is outside.

        >>> Region(low=0).room(2.0), Region(high=1).room(1.5)
        (2.0, -0.5)
        """
        return min(value - self.low, self.high - value)


def zone(width: float) -> Region:
    """Effects too small to count, on either side of zero.

    >>> str(zone(0.5))
    'between −0.5 and 0.5'
    """
    return Region(-width, width)


def two_standard_errors(share: float, examples: int) -> float:
    """What a share that was counted once, on so many examples, leaves open: a margin that the paper itself gives.

    >>> round(100 * two_standard_errors(0.0067, 10_000), 2)
    0.16
    """
    return 2 * math.sqrt(share * (1 - share) / examples)


@dataclass(frozen=True)
class Claim:
    """One statement of a paper put to the test.

    statement: the claim in words;  published: what the paper printed for it;  quantity: what we measured;
    sample: its value for each seed;  region: where it must lie;  measured: our figures as the paper prints its
    own, to stand beside them;  remark: what the reader should know.

    Fixed before measuring: seeds, how many decide;  zone: effects too small to count;  printed, margin: the number the
    paper printed for this quantity, and how near to it ours must lie.

    cells: of a claim about every one of several quantities all of them by name; `Claim.every` makes such a claim.
    unit:  of all its numbers: ``%``, ``points`` (differences of percentages), or none.
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
    seeds: int = field(default=SEEDS_NEEDED, kw_only=True)
    zone: Region | None = field(default=None, kw_only=True)
    printed: float | None = field(default=None, kw_only=True)
    margin: float | None = field(default=None, kw_only=True)
    cells: tuple[tuple[str, Sample], ...] = field(default=(), kw_only=True)
    unit: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        if self.seeds < 2:
            raise ValueError(f"a claim needs at least 2 seeds to be judged over seeds; got {self.seeds}")
        if (self.printed is None) != (self.margin is None):
            raise ValueError("a printed number needs a margin, and a margin a printed number; give both")

    @classmethod
    def every(
        cls,
        statement: str,
        published: tuple[Published, ...],
        quantity: str,
        cells: Mapping[str, Sample],
        region: Region,
        *args: Any,
        **options: Any,
    ) -> Claim:
        """A claim that holds only if it holds of every cell; the one that speaks most against it is shown.

        That all hold is shown when each of them is (an intersection-union test: no correction is due); that one does
        not, when one is shown to be outside at a level divided by their number.

        >>> cells = {"T = 1": Sample.of([1.0, 1.1, 1.2]), "T = 4": Sample.of([0.5, 0.6, 0.7])}
        >>> Claim.every("", (), "error", cells, Region(low=0)).worst
        'T = 4'
        """
        shown = min(cells.values(), key=lambda sample: _room(sample, region), default=Sample(()))
        options["cells"] = tuple(cells.items())
        return cls(statement, published, quantity, shown, region, *args, **options)

    @property
    def worst(self) -> str:
        """The name of the cell that speaks most against the claim; nothing where it is about one quantity."""
        return next((name for name, sample in self.cells if sample is self.sample), "")

    @property
    def samples(self) -> tuple[Sample, ...]:
        """All that it rests on, by the seeds that decide."""
        found = tuple(sample for _, sample in self.cells) or (self.sample,)
        return tuple(sample.first(self.seeds) for sample in found)

    @property
    def deciding(self) -> Sample:
        """What is shown, by the seeds that decide."""
        return self.sample.first(self.seeds)

    @property
    def others(self) -> Sample:
        """The same by the seeds beyond, which decide nothing."""
        return self.sample.beyond(self.seeds)

    @property
    def near(self) -> Region | None:
        """The printed number with its margin."""
        if self.printed is None or self.margin is None:
            return None
        return Region(self.printed - self.margin, self.printed + self.margin)

    @property
    def is_number(self) -> bool:
        """Whether it is about nothing but the printed number: its region is the margin."""
        return self.region == self.near

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the mean over the seeds that decide, of this claim by itself."""
        return self.deciding.interval(CONFIDENCE)

    @property
    def verdict(self) -> Verdict:
        """By `RULE`, were it the only claim of its page; pages ask `judge`.

        >>> tested = lambda *values: Claim("", (), "", Sample.of(values), Region(low=0)).verdict
        >>> tested(0.9, 1.0, 1.1), tested(-0.9, -1.0, -1.1), tested(-1.0, 0.1, 1.0), tested(1.0, 1.0)
        ('reproduced', 'contradicted', 'inconclusive', 'not run yet')
        """
        from softtargets.claims.judging import judge

        return judge((self,))[0].verdict


@dataclass(frozen=True)
class ComputedClaim(Claim):
    """A claim about numbers that are computed: nothing varies from seed to seed, so the worst of them decides.

    >>> ComputedClaim("", (), "", Sample.of([0.0]), Region(high=1e-6)).verdict
    'reproduced'
    >>> ComputedClaim("", (), "", Sample.of([0.0099]), Region(high=0.01)).verdict
    'inconclusive'
    """

    computed: ClassVar[bool] = True

    @property
    def interval(self) -> tuple[float, float]:
        """The lowest and the highest value."""
        return min(self.sample.values), max(self.sample.values)

    def on_edge(self) -> bool:
        """Whether one of the values lies so near to an end that another grid could have turned it."""
        ends = [end for end in (self.region.low, self.region.high) if math.isfinite(end)]
        return any(abs(value - end) < EDGE * abs(end) for value in self.sample.values for end in ends)


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


def _room(sample: Sample, region: Region) -> float:
    return -math.inf if math.isnan(sample.mean) else region.room(sample.mean)


def split_seeds(seeds: Iterable[int], choosing: int = 1) -> tuple[list[int], list[int]]:
    """Seeds on which cells are chosen, and those on which they are judged: the lowest choose, no seed does both.

    The best of several cells is above the others by chance already; on other seeds that chance is gone.

    >>> split_seeds([0, 1, 2, 3])
    ([0], [1, 2, 3])
    """
    rising = sorted(set(seeds))
    if choosing < 1:
        raise ValueError(f"at least one seed must choose; got {choosing}")
    return rising[:choosing], rising[choosing:]
