"""The other extreme: a net that has learned no label by heart, only what labels are on the average."""

from __future__ import annotations

from typing import Any

import numpy as np

from softtargets.theory.agreement import agreeing, cross_entropy
from softtargets.theory.arguments import KINDS, Numbers, as_choice, as_rates, as_result


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
    right = {"alpha": np.ones_like(a), "beta": a, "gamma": p}[as_choice("kind", kind, KINDS)]
    mean, _ = agreeing(a, p, classes)
    return as_result(cross_entropy(right, 1 - right, mean, classes))
