"""Logits or probabilities: what scores look like, and the check that each row is what was said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from softtargets.arrays.checking import SUM_TOLERANCE
from softtargets.predictions.failing import PredictionFileError

Kind = Literal["logits", "probabilities"]

QUIET = 1e-4  # sums that are off by single precision; put right without a word
LOOSE = 5e-3  # numbers that went through half precision add up to 1 this well
LOOSEST = 0.05  # the most that rounding to few digits is allowed to change a sum


@dataclass(frozen=True)
class Judgement:
    """What scores were taken for and why; sums of rows may be `tolerance` off 1."""

    kind: Kind
    reason: str
    tolerance: float = 0.0


def judge(
    look: Tensor, *, forced: Kind | None, named: Kind | None, decimals: int | None, path: Path, single: bool
) -> Judgement:
    """Decide from some rows (n, K) which of the two they are.

    Rows from 0 to 1 that add up to 1 are probabilities; everything else is logits, log-probabilities included, whose
    softmax is the probabilities again. Numbers from 0 to 1 that do not add up to 1 are neither, as far as anyone can
    tell: refused, unless the array is called logits or the user says so. `single` scores are those of class 1.
    """
    rows = f"{len(look)} {'row' if len(look) == 1 else 'rows'} looked at"
    dtype, look = look.dtype, look.double()
    inside = (look >= 0).all(1) & (look <= 1 + LOOSE).all(1)
    if single:
        return _judge_single(bool(inside.double().mean() > 0.5), forced, named, rows)
    limit, tolerance, rounded = _tolerance(look, dtype, decimals)
    apart = (look.sum(1) - 1).abs()
    # Most rows, not all: a row that is wrong shall be refused by its number, not turn the others into logits.
    alike = float((inside & (apart <= limit)).double().mean())
    if alike > 0.5:
        if forced == "logits":
            raise PredictionFileError(
                path,
                f"was said to hold logits, but its scores lie between 0 and 1 and add up to 1 ({rows})",
                'they are probabilities: use kind="probabilities"',
            )
        reason = f"scores lie between 0 and 1 and add up to 1 in each row ({rows}): probabilities"
        if named == "logits":
            reason += ", whatever their name says"
        return Judgement("probabilities", reason + rounded, tolerance)
    if forced == "probabilities":
        return Judgement("probabilities", "you said that they are probabilities", tolerance)
    if named == "probabilities" and forced is None:
        # The check of the rows will say what is wrong with them.
        return Judgement("probabilities", "their name says that they are probabilities", tolerance)
    if bool(inside.all()) and forced is None and named is None:
        low = float(look.sum(1).min())
        raise PredictionFileError(
            path,
            f"has scores between 0 and 1 that do not add up to 1, as in a row with a sum of {low:g}",
            'divide probabilities by their sum, or use kind="logits" if they are logits',
        )
    if bool(((look.logsumexp(1).abs() <= limit) & (look <= LOOSE).all(1)).all()):
        return Judgement(
            "logits", f"exponentials of scores add up to 1 ({rows}): log-probabilities, which are logits"
        )
    if forced == "logits":
        return Judgement("logits", "you said that they are logits")
    return Judgement("logits", f"scores do not lie between 0 and 1 with a sum of 1 ({rows}): logits")


def _judge_single(inside: bool, forced: Kind | None, named: Kind | None, rows: str) -> Judgement:
    said = forced or named
    if said == "probabilities" or (inside and said is None):
        reason = f"one score for each example, from 0 to 1 ({rows}): the probability of class 1"
        return Judgement("probabilities", reason, QUIET)
    why = (
        "you said that it is a logit"
        if forced
        else "called a logit"
        if named
        else f"not from 0 to 1 ({rows})"
    )
    return Judgement(
        "logits", f"one score for each example, {why}: the logit of class 1, against 0 for class 0"
    )


def _tolerance(look: Tensor, dtype: torch.dtype, decimals: int | None) -> tuple[float, float, str]:
    """How far sums of rows may be off 1 to look like probabilities, how far in the whole file, and a note."""
    if decimals is not None:
        # Each of K numbers is off by half a unit of the last digit at most.
        most = min(LOOSEST, max(QUIET, look.shape[1] * 0.5 * 10.0**-decimals))
        return max(LOOSE, most), most, f", rounded to {decimals} digits; rows are divided by their sums"
    quiet = max(QUIET, SUM_TOLERANCE[dtype])
    limit = max(LOOSE, quiet)
    apart = (look.sum(1) - 1).abs()
    worst = float(apart[apart <= limit].max()) if bool((apart <= limit).any()) else 0.0
    if worst <= quiet:
        return limit, quiet, ""
    return limit, limit, f", up to {worst:.1g} off; rows are divided by their sums"


def checked(scores: Tensor, judgement: Judgement, path: Path, place: Callable[[int], str]) -> Tensor:
    """Scores (n, K) as they should be, or a refusal that says in which row they are not."""
    # A sum with anything that is not finite is not finite either, and is much faster than looking at each number.
    finite = torch.isfinite(scores.sum(dtype=torch.float64))
    if not bool(finite) and not bool((finite := torch.isfinite(scores).all(1)).all()):
        row = int((~finite).nonzero()[0])
        column = int((~torch.isfinite(scores[row])).nonzero()[0])
        raise PredictionFileError(
            path,
            f"has {float(scores[row, column])} in {place(row)}, class {column}",
            "scores must be finite numbers: find out why the model gave that, or leave the row out",
        )
    if judgement.kind == "logits":
        return scores
    low, high = scores.amin(1), scores.amax(1)
    outside = (low < 0) | (high > 1 + judgement.tolerance)
    if bool(outside.any()):
        row = int(outside.nonzero()[0])
        raise PredictionFileError(
            path,
            f"has {float(low[row]):g} to {float(high[row]):g} in {place(row)}, but its scores were taken for "
            "probabilities",
            'use kind="logits" if they are logits',
        )
    if scores.shape[1] == 1:
        return scores  # of class 1; the other has the rest
    sums = scores.sum(1, dtype=torch.float64)
    apart = (sums - 1).abs() > judgement.tolerance
    if bool(apart.any()):
        row = int(apart.nonzero()[0])
        raise PredictionFileError(
            path,
            f"has probabilities in {place(row)} that add up to {float(sums[row]):g}, not 1",
            'divide them by their sum, save all classes, or use kind="logits" if they are logits',
        )
    # Instruments ask for sums of 1 within what the type can do; rounding may have left less.
    rough = (sums - 1).abs() > SUM_TOLERANCE[scores.dtype]
    return (
        torch.where(rough[:, None], (scores / sums[:, None]).to(scores.dtype), scores)
        if rough.any()
        else scores
    )
