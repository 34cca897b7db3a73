"""Claims with their verdicts as data beside a page, and read from there again."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from softtargets.claims import Claim, ComputedClaim, Judgement, Published, Region, Sample
from softtargets.report.widgets import plain_data


def claim_data(judged: Judgement) -> dict[str, Any]:
    """A claim as data: all that a chart of it needs, and what its verdicts rest on."""
    claim = judged.claim
    return {
        "statement": claim.statement,
        "published": [vars(item) for item in claim.published],
        "quantity": claim.quantity,
        "unit": claim.unit,
        "region": str(claim.region),
        "ends": _ends(claim.region),
        "zone": _ends(claim.zone),
        "seeds": None if claim.computed else claim.seeds,
        "measured": plain_data(claim.sample if claim.computed else claim.deciding),
        "interval": None if claim.computed else plain_data(claim.interval),
        "over_examples": claim.sample.examples is not None,
        "other_seeds": plain_data(claim.others) if claim.others.n and not claim.computed else None,
        "cells": {name: plain_data(sample) for name, sample in claim.cells},
        "worst": claim.worst,
        "computed": claim.computed,
        "shown": claim.measured,
        "verdict": judged.verdict,
        "reason": judged.reason,
        "p": {name: {"alone": alone, "on_page": on_page} for name, (alone, on_page) in judged.p.items()},
        "printed": None
        if judged.value is None
        else {
            "value": claim.printed,
            "margin": claim.margin,
            "verdict": judged.value,
            "whole_claim": claim.is_number,
        },
        "remark": claim.remark,
        "digits": claim.digits,
    }


def _ends(region: Region | None) -> Any:
    """Both ends of a region, null where it has none."""
    return None if region is None else plain_data((region.low, region.high))


@dataclass(frozen=True)
class KeptClaim(Claim):
    """A claim as it was kept: with its interval and its worst cell, which cannot be computed from the rest again.

    The interval may be over test examples too, whose variance is not kept by itself. Such a claim is shown, never
    judged again.
    """

    kept_interval: tuple[float, float] = field(default=(-math.inf, math.inf), kw_only=True)
    kept_worst: str = field(default="", kw_only=True)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval as it was kept."""
        return self.kept_interval

    @property
    def worst(self) -> str:
        """The name of the cell that speaks most against the claim."""
        return self.kept_worst


def kept_judgement(data: Mapping[str, Any], digits: int = 3) -> Judgement:
    """A claim and its verdicts from what `claim_data` made of them; `digits` where those are not kept.

    >>> from softtargets.claims import above, judge
    >>> judged, = judge([Claim("It gains.", (), "gain", *above(0, Sample.of([0.9, 1.0, 1.1])))])
    >>> again = kept_judgement(claim_data(judged))
    >>> again.verdict, again.claim.interval == judged.claim.interval
    ('reproduced', True)
    """
    printed = data.get("printed") or {}
    p = {name: (both["alone"], both["on_page"]) for name, both in data.get("p", {}).items()}
    return Judgement(_claim(data, digits), data["verdict"], printed.get("verdict"), data.get("reason", ""), p)


def _claim(data: Mapping[str, Any], digits: int) -> Claim:
    printed = data.get("printed") or {}
    told: dict[str, Any] = {
        "statement": data["statement"],
        "published": tuple(Published(**item) for item in data["published"]),
        "quantity": data["quantity"],
        "region": _region(data["ends"]),
        "measured": data.get("shown", ""),
        "remark": data.get("remark", ""),
        "digits": data.get("digits", digits),
        "unit": data.get("unit", ""),
    }
    values = _values(data["measured"])
    if data.get("computed"):
        return ComputedClaim(sample=Sample.of(values), **told)
    further = _values(data["other_seeds"]) if data.get("other_seeds") else []
    # That test examples count is known, how much they add is in the interval alone.
    sample = Sample.of([*values, *further], 0.0 if data.get("over_examples") else None)
    return KeptClaim(
        sample=sample,
        seeds=data["seeds"],
        zone=None if data.get("zone") is None else _region(data["zone"]),
        printed=printed.get("value"),
        margin=printed.get("margin"),
        cells=tuple((name, Sample.of(_values(cell))) for name, cell in data.get("cells", {}).items()),
        kept_interval=_interval(data["interval"], len(values)),
        kept_worst=data.get("worst", ""),
        **told,
    )


def _values(sample: Mapping[str, Any]) -> list[float]:
    return list(_numbers(sample["values"], math.nan))


def _region(ends: Iterable[float | None]) -> Region:
    low, high = ends
    return Region(-math.inf if low is None else low, math.inf if high is None else high)


def _interval(ends: Iterable[float | None], seeds: int) -> tuple[float, float]:
    """Null is an endless interval, of fewer than two seeds, or that of seeds without a finite number."""
    if seeds < 2:
        return -math.inf, math.inf
    low, high = _numbers(ends, math.nan)
    return low, high


def _numbers(values: Iterable[float | None], otherwise: float) -> Iterable[float]:
    return (otherwise if value is None else value for value in values)
