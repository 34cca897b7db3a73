"""What becomes of the theory with more and more classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from softtargets.arrays import as_numbers
from softtargets.theory.agreement import cross_entropy
from softtargets.theory.arguments import Numbers, as_kind, as_rates, as_result


def limiting_loss(p: Any, a: Any, kind: str, limits: bool = False) -> Numbers:
    r"""What `generalization_loss` tends to as M grows, less its part :math:`(1-w_\infty) \log(M-1)`, which grows.

    .. math:: -w_\infty \log p - (1-w_\infty) \log(1-p), \quad w_\infty = a \ (\alpha), \ a^2 \ (\beta), \ ap \ (\gamma)

    What is left out of it is of order log M / M. The alpha and beta types keep a best p, a and a^2, because their
    growing part does not depend on p. That of the gamma type is (1 - ap) log(M-1): it draws p towards 1. For the
    gamma type, Chen et al. 2020 print the loss of two classes instead (section 4.3): ERRATA.md, 7.

    >>> round(limiting_loss(0.9, 0.8, "alpha"), 6)
    0.544805
    """
    p, a = as_rates(limits, p=p, a=a)
    same = {"alpha": a, "beta": a * a, "gamma": a * p}[as_kind(kind)]
    other = {"alpha": 1 - a, "beta": (1 - a) * (1 + a), "gamma": (1 - a) + a * (1 - p)}[kind]
    return as_result(cross_entropy(same, other, p, np.full_like(p, 2.0)))


def scaled_gamma_p(x: Any) -> Numbers:
    r"""The best p of the gamma type in the limit of many classes at fixed x = a log(M-1): max(0, 1 - 1/x).

    The clean rate from which learning pays off falls like 1 / log(M-1). In this scale the loss, less log M, tends
    to :math:`-\log(1-p) - xp`, and the jump closes: p* bends away from 0 at x = 1. For a fixed a, x grows, and p*
    tends to 1.

    >>> scaled_gamma_p([0.5, 1.0, 2.0, 4.0])
    array([0.  , 0.  , 0.5 , 0.75])
    """
    found = as_numbers("x", x)
    if not ((found > 0) & np.isfinite(found)).all():
        wrong = found[~((found > 0) & np.isfinite(found))][0]
        raise ValueError(f"x must be above 0 and finite, not {wrong:g}; it is a log(M-1)")
    return as_result(np.maximum(0.0, 1 - 1 / np.maximum(found, 1.0)))
