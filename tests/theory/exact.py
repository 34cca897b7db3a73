"""The theory once more, from what it says in words: loops over what may happen, in forty digits where it matters."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np

DIGITS = 44
GOLDEN = (Decimal(5).sqrt() - 1) / 2


def looped_loss(S, T, kind, prior=None):
    """Draw a clean label, the label that is trained on and the test target; add up what each costs."""
    M = len(T)
    total = 0.0
    for clean in range(M):
        for trained in range(M):
            for tested in range(M):
                target = {
                    "alpha": float(tested == clean),
                    "beta": T[clean][tested],
                    "gamma": S[clean][tested],
                }
                chance = (1 / M if prior is None else prior[clean]) * T[clean][trained] * target[kind]
                if chance > 0:
                    total += math.inf if S[trained][tested] == 0 else -chance * math.log(S[trained][tested])
    return total


def decimal_loss(p, a, M, kind):
    """The same for one clean label and uniform noise, with classes that are alike taken together."""
    p, a = Decimal(p), Decimal(a)
    rest = (1 - p) / (M - 1)
    tested = {"alpha": Decimal(1), "beta": a, "gamma": p}[kind]
    seen = {"right": a, "wrong": 1 - a}
    logs = p.ln(), rest.ln()
    total = Decimal(0)
    for trained, chance in seen.items():
        if trained == "right":
            agree = tested
        else:  # one of M - 1 wrong labels, and the test target may be the same one
            agree = (1 - tested) / (M - 1)
        total -= chance * (agree * logs[0] + (1 - agree) * logs[1])
    return total


def decimal_argmin(a, M, kind):
    """The p with the lowest loss: every valley of a grid, then golden sections in forty digits."""
    with localcontext() as context:
        context.prec = DIGITS
        t = np.linspace(-45, 60, 4201)  # logit of the label above the others, so that p near 0 and 1 is seen
        losses = np.array([_float_loss(x, a, M, kind) for x in t])
        valleys = np.flatnonzero((losses[1:-1] <= losses[:-2]) & (losses[1:-1] <= losses[2:])) + 1
        valleys = valleys[losses[valleys] < losses.min() + 1e-2]
        found = [_descend(Decimal(t[v - 1]), Decimal(t[v + 1]), a, M, kind) for v in valleys]
        p = min(found)[1]
        # With two classes both ends of the gamma type are as good.
        return float(max(p, 1 - p) if (kind, M) == ("gamma", 2) else p)


def _descend(low, high, a, M, kind):
    """The lowest loss between two logits, and its p."""

    def loss(x):
        p = 1 / (1 + (M - 1) * (-x).exp())
        return decimal_loss(p, a, M, kind), p

    left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
    at_left, at_right = loss(left), loss(right)
    while high - low > Decimal("1e-17"):
        if at_left[0] < at_right[0]:
            high, right, at_right = right, left, at_left
            left = high - GOLDEN * (high - low)
            at_left = loss(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + GOLDEN * (high - low)
            at_right = loss(right)
    return min(at_left, at_right)


def _float_loss(t, a, M, kind):
    p = 1 / (1 + (M - 1) * math.exp(-t))
    tested = {"alpha": 1.0, "beta": a, "gamma": p}[kind]
    agree = a * tested + (1 - a) * (1 - tested) / (M - 1)
    return math.log(math.exp(t) + M - 1) - agree * t


def random_stochastic(generator, classes, count=None, concentration=1.0):
    """Rows drawn from a Dirichlet distribution."""
    shape = (classes,) if count is None else (count, classes)
    return generator.dirichlet(np.full(classes, concentration), size=shape)
