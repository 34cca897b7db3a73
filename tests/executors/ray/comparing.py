"""Runs of two stores, file by file."""

from __future__ import annotations

import json
from pathlib import Path

# What says when, and in whose company, a run was trained.
CIRCUMSTANCES = {"started", "finished", "seconds", "setup_seconds", "runs_together", "resumed"}


def contents(
    root: Path, circumstances: frozenset[str] | set[str] = CIRCUMSTANCES
) -> dict[str, dict[str, object]]:
    """The files of all runs in a store, by run and name; manifests without what differs from training to training."""
    found: dict[str, dict[str, object]] = {}
    for run in sorted(root.iterdir()):
        if run.name.startswith(".") or not run.is_dir():
            continue
        files: dict[str, object] = {}
        for path in sorted(path for path in run.rglob("*") if path.is_file()):
            name = str(path.relative_to(run))
            files[name] = path.read_bytes() if name != "run.json" else manifest(path, circumstances)
        found[run.name] = files
    return found


def manifest(path: Path, circumstances: frozenset[str] | set[str]) -> dict[str, object]:
    told = json.loads(path.read_text())
    told["provenance"] = {key: one for key, one in told["provenance"].items() if key not in circumstances}
    return {key: one for key, one in told.items() if key != "sha256"}
