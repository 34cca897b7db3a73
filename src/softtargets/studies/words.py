"""Numbers in sentences, as pages write them."""

from __future__ import annotations

import math


def percent(value: float, digits: int = 0, sign: str = "") -> str:
    """A share.

    >>> percent(0.1), percent(-0.025, 1, "+")
    ('10 %', '−2.5 %')
    """
    return "–" if math.isnan(value) else f"{value:{sign}.{digits}%}".replace("-", "−").replace("%", " %")


def counted(count: int, what: str) -> str:
    """``1 seed``, ``3 seeds``."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def listed(numbers: tuple[int, ...]) -> str:
    """``2, 3 and 10``."""
    return ", ".join(map(str, numbers[:-1])) + f" and {numbers[-1]}"


def unless_full(size: str, text: str) -> str:
    """A text that is only for the small sizes of a study."""
    return "" if size == "full" else text
