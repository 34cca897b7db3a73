"""How noisy the labels are, from what a model says of examples it has not been trained on."""

from softtargets.noise.estimation.estimate import METHODS, NoiseEstimate, estimate_noise
from softtargets.noise.estimation.folds import assign_folds, out_of_fold
from softtargets.noise.estimation.interval import NoiseInterval

__all__ = ["METHODS", "NoiseEstimate", "NoiseInterval", "assign_folds", "estimate_noise", "out_of_fold"]
