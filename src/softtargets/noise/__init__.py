"""Label noise: add it to clean labels, and estimate how much there is in given labels.

Everywhere T[i, j] = P(noisy = j | clean = i), and the rows of T add up to 1.
"""

from collections.abc import Callable

from softtargets.noise.base import Labels, Matrix
from softtargets.noise.class_conditional import (
    class_conditional,
    class_conditional_transitions,
    observed_transitions,
    pair,
    pair_transitions,
    symmetric,
    symmetric_transitions,
)
from softtargets.noise.estimation.assessment import NoiseAssessment, assess_noise
from softtargets.noise.estimation.estimate import METHODS, NoiseEstimate, estimate_noise
from softtargets.noise.estimation.folds import assign_folds, out_of_fold
from softtargets.noise.estimation.interval import NoiseInterval
from softtargets.noise.estimation.suspicion import SuspiciousExamples, suspicious_examples
from softtargets.noise.instance import instance, instance_probabilities

# The names by which recipes call them. Each takes (labels, classes, seed) and its own options, `instance` also inputs.
CORRUPTIONS: dict[str, Callable[..., Labels]] = {
    "symmetric": symmetric,
    "pair": pair,
    "class_conditional": class_conditional,
    "instance": instance,
}
# What each does on average, as a matrix. Each takes (classes) and its own options; `instance` depends on the inputs.
TRANSITIONS: dict[str, Callable[..., Matrix]] = {
    "symmetric": symmetric_transitions,
    "pair": pair_transitions,
    "class_conditional": class_conditional_transitions,
}

__all__ = [
    "CORRUPTIONS",
    "METHODS",
    "TRANSITIONS",
    "NoiseAssessment",
    "NoiseEstimate",
    "NoiseInterval",
    "SuspiciousExamples",
    "assess_noise",
    "assign_folds",
    "class_conditional",
    "class_conditional_transitions",
    "estimate_noise",
    "instance",
    "instance_probabilities",
    "observed_transitions",
    "out_of_fold",
    "pair",
    "pair_transitions",
    "suspicious_examples",
    "symmetric",
    "symmetric_transitions",
]
