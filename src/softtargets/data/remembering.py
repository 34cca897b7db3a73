"""What took long to find out about files, kept in the user's cache for as long as the files are the same."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any

from softtargets.data.directory import user_cache
from softtargets.exceptions import SofttargetsError
from softtargets.storage import make_directory, read_json, write_json


def remembered(question: str, about: str, find: Callable[[], Any]) -> Any:
    """What `find` found the last time that this was asked `about` the same thing, else what it finds now.

    A cache that cannot be written to is no cache, and nobody needs to know.
    """
    file = user_cache() / "softtargets" / "remembered" / f"{question}-{about}.json"
    with suppress(SofttargetsError, OSError, ValueError, KeyError, TypeError):
        if file.exists():
            return read_json(file)["found"]
    found = find()
    with suppress(SofttargetsError, OSError):
        make_directory(file.parent)
        write_json(file, {"found": found})
    return found


def sixteen_digits(lines: Iterable[str]) -> str:
    """Sixteen hexadecimal digits that stand for these lines in their order (SHA-256).

    >>> sixteen_digits(["a", "b"]) != sixteen_digits(["ab"])
    True
    """
    found = hashlib.sha256()
    for line in lines:
        found.update(line.encode("utf-8", "surrogateescape"))
        found.update(b"\n")
    return found.hexdigest()[:16]
