"""The generalisation loss of a model that has memorised its smoothed, partly wrong labels.

And the other extreme: of a model that has memorised no label, only what labels are on average.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from softtargets.arrays import as_stochastic
from softtargets.theory.agreement import agreeing, cross_entropy
from softtargets.theory.arguments import (
    KINDS_BY_TEST_LABELS,
    Array,
    Numbers,
    as_choice,
    as_kind,
    as_prior,
    as_rates,
    as_result,
)


def generalization_loss(p: Any, a: Any, classes: Any, kind: str, limits: bool = False) -> Numbers:
    r"""Mean test loss in nats: labels right with probability a, smoothed to mass p on the label, memorised.

    Chen et al., "An investigation of how label smoothing affects generalization", 2020. Of M classes a label
    becomes each other class with probability (1-a)/(M-1), and the model is trained on p for the label that it is
    given and (1-p)/(M-1) for each other. It memorises that target, whether the label is right or wrong. Its test loss
    depends on the labels that it is tested against:

    * ``"alpha"`` or ``"clean"``: clean labels, hard (equations 7 and 11);
    * ``"beta"`` or ``"noisy"``: hard labels, wrong as often as those of the training and independently (8 and 14);
    * ``"gamma"`` or ``"smoothed"``: clean labels that are smoothed too, with the same p, which treats smoothing as a
      belief about how labels are distributed, not as a remedy (9 and 15).

    All three equations are one, the cross-entropy of the output with a target that agrees with the trained
    label with probability w:

    .. math:: \ell = -w \log p - (1-w) \log \frac{1-p}{M-1}, \quad
              w = \begin{cases} a & \alpha \\ a^2 + \frac{(1-a)^2}{M-1} & \beta \\
              ap + \frac{(1-a)(1-p)}{M-1} & \gamma \end{cases}

    **What to compare it with.** A model's plain cross-entropy with hard labels, mean over examples, without smoothing
    in it: on a clean test set that is ``"alpha"`` (the paper's figures 5 and 6), on a test set with labels
    corrupted at the same rate ``"beta"`` (figure 7). The smoothed cross-entropy that was trained on, taken on a
    clean test set, is ``"gamma"``. The theory assumes that a test example behaves like a training example. A
    model that has not memorised wrong labels does better, see `averaging_loss`.

    p, a and classes may be arrays that broadcast. At p = 1 the loss is infinite unless all agrees; 0 and 1 are
    refused, unless ``limits=True`` for the limits.

    >>> round(generalization_loss(0.9, 0.8, classes=10, kind="alpha"), 6)
    0.98425
    >>> import numpy as np
    >>> generalization_loss(np.array([0.7, 0.8, 0.9]), 0.8, classes=2, kind="alpha").round(4)
    array([0.5261, 0.5004, 0.5448])
    """
    p, a, classes = as_rates(limits, classes, p=p, a=a)
    tested = {"alpha": np.ones_like(a), "beta": a, "gamma": p}[as_kind(kind)]
    return as_result(cross_entropy(*agreeing(a, tested, classes), p, classes))


def matrix_loss(S: Any, T: Any, kind: str, prior: Any = None) -> Numbers:
    r"""Mean test loss in nats for any noise T and any smoothing S.

    Row i of T says what becomes of the clean label i, row k of S is the target that label k is trained on (Chen
    et al. write the transposes); `prior` is how often each clean label occurs, equally often unless given. With
    row i of B the test target of clean label i, which is the identity for ``"alpha"``, T for ``"beta"`` and S
    for ``"gamma"``,

    .. math:: \ell = -\sum_{kc} G_{kc} \log S_{kc}, \quad G = T^\top \mathrm{diag}(\pi) B,

    G being how often label k is trained on and c tested. Equations 10 and 12, corrected: see ERRATA.md, 3 and 4.
    Stacks of matrices (..., M, M) give arrays. The loss is infinite if S gives probability 0 to something that
    happens.

    >>> from softtargets.theory import uniform_matrix
    >>> round(matrix_loss(uniform_matrix(0.9, 10), uniform_matrix(0.8, 10), "alpha"), 6)
    0.98425
    """
    S, T = as_stochastic("S", S), as_stochastic("T", T)
    if S.shape[-1] != T.shape[-1]:
        raise ValueError(
            f"S and T must have the same number of classes, but S has {S.shape[-1]} and T has {T.shape[-1]}"
        )
    G = joint(T, tested_against(S, T, kind), as_prior(prior, T.shape[-1]))
    with np.errstate(divide="ignore", invalid="ignore"):
        return as_result(np.where(G > 0, -G * np.log(S), 0.0).sum((-1, -2)))


def tested_against(S: Array, T: Array, kind: str) -> Array:
    """B: the test target of each clean label."""
    return {"alpha": np.eye(T.shape[-1]), "beta": T, "gamma": S}[as_kind(kind)]


def joint(T: Array, B: Array, prior: Array) -> Array:
    """G: how often label k is trained on and c is the test target of the same example."""
    return np.swapaxes(T, -1, -2) @ (prior[..., None] * B)


def averaging_loss(p: Any, a: Any, classes: Any, kind: str, limits: bool = False) -> Numbers:
    r"""Mean test loss in nats of a model whose output is the mean of the targets for its class.

    Not from Chen et al., but the opposite of their assumption: a model that memorises nothing. With unlimited examples,
    or stopped before it memorises single ones, the best that a model can do on its training set is to put v on the
    right class and share the rest among the others, v being the mean of its targets:

    .. math:: \ell = -b \log v - (1-b) \log \frac{1-v}{M-1}, \quad v = ap + \frac{(1-a)(1-p)}{M-1},

    with b what test targets have on the right class: 1 for ``"alpha"``, a for ``"beta"``, p for ``"gamma"``.
    The logarithm being concave, this is never above `generalization_loss`; and for ``"alpha"``, a > 1/M, it
    falls all the way to p = 1: smoothing does not help such a model. A measured loss lies between the two extremes.

    >>> round(averaging_loss(0.9, 0.8, classes=10, kind="alpha"), 6)
    0.325422
    """
    p, a, classes = as_rates(limits, classes, p=p, a=a)
    right = {"alpha": np.ones_like(a), "beta": a, "gamma": p}[as_kind(kind)]
    mean, _ = agreeing(a, p, classes)
    return as_result(cross_entropy(right, 1 - right, mean, classes))


def averaging_matrix_loss(smoothing: float | Array, T: Array, kind: str, shares: Array) -> float:
    r"""`averaging_loss` for any noise, type alpha or beta, and any smoothing, by one p or by a matrix S of targets.

    A model that has memorised no label puts out the mean target of its class, :math:`V = TS`, and loses
    :math:`-\sum_i \pi_i \sum_c B_{ic} \log V_{ic}`, B being the identity (alpha) or T (beta).

    >>> T = np.array([[0.8, 0.2], [0.2, 0.8]])
    >>> shares = np.array([0.5, 0.5])
    >>> round(averaging_matrix_loss(0.9, T, "alpha", shares), 6)  # V has 0.9 x 0.8 + 0.1 x 0.2 on the diagonal
    0.301105
    """
    tested = np.eye(len(T)) if _clean_or_noisy(kind) == "alpha" else T
    if isinstance(smoothing, float):
        other = (1 - smoothing) / (len(T) - 1)
        output = other + (smoothing - other) * T  # as T S, without the product
    else:
        output = T @ smoothing
    weight = shares[:, None] * tested
    used = weight > 0
    with np.errstate(divide="ignore"):
        return float(-(weight[used] * np.log(output[used])).sum())


def _clean_or_noisy(kind: str) -> str:
    return as_choice("kind", KINDS_BY_TEST_LABELS.get(kind, kind), ("alpha", "beta"))
