"""One sentence about a file that cannot be read: which, what is wrong with it, what to do."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from softtargets.exceptions import SofttargetsError

LONGEST = 600  # characters of a sentence


class PredictionFileError(SofttargetsError, ValueError):
    """A file with predictions that is missing, damaged, refused or not what was expected.

    >>> raise PredictionFileError("a.npz", "is empty", "save it again")
    Traceback (most recent call last):
    softtargets.predictions.errors.PredictionFileError: a.npz is empty; save it again
    """

    def __init__(self, path: str | Path, problem: str, advice: str = "") -> None:
        # Names in a file can be of any length and have line breaks; the command line shows one line.
        self._problem, self._advice = line(f"{path} {_cut(problem)}"), line(_cut(advice))
        super().__init__(self._problem + (f"; {self._advice}" if advice else ""))
        self.path = Path(path)

    def with_options(self, options: Mapping[str, str]) -> str:
        """The same, with options in the place of arguments that the advice speaks of.

        >>> error = PredictionFileError("a.npz", "has no labels", 'give a file with labels, or use kind="logits"')
        >>> error.with_options({"labels": "--labels", "kind": "--kind"})
        'a.npz has no labels; give a file with --labels, or use --kind logits'
        """

        def option(found: re.Match[str]) -> str:
            before, name, value = found.groups()
            if name not in options or not (before or value or "_" in name):
                return found[0]  # a word like any other
            return f"{before}{options[name]}" + (f" {value}" if value else "")

        advice = re.sub(r'(with |)\b([a-z_]+)(?:="(\w+)")?', option, self._advice)
        return self._problem + (f"; {advice}" if advice else "")


class InFile:
    """Whatever lies in a file and may be refused."""

    path: Path

    def refused(self, problem: str, advice: str = "") -> PredictionFileError:
        """One sentence about the file."""
        return PredictionFileError(self.path, problem, advice)


@dataclass(frozen=True)
class FoundFile(InFile):
    """A file that is there and not empty; nobody has looked into it yet.

    `stamp` tells this file from another that takes its name, or from itself with other content.
    """

    path: Path
    size: int
    stamp: tuple[int, ...] = ()

    def refuse_changed(self) -> None:
        """A file is read several times; numbers from two of them would contradict each other."""
        with reading(self.path):
            now = _stamp(os.stat(self.path))
        if self.stamp not in ((), now):
            raise self.refused(
                "was changed or replaced while it was being read", "run the same command again"
            )


def _stamp(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


def listed(items: Collection[object], most: int = 8) -> str:
    """The first few of many, for a sentence.

    >>> listed([1, 2, 3]), listed(range(9), most=2)
    ('1, 2, 3', '0, 1, ... (9 in all)')
    """
    some = ", ".join(map(str, islice(items, most)))
    return some if len(items) <= most else f"{some}, ... ({len(items)} in all)"


def line(text: str) -> str:
    """What can be printed on one line, without escape sequences of a terminal."""
    return "".join(c if c.isprintable() else "?" for c in text)


@contextmanager
def reading(path: Path, *damage: type[Exception], problem: str = "is damaged or cut off") -> Iterator[None]:
    """Turn refusals of the operating system, and what a library raises for `damage`, into a `PredictionFileError`."""
    try:
        yield
    except PredictionFileError:
        raise
    except FileNotFoundError:
        raise PredictionFileError(path, "does not exist", "check the path") from None
    except PermissionError:
        raise PredictionFileError(
            path, "may not be read: permission denied", "change its permissions"
        ) from None
    except damage as raised:
        reason = next(iter(str(raised).splitlines()), "")[:100]
        raise PredictionFileError(path, f"{problem} ({reason})", "save or download it again") from None
    except OSError as raised:
        raise PredictionFileError(path, f"cannot be read ({raised.strerror or raised})") from None


def find_file(path: Path) -> FoundFile:
    """A regular file and its size; refuses directories, pipes, devices and empty files before opening them."""
    with reading(path, ValueError, problem="cannot be the name of a file"):
        found = os.stat(path)
    if stat.S_ISDIR(found.st_mode):
        run = (path / "predictions").is_dir()
        advice = f"it looks like a run: give one of the files in {path / 'predictions'}"
        raise PredictionFileError(
            path, "is a directory", advice if run else "give the file with the predictions"
        )
    if not stat.S_ISREG(found.st_mode):
        raise PredictionFileError(
            path,
            "is not a regular file, which is needed to read it more than once",
            "copy it into a file first",
        )
    if found.st_size == 0:
        raise PredictionFileError(path, "is empty", "save the predictions again")
    return FoundFile(path, found.st_size, _stamp(found))
