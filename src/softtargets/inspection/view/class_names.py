"""Names of classes, as users have them: a comma list, lines of a file, a dictionary in JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from softtargets.exceptions import SofttargetsError, nearest


def read_names(given: str, classes: int) -> dict[int, str]:
    """Names by class, from ``cat,dog,...`` or from a file.

    A file has one name on each line, in the order of the classes; or is JSON: a list, a dictionary from numbers to
    names, or one from names to numbers as vocabularies of tokenisers are. A dictionary may leave classes without name.

    >>> read_names("cat, dog,ship", 3)
    {0: 'cat', 1: 'dog', 2: 'ship'}
    >>> read_names("cat,dog", 3)
    Traceback (most recent call last):
    softtargets.exceptions.SofttargetsError: names has 2 names, but there are 3 classes; give one for each
    """
    path = Path(given)
    if "," in given and not os.path.exists(path):
        return _in_order([name.strip() for name in given.split(",")], classes)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise SofttargetsError(f"{path} is not text in UTF-8; give one name on each line") from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", problem)
        raise SofttargetsError(
            f"names cannot be read from {path} ({reason}); give a file, or names separated by commas"
        ) from None
    if path.suffix.lower() == ".json":
        return _from_json(text, classes, path)
    # Not by splitlines: tokens of a vocabulary may be other kinds of line breaks.
    lines = text.removeprefix("\ufeff").removesuffix("\n").split("\n")
    return _in_order([line.removesuffix("\r") for line in lines], classes, path)


def find_classes(given: str, names: Mapping[int, str], classes: int) -> tuple[int, ...]:
    """Three classes by number or by name.

    >>> find_classes("0,ship, 7", {1: "cat", 3: "ship"}, 10)
    (0, 3, 7)
    """
    words = [word.strip() for word in given.split(",")]
    if len(words) != 3:
        advice = "give three classes separated by commas, such as 3,5,8"
        raise SofttargetsError(f"{given}: {advice}", argument="classes")
    by_name = {name: number for number, name in reversed(list(names.items()))}
    found = []
    for word in words:
        number = by_name.get(word, int(word) if word.isdecimal() else None)
        if number is None or number >= classes:
            hint = nearest(word, by_name) if names else "; names can be given with --names"
            problem = f"there is no class '{word}' of {classes:,}{hint}"
            raise SofttargetsError(f"{given}: {problem}", argument="classes")
        found.append(number)
    return tuple(found)


def _from_json(text: str, classes: int, path: Path) -> dict[int, str]:
    try:
        content: Any = json.loads(text)
    except ValueError as problem:
        raise SofttargetsError(f"{path} is not JSON ({problem})") from None
    if isinstance(content, list):
        return _in_order([str(name) for name in content], classes, path)
    found = _by_number(content) if isinstance(content, dict) else None
    if found is None:
        raise SofttargetsError(
            f"{path} has no names of classes; it must be a list of names, or a dictionary of names and numbers"
        )
    return found


def _by_number(content: dict[str, Any]) -> dict[int, str] | None:
    """From numbers to names, or from names to numbers; None if it is neither."""
    if all(key.isdecimal() and not isinstance(value, (dict, list)) for key, value in content.items()):
        return {int(key): str(value) for key, value in content.items()}
    if all(isinstance(value, int) for value in content.values()):
        return {value: key for key, value in content.items()}
    return None


def _in_order(names: Sequence[str], classes: int, path: Path | None = None) -> dict[int, str]:
    if len(names) != classes:
        problem = f"has {len(names):,} names, but there are {classes:,} classes; give one for each"
        raise SofttargetsError(f"{path} {problem}") if path else SofttargetsError(problem, argument="names")
    return {number: name or str(number) for number, name in enumerate(names)}
