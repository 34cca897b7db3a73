"""Which parameters a recipe means by a pattern such as ``head.*`` or ``*.bias``."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase


def rate_factors_of(rates: Sequence[tuple[str, float]], names: Sequence[str]) -> list[float]:
    """The factor on the learning rate of each parameter: that of the first pattern which matches, else 1.

    >>> rate_factors_of([("head.bias", 2.0), ("head.*", 0.1)], ["body.weight", "head.weight", "head.bias"])
    [1.0, 0.1, 2.0]
    """
    first = [_first(name, [pattern for pattern, _ in rates]) for name in names]
    for place, (pattern, _) in enumerate(rates):
        _refuse_without_match("rates", pattern, names)
        if place not in first:
            raise ValueError(
                f"{pattern!r} in rates never counts: patterns before it match the same parameters, and the first "
                "match counts; write it before them"
            )
    return [1.0 if place is None else rates[place][1] for place in first]


def decayed(patterns: Sequence[str], names: Sequence[str]) -> list[bool]:
    """Whether each parameter is decayed: where one of the patterns matches, or everywhere without patterns.

    >>> decayed(["*.weight"], ["head.weight", "head.bias"])
    [True, False]
    """
    for pattern in patterns:
        _refuse_without_match("decay_on", pattern, names)
    return [not patterns or _first(name, patterns) is not None for name in names]


def _first(name: str, patterns: Sequence[str]) -> int | None:
    return next((place for place, pattern in enumerate(patterns) if fnmatchcase(name, pattern)), None)


def _refuse_without_match(field: str, pattern: str, names: Sequence[str]) -> None:
    if not any(fnmatchcase(name, pattern) for name in names):
        close = ", ".join(get_close_matches(pattern, names, n=3, cutoff=0))
        raise ValueError(f"{pattern!r} in {field} matches no parameter; the nearest are {close}")
