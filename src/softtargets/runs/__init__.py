"""Runs: what a training leaves on disk. Written once, read many times, never lost."""

from softtargets.runs.run import Predictions, Run
from softtargets.runs.store import Entry, RunStore, check_filter
from softtargets.runs.writer import Checkpoint, RunWriter

__all__ = ["Checkpoint", "Entry", "Predictions", "Run", "RunStore", "RunWriter", "check_filter"]
