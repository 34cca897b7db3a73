"""Predictions of any model, read from files some rows at a time; nothing in a file is executed."""

from softtargets.predictions.activations import Activations, open_activations
from softtargets.predictions.array import FileArray
from softtargets.predictions.confidence_names import find_confidences
from softtargets.predictions.confidences import Confidences, open_confidences
from softtargets.predictions.errors import PredictionFileError
from softtargets.predictions.formats import Arrays, open_arrays
from softtargets.predictions.kinds import Kind
from softtargets.predictions.predictions import Predictions, open_predictions
from softtargets.predictions.writing import Written, refuse_existing, refuse_replacing, write_predictions

__all__ = [
    "Activations",
    "Arrays",
    "Confidences",
    "FileArray",
    "Kind",
    "PredictionFileError",
    "Predictions",
    "Written",
    "find_confidences",
    "open_activations",
    "open_arrays",
    "open_confidences",
    "open_predictions",
    "refuse_existing",
    "refuse_replacing",
    "write_predictions",
]
