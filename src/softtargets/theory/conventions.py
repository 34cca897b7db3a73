r"""How the theory's p and the alpha of the losses say the same, and the matrices both stand for.

| name | mass on the label | mass on each other class |
|---|---|---|
| ``p`` (Chen et al.) | p | (1 - p) / (M - 1) |
| ``alpha``, ``spread="others"`` | 1 - alpha | alpha / (M - 1) |
| ``alpha``, ``spread="all"`` | 1 - alpha + alpha / M | alpha / M |

The same table holds for label noise. The clean rate a is what stays right: labels that become one of the M - 1
*others* with probability r have a = 1 - r; labels that are drawn anew among *all* M classes with probability r
have ``a = p_from_alpha(r, M, "all")``, since some fall on the right class again.

Matrices have rows: row i of T is what becomes of the clean label i, row k of S is the target that label k is
trained on. Chen et al. write the transposes of both.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from softtargets.arrays import as_numbers
from softtargets.theory.arguments import (
    SPREADS,
    Array,
    Numbers,
    as_choice,
    as_classes,
    as_rate,
    as_rates,
    as_result,
    as_together,
    one_number_of_classes,
)


def alpha_from_p(p: Any, classes: Any, spread: str = "all") -> Numbers:
    """The alpha with which a loss leaves mass p on the label. With ``spread="all"`` it is above 1 where p < 1 / M.

    >>> round(alpha_from_p(0.91, classes=10), 12), round(alpha_from_p(0.91, classes=10, spread="others"), 12)
    (0.1, 0.09)
    """
    p, classes = as_rates(True, classes, p=p)
    return as_result((1 - p) * _per_moved(classes, spread))


def p_from_alpha(alpha: Any, classes: Any, spread: str = "all") -> Numbers:
    """The mass p that a loss with this alpha leaves on the label.

    >>> round(p_from_alpha(0.1, classes=10), 12), round(p_from_alpha(0.1, classes=10, spread="others"), 12)
    (0.91, 0.9)
    """
    alpha, classes = as_together(alpha=as_numbers("alpha", alpha), classes=as_classes(classes))
    most = _per_moved(classes, spread)
    # A target without any mass on the label: rounding may carry its alpha a little beyond.
    inside = (alpha >= 0) & (alpha <= most * (1 + 1e-12))
    if not inside.all():
        raise ValueError(
            f"alpha must lie between 0 and {most[~inside][0]:g} for spread={spread!r} and "
            f"{classes[~inside][0]:g} classes, not {alpha[~inside][0]:g}"
        )
    return as_result(np.maximum(1 - alpha / most, 0.0))


def uniform_matrix(p: Any, classes: int) -> Array:
    """The M x M matrix with p on the diagonal and (1 - p) / (M - 1) elsewhere: a smoothing, or uniform noise.

    An array of p gives one matrix for each.

    >>> uniform_matrix(0.8, classes=3)
    array([[0.8, 0.1, 0.1],
           [0.1, 0.8, 0.1],
           [0.1, 0.1, 0.8]])
    """
    p = as_rate("p", p, limits=True)[..., None, None]
    count = one_number_of_classes(classes)
    same = np.eye(int(count), dtype=bool)
    return np.asarray(np.where(same, p, (1 - p) / (count - 1)))


def _per_moved(classes: Array, spread: str) -> Array:
    """Alpha for each unit of mass that leaves the label."""
    if as_choice("spread", spread, SPREADS) == "others":
        return np.ones_like(classes)
    return classes / (classes - 1)
