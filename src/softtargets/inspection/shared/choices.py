"""Words of which only a few are known."""

from __future__ import annotations

from collections.abc import Sequence

from softtargets.exceptions import SofttargetsError


def check_choice(argument: str, value: str, allowed: Sequence[str]) -> None:
    """Refuse a word that is none of a few.

    >>> check_choice("pick", "near", ("close", "mixed", "far"))
    Traceback (most recent call last):
    softtargets.exceptions.SofttargetsError: pick must be close, mixed or far, not near
    """
    if value not in allowed:
        raise SofttargetsError(
            f"must be {', '.join(allowed[:-1])} or {allowed[-1]}, not {value}", argument=argument
        )
