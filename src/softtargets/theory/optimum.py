"""The smoothing with the lowest generalisation loss."""

from __future__ import annotations

from typing import Any

import numpy as np

from softtargets.arrays import as_stochastic
from softtargets.theory.agreement import agreeing
from softtargets.theory.arguments import Array, Numbers, as_classes, as_kind, as_prior, as_rates, as_result
from softtargets.theory.conventions import alpha_from_p
from softtargets.theory.loss import joint, tested_against
from softtargets.theory.transition import gamma_transition, p_at, upper_minimum


def optimal_p(a: Any, classes: Any, kind: str, limits: bool = False) -> Numbers:
    r"""The p with the lowest `generalization_loss`, labels being right with probability a.

    .. math:: p_\alpha^* = a, \quad p_\beta^* = a^2 + \frac{(1-a)^2}{M-1} = \frac{1 - 2a + a^2 M}{M-1}

    Chen et al. 2020, sections 3.1, 3.2, 4.1 and 4.2: the agreement w of `generalization_loss`, since a
    cross-entropy is lowest where both distributions are the same. With the gamma type w itself depends on p,
    and there is no formula: up to the clean rate of `gamma_transition` the best is p = 1/M, to learn nothing;
    beyond it is the larger solution of

    .. math:: (1-a)\frac{Mp-1}{p(1-p)} = (aM-1) \log \frac{(M-1)p}{1-p},

    found to the last digits of double precision. (For two classes 1 - p* is equally good, since the two classes can
    be swapped.) Below a = 1/M labels are wrong more often than chance, and the alpha type puts less on the label
    than on others.

    a and classes may be arrays that broadcast. ``classes=math.inf`` gives the limits for more and more classes:
    a, a^2 (as the paper says), and 1 for the gamma type, where 1 - p* falls like (1-a) / (a log M). a = 0 and 1
    are refused, unless ``limits=True`` for the limits.

    >>> [round(optimal_p(0.8, classes=10, kind=kind), 6) for kind in ("alpha", "beta", "gamma")]
    [0.8, 0.644444, 0.95035]
    >>> import math
    >>> round(optimal_p(0.8, classes=math.inf, kind="beta"), 12)
    0.64
    """
    kind = as_kind(kind)
    a, classes = as_rates(limits, classes, infinite=True, a=a)
    if kind == "alpha":
        return as_result(a.copy())
    if kind == "gamma":
        return as_result(_gamma(a, classes))
    endless = np.isinf(classes)
    same, _ = agreeing(a, a, np.where(endless, 2.0, classes))
    return as_result(np.where(endless, a * a, same))


def optimal_alpha(a: Any, classes: Any, kind: str, spread: str = "all", limits: bool = False) -> Numbers:
    """The best strength of smoothing for a loss: `optimal_p` as the alpha of ``LabelSmoothing(alpha, spread)``.

    `kind` says what the model is judged by: ``"clean"`` test labels, ``"noisy"`` ones (as wrong as the training
    labels), or ``"smoothed"`` ones. The paper calls these the alpha, beta and gamma types; its names work too, but the
    alpha that is returned is a strength of smoothing and has nothing to do with the alpha type.

    With ``spread="all"`` the result is above 1 where the best p is below 1/M, which losses refuse. ``"others"`` can
    express it.

    >>> round(optimal_alpha(0.8, classes=10, kind="clean"), 6)
    0.222222
    >>> round(optimal_alpha(0.8, classes=10, kind="clean", spread="others"), 6)
    0.2
    >>> optimal_alpha(0.8, classes=10, kind="clean") == optimal_alpha(0.8, classes=10, kind="alpha")
    True
    """
    return alpha_from_p(optimal_p(a, as_classes(classes), kind, limits), classes, spread)


def optimal_matrix(T: Any, kind: str, prior: Any = None) -> Array:
    r"""The smoothing S with the lowest `matrix_loss` for noise T: what to believe about a label that may be wrong.

    .. math:: S_{kc}^* = \frac{G_{kc}}{\sum_c G_{kc}}, \quad
              G = T^\top \mathrm{diag}(\pi) \ (\alpha), \quad G = T^\top \mathrm{diag}(\pi)\, T \ (\beta)

    Row k of T is what becomes of the clean label k. For ``"alpha"`` S* is the posterior of the clean label given
    the one that was seen, for ``"beta"`` that of another label drawn for the same example.
    ``LabelSmoothing(alpha=1, matrix=S)`` trains with it. With equal frequencies and a symmetric T these are T and T
    T^t; Chen et al. 2020 print S* = T (section 4.1) and S* = T T^t / 2 (equation 13, in their transposed notation):
    ERRATA.md, 1 and 3. Labels that never occur may be trained on anything; their rows are uniform. T may be a stack
    of matrices.

    There is no useful matrix for ``"gamma"``: training and testing every label on the same class has loss 0,
    whatever T. Among smoothings with a single p there is a best one: `mean_field_p`.

    >>> import numpy as np
    >>> T = np.array([[1.0, 0.0], [0.2, 0.8]])  # one in five of the second class is labelled as the first
    >>> optimal_matrix(T, "alpha").round(4)
    array([[0.8333, 0.1667],
           [0.    , 1.    ]])
    >>> optimal_matrix(T, "beta").round(4)
    array([[0.8667, 0.1333],
           [0.2   , 0.8   ]])
    """
    kind = as_kind(kind)
    if kind == "gamma":
        raise ValueError(
            "kind 'gamma' has no useful optimal matrix: mapping every label to the same class has loss 0; use "
            "mean_field_p(T, 'gamma') for the best p, or kind 'alpha' or 'beta'"
        )
    T = as_stochastic("T", T)
    G = joint(T, tested_against(T, T, kind), as_prior(prior, T.shape[-1]))
    seen = G.sum(-1, keepdims=True)
    return np.where(seen > 0, G / np.where(seen > 0, seen, 1.0), 1 / T.shape[-1])


def _gamma(a: Array, classes: Array) -> Array:
    places = {size: gamma_transition(size).a for size in np.unique(classes)}
    place = np.vectorize(places.get, otypes=[np.float64])(classes) if classes.size else classes
    best = 1 / classes
    certain = (a == 1) | (np.isinf(classes) & (a > 0))
    best = np.where(certain, 1.0, best)
    learned = (a > place) & ~certain
    if learned.any():
        best[learned] = p_at(upper_minimum(a[learned], classes[learned]), classes[learned])
    return best
