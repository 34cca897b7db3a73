"""One p for any noise: what is best when labels are smoothed in the usual way, whatever the transition matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from softtargets.arrays import as_stochastic
from softtargets.theory.agreement import agreeing, cross_entropy
from softtargets.theory.arguments import Array, Numbers, as_kind, as_prior, as_rate, as_result, as_together
from softtargets.theory.optimum import optimal_p


def effective_clean_rate(T: Any, prior: Any = None) -> Numbers:
    r"""The share of labels that are right: :math:`\bar a = \sum_i \pi_i T_{ii}` (Chen et al. 2020, section 4.4).

    >>> round(effective_clean_rate([[1.0, 0.0], [0.2, 0.8]]), 12)
    0.9
    """
    T = as_stochastic("T", T)
    return as_result(_clean(T, as_prior(prior, T.shape[-1])))


def mean_field_loss(p: Any, T: Any, kind: str, prior: Any = None, limits: bool = False) -> Numbers:
    r"""`matrix_loss` where S has p on the diagonal and (1-p)/(M-1) elsewhere; equation 16, corrected (ERRATA.md, 6).

    .. math:: -w \log p - (1-w) \log \frac{1-p}{M-1}, \quad
              w = \begin{cases} \bar a & \alpha \\ \sum_i \pi_i \sum_j T_{ij}^2 & \beta \\
              \bar a p + \frac{(1-\bar a)(1-p)}{M-1} & \gamma \end{cases}

    p may be an array; it broadcasts with the leading dimensions of T.

    >>> from softtargets.theory import matrix_loss, uniform_matrix
    >>> T = [[1.0, 0.0], [0.2, 0.8]]
    >>> round(mean_field_loss(0.9, T, "beta"), 12) == round(matrix_loss(uniform_matrix(0.9, 2), T, "beta"), 12)
    True
    """
    kind, T = as_kind(kind), as_stochastic("T", T)
    weight = as_prior(prior, T.shape[-1])
    same = _same(T, weight) if kind == "beta" else _clean(T, weight)
    p, same = as_together(p=as_rate("p", p, limits), T=same)
    classes = np.full_like(p, T.shape[-1])
    pair = agreeing(same, p, classes) if kind == "gamma" else (same, 1 - same)
    return as_result(cross_entropy(*pair, p, classes))


def mean_field_p(T: Any, kind: str, prior: Any = None) -> Numbers:
    r"""The p with the lowest `mean_field_loss`; equation 17 without its factor 1/2 (ERRATA.md, 1 and 6).

    .. math:: p_\alpha^* = \bar a = \sum_i \pi_i T_{ii}, \quad
              p_\beta^* = \sum_i \pi_i \sum_j T_{ij}^2 = \frac1M \mathrm{Tr}[T T^t] \ \text{for equal frequencies}

    The gamma type depends on T only through the effective clean rate: it is
    ``optimal_p(effective_clean_rate(T), ...)``.

    >>> T = [[1.0, 0.0], [0.2, 0.8]]
    >>> [round(mean_field_p(T, kind), 6) for kind in ("alpha", "beta", "gamma")]
    [0.9, 0.84, 0.963166]
    """
    kind, T = as_kind(kind), as_stochastic("T", T)
    weight = as_prior(prior, T.shape[-1])
    if kind == "beta":
        return as_result(_same(T, weight))
    clean = np.minimum(_clean(T, weight), 1.0)  # a sum of frequencies may round to more
    return as_result(clean) if kind == "alpha" else optimal_p(clean, T.shape[-1], "gamma", limits=True)


def _clean(T: Array, prior: Array) -> Array:
    return np.asarray(np.minimum((prior * np.diagonal(T, axis1=-2, axis2=-1)).sum(-1), 1.0))


def _same(T: Array, prior: Array) -> Array:
    return np.asarray(np.minimum((prior * np.square(T).sum(-1)).sum(-1), 1.0))
