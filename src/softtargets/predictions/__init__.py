"""Predictions of any model, read from files some rows at a time; nothing in a file is executed."""

from softtargets.predictions.activations import Activations, open_activations
from softtargets.predictions.array import FileArray
from softtargets.predictions.confidence_names import find_confidences
from softtargets.predictions.confidences import Confidences, open_confidences
from softtargets.predictions.errors import PredictionFileError
from softtargets.predictions.formats import Arrays, open_arrays
from softtargets.predictions.kinds import Judgement, Kind, checked_scores, kind_of_scores
from softtargets.predictions.predictions import Predictions, open_predictions
from softtargets.predictions.writing import Written, refuse_existing, refuse_replacing, write_predictions

__all__ = [
    "Activations",
    "Arrays",
    "Confidences",
    "FileArray",
    "Judgement",
    "Kind",
    "PredictionFileError",
    "Predictions",
    "Written",
    "checked_scores",
    "find_confidences",
    "kind_of_scores",
    "open_activations",
    "open_arrays",
    "open_confidences",
    "open_predictions",
    "refuse_existing",
    "refuse_replacing",
    "write_predictions",
]
