"""Selective prediction: how much is gained by handing the least confident cases to a person or to another model?"""

from softtargets.selection.confidence import POWERS, less_than_certain, normalised_logits
from softtargets.selection.curve import RiskCoverage, risk_coverage
from softtargets.selection.intervals import accuracy_intervals, aurc_difference
from softtargets.selection.measure import (
    AtAccuracy,
    AtCoverage,
    ConfidenceRows,
    Selection,
    measure_selection,
    selection_of,
)
from softtargets.selection.normalisation import (
    NORMALISATION_FOLDS,
    LogitNormalisation,
    fit_normalisation,
    normalisation_of,
)
from softtargets.selection.points import RiskPoints, least_risk, risk_points, shown_coverages

__all__ = [
    "NORMALISATION_FOLDS",
    "POWERS",
    "AtAccuracy",
    "AtCoverage",
    "ConfidenceRows",
    "LogitNormalisation",
    "RiskCoverage",
    "RiskPoints",
    "Selection",
    "accuracy_intervals",
    "aurc_difference",
    "fit_normalisation",
    "least_risk",
    "less_than_certain",
    "measure_selection",
    "normalisation_of",
    "normalised_logits",
    "risk_coverage",
    "risk_points",
    "selection_of",
    "shown_coverages",
]
