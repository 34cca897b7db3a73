"""Reading the words of a command line. No torch: refusals come at once."""

from __future__ import annotations

from collections.abc import Iterable

from softtargets.exceptions import SofttargetsError, nearest


def words(option: str, text: str | None, default: str = "") -> list[str]:
    """What stands between commas, at least one; where nothing was said, the default.

    >>> words("--nets", "fcn, cnn")
    ['fcn', 'cnn']
    """
    found = [word.strip() for word in (default if text is None else text).split(",") if word.strip()]
    if not found:
        raise SofttargetsError(f"{option} is empty: give at least one, separated by commas")
    return found


def names(
    option: str,
    text: str | None,
    allowed: Iterable[str],
    default: str = "",
    *,
    everything: bool = False,
    nothing: bool = False,
) -> tuple[str, ...]:
    """Each word once, all of them allowed; ``all`` and ``none`` where they are."""
    known = list(allowed)
    text = default if text is None else text
    if everything and text.strip() == "all":
        return tuple(known)
    if nothing and text.strip() in ("", "none"):
        return ()
    chosen = words(option, text)
    for word in chosen:
        if word not in known:
            extra = [*(["all"] if everything else []), *(["none"] if nothing else [])]
            raise SofttargetsError(
                f"{option}: no '{word}'{nearest(word, known)}; allowed: {', '.join(known + extra)}"
            )
    return tuple(dict.fromkeys(chosen))


def counts(option: str, text: str | None, default: str = "") -> tuple[int, ...]:
    """Whole numbers from 1, each once, in rising order.

    >>> counts("--packs", "16,1,4,4")
    (1, 4, 16)
    """
    found = words(option, text, default)
    for word in found:
        if not word.isdecimal() or int(word) < 1:
            raise SofttargetsError(
                f"{option}: '{word}' is not a whole number from 1; write for example 1,4,16"
            )
    return tuple(sorted({int(word) for word in found}))


def one(option: str, text: str | None, allowed: Iterable[str], default: str) -> str:
    """A single word of those allowed."""
    known = list(allowed)
    found = names(option, text, known, default)
    if len(found) > 1:
        raise SofttargetsError(f"{option}: give one of {', '.join(known)}, not {text}")
    return found[0]


def at_least(option: str, number: int | None, default: int, least: int) -> int:
    """A number that is not too small."""
    number = default if number is None else number
    if number < least:
        raise SofttargetsError(f"{option} must be at least {least}, not {number}")
    return number


def shape(option: str, word: str, parts: tuple[str, ...], example: str) -> tuple[int, ...]:
    """Numbers between ``x``: two classes at least, and one of everything else.

    >>> shape("--sizes", "128x10", ("rows", "classes"), "8192x32768")
    (128, 10)
    """
    numbers = word.lower().split("x")
    if len(numbers) != len(parts) or not all(number.strip().isdecimal() for number in numbers):
        raise SofttargetsError(f"{option}: '{word}' is not {' x '.join(parts)}; write for example {example}")
    found = tuple(map(int, numbers))
    if min(found) < 1 or found[-1] < 2:
        raise SofttargetsError(
            f"{option}: '{word}' is too small; it needs two classes and one of everything else"
        )
    return found
