"""How wrong are labels, and how much smoothing is best for that?"""

from softtargets.inspection.advise.cnn import cnn_out_of_fold
from softtargets.inspection.advise.evidence import Evidence, check_method, sample_of
from softtargets.inspection.advise.training import MODELS, Training, train_out_of_fold

__all__ = [
    "MODELS",
    "Evidence",
    "Training",
    "check_method",
    "cnn_out_of_fold",
    "sample_of",
    "train_out_of_fold",
]
