r"""Where training with LABO comes to rest: predictions that are their own target.

A model that memorises its labels moves each prediction until its loss pulls no more. Let the label of an example be
certain and all wrong classes alike: p on the label, and each of the K - 1 others as likely as the next. Then one number
describes the prediction, :math:`u = z_y - z_j`, and so does the pull on it. With :math:`P = \mathrm{softmax}(z/\tau)`,
:math:`\alpha = a_0 + a_1 H(p) / \log K` and a detached target, the label is pulled up by what it lacks of that:

.. math:: (1 - p) - \alpha (1 - P_y)

Where alpha is followed too (``hypergradient``) there is :math:`-\partial_\alpha R \, \partial_{z_y} \alpha` besides.
The objective gains :math:`\partial_\alpha R = -H(y, p) + H(P, p) + \tau KL(P \| U) = \tau \log (K P_y)` with alpha, and
since :math:`\log p_y + H(p) = (1 - p) u`,

.. math:: \partial_{z_y} \alpha = -\frac{a_1}{\log K}\, p (1 - p)\, u

Training rests where the pull changes from up to down. Derived by us; Lu et al. 2023 print none of it (ERRATA.md, L5).
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np

from softtargets.arrays import as_numbers
from softtargets.theory.arguments import (
    Array,
    Numbers,
    as_choice,
    as_rate,
    as_result,
    one_number_of_classes,
)

Reading = Literal["literal", "reversed"]

# Logits of the label beyond those of the others among which a rest is looked for: beyond 600 numbers end.
_BEYOND = np.concatenate([np.linspace(-30, 60, 9001), np.linspace(60.1, 600, 5400)]) + 1e-4


class Rest(NamedTuple):
    """A prediction at which training rests: the label's probability, and the mass that is moved away from it there."""

    p: float
    alpha: float


class _Loss(NamedTuple):
    """LABO for one number of classes: alpha is ``offset + slope * H(p) / log K``."""

    classes: float
    tau: float
    offset: float
    slope: float
    hypergradient: bool

    def alpha(self, u: Array) -> Array:
        """The mass that is moved away from the label."""
        log_p, log_rest = self._logs(u)
        entropy = -log_p + np.exp(log_rest) * u
        return np.asarray(self.offset + self.slope * entropy / math.log(self.classes))

    def pull(self, u: Array) -> Array:
        """By how much the logit of the label is pulled up, as a share of 1 - p, which may be too small for a number."""
        log_p, log_rest = self._logs(u)
        log_soft, log_soft_rest = self._logs(u / self.tau)
        with np.errstate(over="ignore"):
            pull = 1 - self.alpha(u) * np.exp(log_soft_rest - log_rest)
        if self.hypergradient:
            gains = self.tau * (math.log(self.classes) + log_soft)
            pull = pull + gains * self.slope / math.log(self.classes) * np.exp(log_p) * u
        return np.asarray(pull)

    def _logs(self, u: Array) -> tuple[Array, Array]:
        """The logarithms of the label's probability, and of that of all others together."""
        others = math.log(self.classes - 1)
        return -np.logaddexp(0, others - u), -np.logaddexp(0, u - others)


def labo_rests(
    classes: int,
    tau: float = 1.25,
    rho: float = 0.5,
    alpha: float | None = None,
    reading: Reading = "literal",
    hypergradient: bool = False,
) -> tuple[Rest, ...]:
    """Where training with LABO comes to rest, by increasing probability of the label; empty if it is pulled on
    towards 1.

    The options are those of `softtargets.losses.LABO`. With the literal alpha of equation 16 the vocabulary of a
    translation model makes that 0.40, which figure 2 of the paper shows; with a fixed alpha, or the reversed reading,
    predictions become as certain as those of hard targets.

    >>> [round(rest.p, 3) for rest in labo_rests(10_000)]
    [0.404]
    >>> [round(rest.p, 2) for rest in labo_rests(10_000, alpha=0.1)]
    [0.97]
    >>> labo_rests(10_000, reading="reversed")
    ()
    """
    loss = _loss(classes, tau, rho, alpha, reading, hypergradient)
    pull = loss.pull(_BEYOND)
    turns = np.flatnonzero((pull[:-1] > 0) & (pull[1:] <= 0))
    found = [_between(loss, _BEYOND[turn], _BEYOND[turn + 1]) for turn in turns]
    return tuple(Rest(float(np.exp(loss._logs(u)[0])), float(loss.alpha(u))) for u in found)


def labo_pull(
    p: Any,
    classes: int,
    tau: float = 1.25,
    rho: float = 0.5,
    alpha: float | None = None,
    reading: Reading = "literal",
    hypergradient: bool = False,
) -> Numbers:
    """By how much LABO pulls the logit of the label up where it has probability p, and all others are alike.

    This is minus the gradient of the loss of one example with respect to that logit: above 0 the label becomes more
    likely.

    >>> labo_pull([0.2, 0.404, 0.8], 10_000).round(3)
    array([ 0.256, -0.   , -0.39 ])
    """
    loss = _loss(classes, tau, rho, alpha, reading, hypergradient)
    given = as_rate("p", p, limits=False)
    u = np.log(given) - np.log1p(-given) + math.log(loss.classes - 1)
    return as_result((1 - given) * loss.pull(u))


def _between(loss: _Loss, low: float, high: float) -> Array:
    """Where the pull between two places vanishes: by halving."""
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if loss.pull(np.asarray(middle)) > 0 else (low, middle)
    return np.asarray(low)


def _loss(
    classes: int, tau: float, rho: float, alpha: float | None, reading: str, hypergradient: bool
) -> _Loss:
    count = float(one_number_of_classes(classes))
    tau = float(as_numbers("tau", tau))
    if not (tau > 0 and math.isfinite(tau)):
        raise ValueError(f"tau must be above 0 and finite, not {tau:g}")
    rho = float(as_rate("rho", rho, limits=True))
    literal = as_choice("reading", reading, ("literal", "reversed")) == "literal"
    if alpha is not None:
        offset, slope = float(as_rate("alpha", alpha, limits=True)), 0.0
    else:
        offset, slope = (1.0, -rho) if literal else (0.0, rho)
    return _Loss(count, tau, offset, slope, bool(hypergradient))
