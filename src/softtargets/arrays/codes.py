"""Probabilities in sixteen bits: codes of log-odds, which keep what lies near 0 and 1.

A code c stands for log-odds z = sinh((c - 32768) / 6000), and so for the probability 1 / (1 + exp(-z)). That keeps a
probability to 2.4e-5 and, where it is near 0 or 1, its distance from there to a few tenths of a per cent; log-odds
beyond 117 become 117.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

MIDDLE, STEPS = 32768, 6000

Codes = NDArray[np.uint16]
Floats = NDArray[np.float64]


def encoded(log_odds: Floats) -> Codes:
    """Log-odds as codes.

    >>> encoded(np.array([-np.inf, 0.0, 4.0, np.inf]))
    array([    0, 32768, 45336, 65535], dtype=uint16)
    """
    found = np.round(np.arcsinh(log_odds) * STEPS) + MIDDLE
    kept: Codes = np.clip(np.nan_to_num(found, nan=0.0), 0, 2 * MIDDLE - 1).astype(np.uint16)
    return kept


def decoded(codes: Codes) -> Floats:
    """Codes as log-odds.

    >>> decoded(np.array([32768, 45336], dtype=np.uint16)).round(3)
    array([0., 4.])
    """
    return np.sinh((codes.astype(np.float64) - MIDDLE) / STEPS)
