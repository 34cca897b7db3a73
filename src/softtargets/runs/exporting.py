"""The logs of runs as one file: what was trained, when, where and how it went, without weights and predictions."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from softtargets.runs.run import Run
from softtargets.storage import write_atomically


def log_of(run: Run) -> dict[str, Any]:
    """One run, all of which is checked against its manifest."""
    return {
        "id": run.id,
        "status": run.status,
        "recipe": run.recipe.to_dict(),
        "summary": run.summary,
        "provenance": run.provenance,
        "history": run.history(),
    }


def export_logs(runs: Iterable[Run], path: Path) -> int:
    """Write one line of JSON for each run, by id, compressed if the name ends in ``.gz``; returns how many.

    The same runs always give the same bytes.
    """
    lines = [
        json.dumps(log_of(run), separators=(",", ":"), allow_nan=False)
        for run in sorted(runs, key=lambda run: run.id)
    ]
    content = "".join(f"{line}\n" for line in lines).encode()
    write_atomically(path, gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    return len(lines)
