"""Runs: what a training leaves on disk. Written once, read many times, never lost."""

from softtargets.runs.exporting import export_table, exporter
from softtargets.runs.provenance import code_version, environment, now
from softtargets.runs.run import Predictions, Run
from softtargets.runs.store import ListedRun, RunStore, check_filter, export_logs
from softtargets.runs.writer import Checkpoint, RunWriter

Entry = ListedRun  # as it was called first

__all__ = [
    "Checkpoint",
    "Entry",
    "ListedRun",
    "Predictions",
    "Run",
    "RunStore",
    "RunWriter",
    "check_filter",
    "code_version",
    "environment",
    "export_logs",
    "export_table",
    "exporter",
    "now",
]
