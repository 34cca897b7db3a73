"""Which kind of file runs are exported to, by its name; their logs, and a table of them."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from softtargets.exceptions import SofttargetsError, StorageError
from softtargets.runs.run import Run
from softtargets.storage import write_atomically

Exporter = Callable[[Iterable[Run], Path, list[str] | None], int]


def exporter(path: Path) -> Exporter:
    """The function that writes a file of this name; other kinds than lines of JSON and CSV are refused."""
    kind = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    found: dict[str, Exporter] = {".jsonl": export_logs, ".ndjson": export_logs, ".csv": export_table}
    if kind.lower() not in found:
        named = f"ends in '{kind}'" if kind else "has no ending that says what to write"
        raise StorageError(
            f"{path} {named}; end the name in .jsonl (a line of JSON per run, all metrics) or .csv (a row per run), "
            "and in a further .gz to compress it"
        )
    return found[kind.lower()]


def export_logs(runs: Iterable[Run], path: Path, damaged: list[str] | None = None) -> int:
    """Write one line of JSON for each run, by id, compressed if the name ends in ``.gz``; returns how many.

    All that was logged, without weights and predictions. The same runs always give the same bytes. A damaged run is
    an error; given a list, it is left out and what is wrong with it is put there.
    """
    lines = []
    for run in sorted(runs, key=lambda run: run.id):
        try:
            lines.append(log_line(run))
        except SofttargetsError as error:
            if damaged is None:
                raise
            damaged.append(str(error))
    content = "".join(lines).encode()
    write_atomically(path, gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    return len(lines)


def log_line(run: Run) -> str:
    """One run as a line of JSON, all of which is checked against its manifest."""
    told = {
        "id": run.id,
        "status": run.status,
        "recipe": run.recipe.to_dict(),
        "summary": run.summary,
        "provenance": run.provenance,
        "history": run.history(),
    }
    return json.dumps(told, separators=(",", ":"), allow_nan=False) + "\n"


def export_table(runs: Iterable[Run], path: Path, damaged: list[str] | None = None) -> int:
    """Write a CSV with one row for each run, by id, and return how many: id, status, recipe, summary, provenance.

    Columns are named by the path of a value, as in ``recipe.regulariser.alpha`` and ``summary.test_accuracy``; lists
    are JSON. What was measured in earlier epochs is left out. Damaged runs are as in `export_logs`.
    """
    rows = []
    for run in sorted(runs, key=lambda run: run.id):
        try:
            parts = {"recipe": run.recipe.to_dict(), "summary": run.summary, "provenance": run.provenance}
            rows.append({"id": run.id, "status": run.status, **_flat(parts)})
        except SofttargetsError as error:
            if damaged is None:
                raise
            damaged.append(str(error))
    buffer = io.StringIO()
    columns = sorted({column for row in rows for column in row} - {"id", "status"}, key=_place)
    table = csv.DictWriter(buffer, ["id", "status", *columns], restval="", lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    content = buffer.getvalue().encode()
    write_atomically(path, gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)
    return len(rows)


def _place(column: str) -> tuple[int, str]:
    return ("recipe", "summary", "provenance").index(column.partition(".")[0]), column


def _flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Values by their dotted paths."""
    found: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{key}.")
        else:
            found[prefix + key] = json.dumps(value) if isinstance(value, list | tuple) else value
    return found
