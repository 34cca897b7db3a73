"""The other extreme: a net that has learned no label by heart, only what labels are on the average."""

from __future__ import annotations

from typing import Any

import numpy as np

from softtargets.theory.agreement import agreeing, cross_entropy
from softtargets.theory.arguments import Array, Numbers, as_choice, as_kind, as_rates, as_result


def averaging_loss(p: Any, a: Any, classes: Any, kind: str, limits: bool = False) -> Numbers:
    r"""Mean test loss in nats of a net whose output is the mean of the targets for its class.

    Not from Chen et al.: it is what their assumption is to be compared with. Given endless examples, or stopped
    before it learns single ones by heart, a net can do no better on its training set than to put v on the right
    class and share the rest among the others, v being the mean of its targets:

    .. math:: \ell = -b \log v - (1-b) \log \frac{1-v}{M-1}, \quad v = ap + \frac{(1-a)(1-p)}{M-1},

    with b what test targets have on the right class: 1 for ``"alpha"``, a for ``"beta"``, p for ``"gamma"``.
    The logarithm being concave, this is never above `generalization_loss`; and for ``"alpha"``, a > 1/M, it
    falls all the way to p = 1: to such a net smoothing does no good. A measured loss tells how far a net has
    gone from one to the other.

    >>> round(averaging_loss(0.9, 0.8, classes=10, kind="alpha"), 6)
    0.325422
    """
    p, a, classes = as_rates(limits, classes, p=p, a=a)
    right = {"alpha": np.ones_like(a), "beta": a, "gamma": p}[as_kind(kind)]
    mean, _ = agreeing(a, p, classes)
    return as_result(cross_entropy(right, 1 - right, mean, classes))


def averaging_matrix_loss(smoothing: float | Array, T: Array, kind: str, shares: Array) -> float:
    r"""`averaging_loss` for any noise, type alpha or beta, and any smoothing, by one p or by a matrix S of targets.

    A net that has learned no label by heart puts out the mean target of its class, :math:`V = TS`, and loses
    :math:`-\sum_i \pi_i \sum_c B_{ic} \log V_{ic}`, B being the identity (alpha) or T (beta).

    >>> T = np.array([[0.8, 0.2], [0.2, 0.8]])
    >>> shares = np.array([0.5, 0.5])
    >>> round(averaging_matrix_loss(0.9, T, "alpha", shares), 6)  # V has 0.9 x 0.8 + 0.1 x 0.2 on the diagonal
    0.301105
    """
    tested = np.eye(len(T)) if as_choice("kind", kind, ("alpha", "beta")) == "alpha" else T
    if isinstance(smoothing, float):
        other = (1 - smoothing) / (len(T) - 1)
        output = other + (smoothing - other) * T  # as T S, without the product
    else:
        output = T @ smoothing
    weight = shares[:, None] * tested
    used = weight > 0
    with np.errstate(divide="ignore"):
        return float(-(weight[used] * np.log(output[used])).sum())
