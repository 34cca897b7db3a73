"""Whether every number in a directory of results can be followed to its recipe, seed, code and device."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from softtargets.exceptions import SofttargetsError
from softtargets.recipes import Recipe

_ID = re.compile(r"[0-9a-f]{16}")
_COMMIT = re.compile(r"[0-9a-f]{40}")


def untraced(directory: Path) -> list[str]:
    """What is missing, in sentences: for every page under a directory, its runs, their logs and their predictions.

    Of a run there must be its recipe, whose hash is its id, the seed in it, the commit of the code that trained it,
    and the device. Of a page whose study only computes, the code that computed it.
    """
    return [
        f"{path.parent.name}: {said}"
        for path in sorted(directory.glob("*/results.json"))
        for said in _page(path.parent, json.loads(path.read_text(encoding="utf-8")))
    ]


def _page(directory: Path, results: Mapping[str, Any]) -> Iterator[str]:
    told = results.get("provenance", {})
    if not re.search(r"\([0-9a-f]{12}", told.get("softtargets", "")):
        yield f"its page does not say by which code it was made: {told.get('softtargets')!r}"
    if not results.get("command"):
        yield "its page does not say by which command it was made"
    rows = results.get("tables", {}).get("runs", [])
    if not rows:
        return
    logs = directory / "logs.jsonl.gz"
    if not logs.is_file():
        yield f"{len(rows)} runs have no logs"
        return
    lines = {line["id"]: line for line in _lines(logs)}
    yield from _once(said for row in rows for said in _row(row, lines))
    yield from _predictions(directory / "predictions.npz", lines)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _row(row: Mapping[str, Any], lines: Mapping[str, Any]) -> Iterator[str]:
    name = row.get("run", "")
    if not _ID.fullmatch(name):
        yield f"a row of its runs has no id: {name!r}"
        return
    if name not in lines:
        yield f"run {name} has no line in the logs"
        return
    line = lines[name]
    if line.get("recipe", {}).get("seed") != row.get("seed"):
        yield f"run {name} has the seed {row.get('seed')!r} on the page and another in its recipe"
    try:
        found = Recipe.from_dict(line["recipe"]).id
    except (KeyError, SofttargetsError) as error:
        yield f"run {name} has no recipe that can be read: {error}"
    else:
        if found != name:
            yield f"run {name} has a recipe whose id is {found}"
    yield from _made_by(name, line.get("provenance", {}))


def _made_by(name: str, told: Mapping[str, Any]) -> Iterator[str]:
    if not _COMMIT.fullmatch(told.get("commit") or ""):
        yield f"run {name} has no commit of the code that trained it"
    for key in ("softtargets", "torch", "device", "device_name"):
        if not told.get(key):
            yield f"run {name} does not say its {key}"


def _predictions(path: Path, lines: Mapping[str, Any]) -> Iterator[str]:
    if not path.is_file():
        return
    import numpy as np

    with np.load(path) as file:
        ids = {name.partition(".")[0] for name in file.files} - {"labels"}
    if strangers := sorted(ids - lines.keys()):
        yield f"{len(strangers)} runs have predictions and no logs, the first {strangers[0]}"


def _once(said: Iterable[str]) -> Iterator[str]:
    """Each sentence once: a run may stand in several rows."""
    yield from dict.fromkeys(said)
