"""Numbers in sentences, as pages write them."""

from __future__ import annotations

from softtargets.claims import Verdict
from softtargets.report import number
from softtargets.report import percent as _percent
from softtargets.report import plural as counted

__all__ = ["SMALL_DECIDES_NOTHING", "answered", "counted", "listed", "percent", "signed", "unless_full"]

# What a study answers at a small size that is not about the papers' networks.
SMALL_DECIDES_NOTHING = (
    "The small size decides nothing: it shows how the page is made. The full size has the claims."
)


def percent(value: float, digits: int = 0, sign: str = "") -> str:
    """A share, without decimals unless told.

    >>> percent(0.1), percent(-0.025, 1, "+")
    ('10 %', '−2.5 %')
    """
    return _percent(value, digits, bool(sign))


def signed(value: float, digits: int = 2) -> str:
    """A difference with its sign; what rounds to nothing has none.

    >>> signed(-0.152), signed(-0.001)
    ('−0.15', '0.00')
    """
    return number(value, digits, sign=True)


def answered(
    verdict: Verdict, yes: str, no: str, *, nothing: str = "", whether: str = "the paper's statement holds"
) -> str:
    """The sentence that a verdict leads to; where there is none to give, what is missing.

    >>> answered("inconclusive", "Yes.", "No.", whether="it helps")
    'We cannot tell whether it helps: these runs decide neither way.'
    """
    return {
        "reproduced": yes,
        "contradicted": no,
        "no effect": nothing or no,
        "inconclusive": f"We cannot tell whether {whether}: these runs decide neither way.",
        "not run yet": f"Not known yet: the runs that decide whether {whether} have not all been made.",
    }[verdict]


def listed(numbers: tuple[int, ...]) -> str:
    """``2, 3 and 10``."""
    return ", ".join(map(str, numbers[:-1])) + f" and {numbers[-1]}"


def unless_full(size: str, text: str) -> str:
    """A text that is only for the small sizes of a study; "core" is a part of the full one."""
    return "" if size in ("full", "core") else text
