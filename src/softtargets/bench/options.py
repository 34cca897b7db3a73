"""Reading the words of a command line. No torch: refusals come at once."""

from __future__ import annotations

from collections.abc import Iterable

from softtargets.exceptions import SofttargetsError, nearest


def words(option: str, text: str) -> list[str]:
    """What stands between commas; at least one.

    >>> words("--nets", "fcn, cnn")
    ['fcn', 'cnn']
    """
    found = [word.strip() for word in text.split(",") if word.strip()]
    if not found:
        raise SofttargetsError(f"{option} is empty: give at least one, separated by commas")
    return found


def names(
    option: str, text: str, allowed: Iterable[str], *, everything: bool = False, nothing: bool = False
) -> tuple[str, ...]:
    """Each word once, all of them allowed; ``all`` and ``none`` where they are."""
    known = list(allowed)
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


def counts(option: str, text: str) -> tuple[int, ...]:
    """Whole numbers from 1, each once, in rising order.

    >>> counts("--packs", "16,1,4,4")
    (1, 4, 16)
    """
    found = words(option, text)
    for word in found:
        if not word.isdecimal() or int(word) < 1:
            raise SofttargetsError(
                f"{option}: '{word}' is not a whole number from 1; write for example 1,4,16"
            )
    return tuple(sorted({int(word) for word in found}))
