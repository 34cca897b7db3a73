"""How far an unfinished run is, read from its checkpoint without its tensors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from softtargets.runs.run import CHECKPOINT

_MOST = 1 << 28  # bytes of a header: the names of all tensors, and all metrics so far


def progress_of(directory: Path) -> dict[str, Any]:
    """What a run's checkpoint says of its progress (`step`, images or tokens, `begun`); nothing if there is none.

    A checkpoint that cannot be read counts as none here: whoever trains the run says what is wrong with it.
    """
    try:
        with open(directory / CHECKPOINT, "rb") as file:  # one descriptor: it may be replaced while we read
            size = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(size)) if size <= _MOST else {}
        found = json.loads(header["__metadata__"]["progress"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
