"""All claims of a page judged together, since each of them is a chance to be wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from softtargets.claims.claim import Claim, ComputedClaim, Region
from softtargets.claims.rule import (
    LEVEL,
    VERDICTS,
    Array,
    Estimate,
    Verdict,
    decide,
    for_every,
    for_some,
    holm,
    p_inside,
    p_outside,
)

# The p-value of what cannot be shown yet, and of what is not asked.
_NEVER, _NOT_ASKED = 1.0, math.nan
Tests: TypeAlias = dict[str, tuple[float, float]]
_Test = Callable[[Estimate, float, float], Array]


@dataclass(frozen=True)
class Judgement:
    """What the rule says of a claim.

    verdict: of the direction;  value: of the number that the paper printed, None where it printed none;
    reason:  why there is no more to say, where there is not;  p: by verdict, before Holm's method and after.
    """

    claim: Claim
    verdict: Verdict
    value: Verdict | None = None
    reason: str = ""
    p: Tests = field(default_factory=dict)


def judge(claims: Sequence[Claim]) -> tuple[Judgement, ...]:
    """Verdicts by `RULE` and `COMPUTED_RULE`, in the order of the claims.

    Claims that are not run yet count in Holm's method all the same: a verdict does not change when others are run.

    >>> from softtargets.claims import Sample, above
    >>> one = Claim("It gains.", (), "gain", *above(0, Sample.of([0.9, 1.0, 1.1])), printed=2.0, margin=0.5)
    >>> judged, = judge([one])
    >>> judged.verdict, judged.value
    ('reproduced', 'contradicted')
    """
    measured = [claim for claim in claims if not claim.computed]
    by_chance = iter(_by_seeds(measured))
    return tuple(
        _computed(claim) if isinstance(claim, ComputedClaim) else next(by_chance) for claim in claims
    )


def _by_seeds(claims: Sequence[Claim]) -> list[Judgement]:
    """Three questions about directions and two about numbers, each by Holm's method over those who are asked."""
    if not claims:
        return []
    # A claim about nothing but a printed number is judged among the numbers.
    regions = [None if claim.is_number else claim.region for claim in claims]
    p = {
        "reproduced": _p_values(claims, regions, p_inside, for_every),
        "contradicted": _p_values(claims, regions, p_outside, for_some),
        "no effect": _p_values(claims, [claim.zone for claim in claims], p_inside, for_every),
    }
    # Of a claim about many cells the printed number is that of the cell that is shown.
    shown, numbers = [replace(claim, cells=()) for claim in claims], [claim.near for claim in claims]
    near, far = (_p_values(shown, numbers, test, for_every) for test in (p_inside, p_outside))
    directions, values = decide(*p.values()), decide(near, far, np.full(len(claims), _NOT_ASKED))
    tests = _by_claim(p)
    return [
        _judgement(claim, VERDICTS[directions[place]], VERDICTS[values[place]], tests[place])
        for place, claim in enumerate(claims)
    ]


def _judgement(claim: Claim, direction: Verdict, value: Verdict, tests: Tests) -> Judgement:
    """Both verdicts of a claim, where all its seeds are there; of a claim about a number alone it is one."""
    if missing := _missing(claim):
        return Judgement(claim, "not run yet", None if claim.near is None else "not run yet", missing, tests)
    verdict = value if claim.is_number else direction
    return Judgement(
        claim, verdict, None if claim.near is None else value, _reason(claim, verdict, tests), tests
    )


def _by_claim(p: dict[str, Array]) -> list[Tests]:
    """By claim and verdict the p-values of what was asked, alone and on the page."""
    adjusted = {name: holm(raw) for name, raw in p.items()}
    return [
        {name: (float(p[name][at]), float(adjusted[name][at])) for name in p if not math.isnan(p[name][at])}
        for at in range(len(next(iter(p.values()))))
    ]


def _p_values(
    claims: Sequence[Claim], regions: Sequence[Region | None], test: _Test, combine: Callable[..., Array]
) -> Array:
    """One for each claim, of all its cells lying in the region, or some outside."""

    def one(claim: Claim, region: Region | None) -> float:
        if region is None:
            return _NOT_ASKED
        if _missing(claim) or any(math.isnan(sample.mean) for sample in claim.samples):
            return _NEVER
        return float(combine([test(s.estimate, region.low, region.high) for s in claim.samples]))

    return np.array([one(*both) for both in zip(claims, regions, strict=True)])


def _missing(claim: Claim) -> str:
    """How many seeds are there of those that decide, where not all are."""
    there = min(sample.n for sample in claim.samples)
    if there >= claim.seeds:
        return ""
    return f"{there} of the {claim.seeds} seeds that decide"


def _reason(claim: Claim, verdict: Verdict, p: Tests) -> str:
    if verdict != "inconclusive":
        return ""
    if any(math.isnan(sample.mean) for sample in claim.samples):
        return "a seed has no finite number"
    if alone := [name for name, (own, _) in p.items() if own <= LEVEL]:
        return f"by itself “{alone[-1]}” (p = {p[alone[-1]][0]:.2g}), but not among all claims of this page"
    if claim.cells:
        return f"shown neither for all {len(claim.cells)} cells nor, corrected for their number, against any of them"
    return "the interval crosses the end of the region"


def _computed(claim: ComputedClaim) -> Judgement:
    values = claim.sample.values
    if not values or any(map(math.isnan, values)):
        return Judgement(claim, "inconclusive", reason="not a number")
    if claim.on_edge():
        return Judgement(
            claim, "inconclusive", reason="on the edge of the region: another grid could turn it"
        )
    inside = all(claim.region.low < value < claim.region.high for value in values)
    return Judgement(claim, "reproduced" if inside else "contradicted")
