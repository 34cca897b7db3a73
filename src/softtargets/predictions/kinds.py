"""Logits or probabilities: what scores look like, and the check that each row is what was said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from softtargets.arrays import (
    ROUNDED,
    SAVED,
    THROUGH_HALF,
    ArrayLike,
    ScoreFault,
    as_floating,
    find_fault,
    refuse_fault,
    sum_tolerance,
)
from softtargets.predictions.array import FileArray
from softtargets.predictions.errors import PredictionFileError

Kind = Literal["logits", "probabilities"]


@dataclass(frozen=True)
class Judgement:
    """What scores were taken for and why; sums of rows of probabilities may be `tolerance` off 1."""

    kind: Kind
    reason: str
    tolerance: float | None = None


SEVERAL = (
    "divide them by their sum, save all classes, or "
    'use kind="logits" if they are logits; sigmoid scores of several labels are calibrated one class at a time, a file '
    "with the column of a class and whether it applies (0 or 1)"
)
PERCENT = 'divide them by 100, or use kind="logits" if they are logits'
HARDLY_LOGITS = 20  # single logits that are all positive: every prediction would be class 1
MOSTLY = 0.9  # the share of rows from 0 to 1 that no logits have by chance
ANYTHING = Judgement("logits", "")  # finite, as long as nobody knows more


class InMemory:
    """Scores that are in no file: nobody has rounded them, and what is wrong with them is a `ValueError`."""

    def decimals(self) -> int | None:
        """As they are."""
        return None

    def refused(self, problem: str, advice: str = "") -> Exception:
        """One sentence about the scores."""
        return ValueError(f"the array {problem}" + (f"; {advice}" if advice else ""))


def kind_of_scores(scores: ArrayLike, kind: Kind | None = None) -> Judgement:
    """Whether an array (n, K) has logits or probabilities, by the rule of files: see `judge`.

    Scores (n,) are those of class 1. `kind` is what somebody has said.

    >>> print(kind_of_scores(torch.tensor([[0.9, 0.1], [0.5, 0.5]])).kind, kind_of_scores(torch.eye(2) - 1).kind)
    probabilities logits
    """
    look = as_floating(scores, "scores").detach().cpu()
    single = look.ndim == 1
    return judge(look[:, None] if single else look, InMemory(), forced=kind, named=None, single=single)


def checked_scores(scores: ArrayLike, judgement: Judgement) -> Tensor:
    """The rows (n, K) of an array as they should be: finite, and probabilities with a sum of 1; others are refused."""
    found = as_floating(scores, judgement.kind).detach()
    refuse_fault(found, judgement.tolerance, judgement.kind)
    return _divided(found, judgement)


def judge(
    look: Tensor, scores: FileArray | InMemory, *, forced: Kind | None, named: Kind | None, single: bool
) -> Judgement:
    """Decide from some rows (n, K) which of the two they are.

    Rows from 0 to 1 that add up to 1 are probabilities; everything else is logits, log-probabilities included, whose
    softmax is the probabilities again. Numbers from 0 to 1 that do not add up to 1 are neither, as far as anyone can
    tell: refused, unless the array is called logits or the user says so. `single` scores are those of class 1.
    """
    rows = f"{len(look)} {'row' if len(look) == 1 else 'rows'} looked at"
    dtype, look = look.dtype, look.double()
    inside = (look >= 0).all(1) & (look <= 1 + THROUGH_HALF).all(1)
    said = forced or named
    if single:
        mostly = bool(inside.double().mean() > 0.5)
        if said != "logits" and not mostly and _could_be_percentages(look):
            raise scores.refused(
                f"has scores of class 1 from {float(look.min()):g} to {float(look.max()):g} ({rows}): percentages, it "
                "seems, since logits that are never negative would make every prediction class 1",
                PERCENT,
            )
        return _judge_single(mostly, said, forced is not None, rows)
    limit, tolerance, rounded = _tolerance(look, dtype, scores.decimals())
    apart = (look.sum(1) - 1).abs()
    # Most rows, not all: a row that is wrong shall be refused by its number, not turn the others into logits.
    if float((inside & (apart <= limit)).double().mean()) > 0.5:
        if forced == "logits":
            raise scores.refused(
                f"should have logits, but its scores lie between 0 and 1 and add up to 1 ({rows})",
                'they are probabilities: use kind="probabilities"',
            )
        reason = f"scores lie between 0 and 1 and add up to 1 in each row ({rows}): probabilities"
        name = ", although the name says otherwise" if named == "logits" else ""
        return Judgement("probabilities", reason + name + rounded, tolerance)
    if forced != "logits" and _are_percentages(look, limit):
        raise scores.refused(
            f"has scores that add up to 100 in each row ({rows}), as percentages do", PERCENT
        )
    if said == "probabilities":  # the check of the rows will say what is wrong with them
        who = "you said" if forced else "their name says"
        return Judgement("probabilities", f"{who} that they are probabilities", tolerance)
    # A few rows that are damaged do not turn the others into logits.
    if said is None and float(inside.double().mean()) > MOSTLY:
        raise scores.refused(
            "has scores between 0 and 1 that do not add up to 1, as in a row with a sum of "
            f"{float(look[inside].sum(1).min()):g}",
            SEVERAL,
        )
    if bool(((look.logsumexp(1).abs() <= limit) & (look <= THROUGH_HALF).all(1)).all()):
        reason = f"exponentials of scores add up to 1 ({rows}): log-probabilities, which are logits"
    elif forced == "logits":
        reason = "you said that they are logits"
    else:
        reason = f"scores do not lie between 0 and 1 with a sum of 1 ({rows}): logits"
    return Judgement("logits", reason)


def _are_percentages(look: Tensor, limit: float) -> bool:
    """Whether most rows lie between 0 and 100 and add up to 100; each may be rounded to a tenth."""
    tolerance = max(100 * limit, 0.05 * look.shape[1])
    inside = (look >= 0).all(1) & (look <= 100 + tolerance).all(1)
    return float((inside & ((look.sum(1) - 100).abs() <= tolerance)).double().mean()) > 0.5


def _could_be_percentages(look: Tensor) -> bool:
    """Whether single scores lie between 0 and 100, and are too many to be logits of which none is negative."""
    return len(look) >= HARDLY_LOGITS and bool(((look >= 0) & (look <= 100 + THROUGH_HALF)).all())


def _judge_single(inside: bool, said: Kind | None, forced: bool, rows: str) -> Judgement:
    if said == "probabilities" or (inside and said is None):
        reason = f"one score for each example, from 0 to 1 ({rows}): the probability of class 1"
        return Judgement("probabilities", reason, SAVED)
    called = "you said that it is a logit" if forced else "called a logit"
    why = called if said else f"not from 0 to 1 ({rows})"
    return Judgement(
        "logits", f"one score for each example, {why}: the logit of class 1, against 0 for class 0"
    )


def _tolerance(look: Tensor, dtype: torch.dtype, decimals: int | None) -> tuple[float, float, str]:
    """How far sums of rows may be off 1 to look like probabilities, how far in the whole file, and a note."""
    if decimals is not None:
        # Each of K numbers is off by half a unit of the last digit at most.
        most = min(ROUNDED, max(SAVED, look.shape[1] * 0.5 * 10.0**-decimals))
        note = f", rounded to {decimals} digits; rows are divided by their sums"
        return max(THROUGH_HALF, most), most, note
    quiet = max(SAVED, sum_tolerance(dtype))
    limit = max(THROUGH_HALF, quiet)
    apart = (look.sum(1) - 1).abs()
    worst = float(apart[apart <= limit].max()) if bool((apart <= limit).any()) else 0.0
    if worst <= quiet:
        return limit, quiet, ""
    return limit, limit, f", up to {worst:.1g} off; rows are divided by their sums"


def checked(scores: Tensor, judgement: Judgement, path: Path, place: Callable[[int], str]) -> Tensor:
    """Scores (n, K) as they should be, or a refusal that says in which row they are not.

    This is where rows of a file are looked at, once: instruments that are told so do not look again.
    """
    if fault := find_fault(scores, judgement.tolerance):
        raise PredictionFileError(path, *_words(fault, place(fault.row)))
    return _divided(scores, judgement)


def _divided(scores: Tensor, judgement: Judgement) -> Tensor:
    if judgement.tolerance is None or judgement.tolerance <= sum_tolerance(scores.dtype):
        return scores
    # Instruments ask for sums of 1 within what the type can do; rounding may have left less.
    sums = scores.sum(1, dtype=torch.float64)
    rough = (sums - 1).abs() > sum_tolerance(scores.dtype)
    if not bool(rough.any()):
        return scores
    return torch.where(rough[:, None], (scores / sums[:, None]).to(scores.dtype), scores)


def _words(fault: ScoreFault, place: str) -> tuple[str, str]:
    if fault.what == "infinite" and str(fault.value) == "-inf":
        return (
            f"has {fault.value} in {place}, class {fault.column}",
            "scores must be finite numbers: where the model masks a class, give it a logit far below all others, such "
            "as -1e4; else find out why the model gave this value, or leave the row out",
        )
    if fault.what == "infinite":
        return (
            f"has {fault.value} in {place}, class {fault.column}",
            "scores must be finite numbers: find out why the model gave this value, or leave the row out",
        )
    if fault.what == "outside":
        return (
            f"has {fault.low:g} to {fault.high:g} in {place}, but its other scores are probabilities",
            'use kind="logits" if they are logits',
        )
    return (
        f"has probabilities in {place} that add up to {fault.value:g}, not 1",
        SEVERAL,
    )
