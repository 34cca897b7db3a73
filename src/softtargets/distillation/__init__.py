"""Instruments for distillation: how smooth targets are, how a student agrees with its teacher, what it gains."""

from softtargets.distillation.agreement import Agreement, agreement, agreement_of_probabilities
from softtargets.distillation.curve import Curve, curve
from softtargets.distillation.gain import Gain, gain
from softtargets.distillation.smoothness import smoothness_index

__all__ = [
    "Agreement",
    "Curve",
    "Gain",
    "agreement",
    "agreement_of_probabilities",
    "curve",
    "gain",
    "smoothness_index",
]
