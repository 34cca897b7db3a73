"""Errors meant for people: what was wrong, with which value, and what to do about it.

Everything softtargets raises on purpose derives from `SofttargetsError`. The command line shows the
message as one line and exits with code 2; any other exception is a bug of ours and exits with code 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any


class SofttargetsError(Exception):
    """A mistake or a circumstance the user can do something about; the message says what.

    `argument` is the argument of a function that the message is about, and begins with; the command line puts its
    option there.

    >>> mistake = SofttargetsError("must be at least 1, not 0", argument="bins")
    >>> str(mistake), mistake.with_options({"bins": "--bins"})
    ('bins must be at least 1, not 0', '--bins must be at least 1, not 0')
    """

    def __init__(self, message: str = "", *, argument: str = "") -> None:
        super().__init__(f"{argument} {message}" if argument else message)
        self.argument = argument

    def with_options(self, options: Mapping[str, str]) -> str:
        """The message as a command line says it, whose options are named by the arguments they set."""
        if self.argument not in options:
            return str(self)
        return options[self.argument] + str(self).removeprefix(self.argument)


class RecipeError(SofttargetsError):
    """A recipe that cannot be: a misspelt field, an unknown name, an impossible value.

    `field` is the dotted path of the offending field, as it would be written in YAML.
    """

    def __init__(self, message: str, field: str = "") -> None:
        super().__init__(f"{field}: {message}" if field else message)
        self.message = message
        self.field = field

    def inside(self, outer: str) -> RecipeError:
        """The same error seen from one level further out: ``alpha`` becomes ``regulariser.alpha``."""
        return RecipeError(self.message, f"{outer}.{self.field}" if self.field else outer)


class TargetError(SofttargetsError, ValueError, IndexError):
    """A label that is no class. Also an `IndexError`, which is what torch raises for it."""


class PrecisionError(SofttargetsError, ValueError):
    """Numbers that are finite, but too large for what has to be computed from them in their precision."""


class DataError(SofttargetsError):
    """A dataset that is missing, damaged or not what it claims to be."""


class RunError(SofttargetsError):
    """A run directory that is missing, damaged, edited by hand or still being written."""


class StorageError(SofttargetsError):
    """The disk refused: full, read-only, no permission."""


class StudyError(SofttargetsError):
    """A study that does not exist or cannot be run as asked."""


class Unfinished(SofttargetsError):
    """A call of the engine ended before its runs did: its time was up, or other processes train the rest.

    runs: those that have come to their end, in the order in which their recipes were given.
    left: the recipes that have not, teachers included; what was begun of them here is on disk and goes on from there.
    """

    def __init__(self, runs: Sequence[Any], left: Sequence[Any]) -> None:
        self.runs, self.left = list(runs), list(left)
        are = "run is" if len(left) == 1 else "runs are"
        super().__init__(f"{len(left)} {are} not finished; the same call resumes what was started")


class CampaignError(SofttargetsError):
    """A file of a campaign that names what there is not, or that cannot be run as asked."""


def nearest(value: str, allowed: Iterable[str]) -> str:
    """Return ``" (did you mean 'x'?)"`` for the closest allowed name, or an empty string.

    >>> nearest("alhpa", ["alpha", "spread"])
    " (did you mean 'alpha'?)"
    >>> nearest("zzz", ["alpha", "spread"])
    ''
    """
    names = list(allowed)
    folded = {name.lower(): name for name in names}
    close = get_close_matches(value.lower(), folded, n=1, cutoff=0.5)
    return f" (did you mean '{folded[close[0]]}'?)" if close else ""
