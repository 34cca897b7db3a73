"""Predictions of any model, read from files some rows at a time; nothing in a file is executed."""

from softtargets.predictions.activations import Activations, open_activations
from softtargets.predictions.array import FileArray
from softtargets.predictions.errors import PredictionFileError
from softtargets.predictions.formats import Arrays, open_arrays
from softtargets.predictions.kinds import Kind
from softtargets.predictions.predictions import Predictions, open_predictions

__all__ = [
    "Activations",
    "Arrays",
    "FileArray",
    "Kind",
    "PredictionFileError",
    "Predictions",
    "open_activations",
    "open_arrays",
    "open_predictions",
]
