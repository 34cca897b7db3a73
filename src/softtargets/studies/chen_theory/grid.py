"""The study of the theory trains nothing; its grids are those of the figures."""

from __future__ import annotations

import math

import numpy as np

KINDS = ("alpha", "beta", "gamma")

# Figures 1 and 2 are for two classes. The paper does not print the numbers of classes of figures 3 and 4.
PLANE = np.arange(1, 50) / 50
RATES = np.arange(1, 200) / 200
MANY = (2, 3, 10, 100)
LIMIT = (*MANY, math.inf)
JUMPING = (3, 10, 100, 1000)
