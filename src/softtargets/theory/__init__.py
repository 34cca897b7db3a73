"""How much smoothing is best when some labels are wrong: the theory of Chen et al. 2020, re-derived and corrected.

A model memorises its smoothed labels, some of which are wrong. `generalization_loss` is its test loss, and
`optimal_p` the smoothing with the lowest one. Three types differ in the labels that the model is tested against:
clean ones (``"alpha"``, or ``"clean"``), ones as wrong as those of the training (``"beta"``, or ``"noisy"``), or
clean ones that are smoothed like them (``"gamma"``, or ``"smoothed"``). ERRATA.md lists what is wrong in the
printed paper.

`labo_rests` is about another loss: where training with LABO (Lu et al. 2023) comes to rest.
"""

from softtargets.theory.agreement import agreement
from softtargets.theory.conventions import alpha_from_p, p_from_alpha, uniform_matrix
from softtargets.theory.landscape import Landscape, OptimumCurve, landscape, optimum_curve
from softtargets.theory.limits import limiting_loss, scaled_gamma_p
from softtargets.theory.loss import averaging_loss, averaging_matrix_loss, generalization_loss, matrix_loss
from softtargets.theory.meanfield import effective_clean_rate, mean_field_loss, mean_field_p
from softtargets.theory.optimum import optimal_alpha, optimal_matrix, optimal_p
from softtargets.theory.resting import Rest, labo_pull, labo_rests
from softtargets.theory.transition import Transition, gamma_transition, transition_asymptote

__all__ = [
    "Landscape",
    "OptimumCurve",
    "Rest",
    "Transition",
    "agreement",
    "alpha_from_p",
    "averaging_loss",
    "averaging_matrix_loss",
    "effective_clean_rate",
    "gamma_transition",
    "generalization_loss",
    "labo_pull",
    "labo_rests",
    "landscape",
    "limiting_loss",
    "matrix_loss",
    "mean_field_loss",
    "mean_field_p",
    "optimal_alpha",
    "optimal_matrix",
    "optimal_p",
    "optimum_curve",
    "p_from_alpha",
    "scaled_gamma_p",
    "transition_asymptote",
    "uniform_matrix",
]
