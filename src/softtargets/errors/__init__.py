"""Instruments for mistakes: which classes are confused, how far off, by whom, and how rare they were in training."""

from softtargets.errors.confusion import confusion_matrix, confusion_rates
from softtargets.errors.frequency import FrequencyGroup, accuracy_by_frequency
from softtargets.errors.overlap import ErrorOverlap, error_overlap
from softtargets.errors.superclasses import FineAndCoarse, OverRuns, Spread, fine_and_coarse_errors, over_runs

__all__ = [
    "ErrorOverlap",
    "FineAndCoarse",
    "FrequencyGroup",
    "OverRuns",
    "Spread",
    "accuracy_by_frequency",
    "confusion_matrix",
    "confusion_rates",
    "error_overlap",
    "fine_and_coarse_errors",
    "over_runs",
]
