"""What is said of a claim's numbers, on pages and on a terminal."""

from __future__ import annotations

import math
import re

from softtargets.claims import Claim, Judgement
from softtargets.report.numbers import number


def claim_number(value: float, claim: Claim, plus: bool = True, unit: bool = True) -> str:
    """A number of a claim; differences, whose region ends at 0 or below, carry their sign."""
    if not math.isfinite(value):
        return "–"
    ends = (claim.region.low, claim.region.high)
    sign = "+" if plus and any(math.isfinite(end) and end <= 0 for end in ends) else ""
    shown = number(value, claim.digits, bool(sign))
    return with_unit(shown, claim) if unit else shown


def with_unit(value: object, claim: Claim | None) -> str:
    """A number of a claim, or a region, with the claim's unit: ``1 point``, ``below 3 points``; None has no unit."""
    unit = claim.unit if claim else ""
    if unit == "points" and re.search(r"(?<![\d.])1$", str(value)):
        unit = "point"
    return unbroken(f"{value} {unit}") if unit else str(value)


def short(value: float) -> str:
    """Three digits that count: ``0.045``, ``1e−6``."""
    return f"{value:.3g}".replace("-", "−").replace("e−0", "e−")


def unbroken(text: str) -> str:
    """Without a line break between a number and its per cent sign."""
    return text.replace(" %", "\u00a0%")


def ours(judged: Judgement) -> str:
    """The number of a strip: the mean over seeds, or what was computed."""
    claim = judged.claim
    if not claim.computed:
        return "–" if judged.verdict == "not run yet" else claim_number(claim.deciding.mean, claim)
    return short(min(claim.sample.values, key=claim.region.room, default=math.nan))


def ours_long(judged: Judgement) -> str:
    """The same with its interval and seeds."""
    claim = judged.claim
    if claim.computed:
        return f"{ours(judged)}, computed"
    low, high = claim.interval
    between = f"95 % interval {claim_number(low, claim, unit=False)} to {claim_number(high, claim)}"
    seeds = f"{claim.deciding.n} seed{'' if claim.deciding.n == 1 else 's'}"
    worst = f" at {claim.worst}" if claim.worst else ""
    return f"{claim_number(claim.deciding.mean, claim)}{worst}, {between}, {seeds}"
