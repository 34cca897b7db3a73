"""Runs: what a training leaves on disk. Written once, read many times, never lost."""

from softtargets.runs.compact import export_predictions, recomputed
from softtargets.runs.engines import ENGINE, ENGINES, engine_of, mixed_engines
from softtargets.runs.exporting import export_table, exporter
from softtargets.runs.provenance import code_version, environment, now
from softtargets.runs.run import SCORES, Predictions, Run
from softtargets.runs.store import ListedRun, RunStore, check_filter, export_logs
from softtargets.runs.writer import Checkpoint, RunWriter

Entry = ListedRun  # as it was called first

__all__ = [
    "ENGINE",
    "ENGINES",
    "SCORES",
    "Checkpoint",
    "Entry",
    "ListedRun",
    "Predictions",
    "Run",
    "RunStore",
    "RunWriter",
    "check_filter",
    "code_version",
    "engine_of",
    "environment",
    "export_logs",
    "export_predictions",
    "export_table",
    "exporter",
    "mixed_engines",
    "now",
    "recomputed",
]
