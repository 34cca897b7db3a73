"""Runs: what a training leaves on disk. Written once, read many times, never lost."""

from softtargets.runs.compact import CompactPredictions, export_predictions, read_predictions, recomputed
from softtargets.runs.engines import ENGINE, ENGINES, engine_of, mixed_engines
from softtargets.runs.exporting import export_logs, export_table, exporter
from softtargets.runs.index import ListedRun
from softtargets.runs.measured import Measured, keep_measures, measured_by, read_measures
from softtargets.runs.merging import Conflict, Merged, merge_runs
from softtargets.runs.offers import TEACHERS, measured_in
from softtargets.runs.packing import (
    EXTRAS,
    LOGS,
    PREDICTIONS,
    SPLITS,
    Extra,
    Packed,
    check_pack_name,
    pack_runs,
    predictions_of,
)
from softtargets.runs.progress import progress_of
from softtargets.runs.provenance import code_version, environment, is_untraceable_copy, note_part, now
from softtargets.runs.run import SCORES, NotStoredError, Predictions, Run
from softtargets.runs.store import RunStore, check_filter
from softtargets.runs.writer import Checkpoint, RunWriter

Entry = ListedRun  # as it was called first

__all__ = [
    "ENGINE",
    "ENGINES",
    "EXTRAS",
    "LOGS",
    "PREDICTIONS",
    "SCORES",
    "SPLITS",
    "TEACHERS",
    "Checkpoint",
    "CompactPredictions",
    "Conflict",
    "Entry",
    "Extra",
    "ListedRun",
    "Measured",
    "Merged",
    "NotStoredError",
    "Packed",
    "Predictions",
    "Run",
    "RunStore",
    "RunWriter",
    "check_filter",
    "check_pack_name",
    "code_version",
    "engine_of",
    "environment",
    "export_logs",
    "export_predictions",
    "export_table",
    "exporter",
    "is_untraceable_copy",
    "keep_measures",
    "measured_by",
    "measured_in",
    "merge_runs",
    "mixed_engines",
    "note_part",
    "now",
    "pack_runs",
    "predictions_of",
    "progress_of",
    "read_measures",
    "read_predictions",
    "recomputed",
]
