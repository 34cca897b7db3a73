"""A name that must be one of those there are."""

from __future__ import annotations

from collections.abc import Iterable

from softtargets.exceptions import DataError, nearest


def one_of(value: str, known: Iterable[str], problem: str, there: str = "there are") -> None:
    """Refuse what is not among the known names, with the nearest of them.

    >>> one_of("trian", ("train", "test"), "digits has no split")
    Traceback (most recent call last):
    softtargets.exceptions.DataError: digits has no split 'trian' (did you mean 'train'?); there are train, test
    """
    names = list(known)
    if value not in names:
        raise DataError(f"{problem} '{value}'{nearest(value, names)}; {there} {', '.join(names)}")
