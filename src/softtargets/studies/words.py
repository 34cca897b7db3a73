"""Numbers in sentences, as pages write them."""

from __future__ import annotations

from softtargets.report import percent as _percent
from softtargets.report import plural as counted

__all__ = ["counted", "listed", "percent", "unless_full"]


def percent(value: float, digits: int = 0, sign: str = "") -> str:
    """A share, without decimals unless told.

    >>> percent(0.1), percent(-0.025, 1, "+")
    ('10 %', '−2.5 %')
    """
    return _percent(value, digits, bool(sign))


def listed(numbers: tuple[int, ...]) -> str:
    """``2, 3 and 10``."""
    return ", ".join(map(str, numbers[:-1])) + f" and {numbers[-1]}"


def unless_full(size: str, text: str) -> str:
    """A text that is only for the small sizes of a study."""
    return "" if size == "full" else text
