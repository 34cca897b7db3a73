"""Numbers as people read them: the one way in which pages, sentences and tables write them."""

from __future__ import annotations

import math


def number(value: float, digits: int = 3, sign: bool = False) -> str:
    """A number with so many decimals and a real minus sign; a dash where there is none.

    >>> number(0.5), number(-1.0, 1), number(float("inf")), number(0.25, 2, sign=True)
    ('0.500', '−1.0', 'infinite', '+0.25')
    """
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "infinite" if value > 0 else "−infinite"
    text = f"{value:{'+' if sign else ''}.{digits}f}"
    if float(text) == 0:
        text = f"{0:.{digits}f}"  # neither +0 nor -0
    return text.replace("-", "−")


def percent(value: float, digits: int = 1, sign: bool = False) -> str:
    """A share in per cent, with a space before the sign.

    >>> percent(0.1234), percent(-0.02, sign=True), percent(float("nan"))
    ('12.3 %', '−2.0 %', '–')
    """
    return "–" if math.isnan(value) else f"{number(100 * value, digits, sign)} %"


def plural(count: int, what: str) -> str:
    """So many of something.

    >>> plural(1, "run"), plural(1200, "class"), plural(2, "study"), plural(0, "run")
    ('1 run', '1,200 classes', '2 studies', '0 runs')
    """
    if count == 1:
        return f"1 {what}"
    many = f"{what[:-1]}ies" if what.endswith("dy") else f"{what}{'es' if what.endswith('s') else 's'}"
    return f"{count:,} {many}"
