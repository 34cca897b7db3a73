"""Predictions and labels for the tests of this room."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st


def predictions(examples=200, classes=6, seed=0, right=0.6):
    """Labels, and classes predicted for them, `right` of which are copied and the others drawn."""
    random = np.random.default_rng(seed)
    labels = random.integers(classes, size=examples)
    drawn = random.integers(classes, size=examples)
    return np.where(random.random(examples) < right, labels, drawn), labels


def several(columns, classes=5, most=25):
    """As many lists of classes as `columns`, of equal length, as arrays."""
    rows = st.lists(st.tuples(*[st.integers(0, classes - 1)] * columns), min_size=1, max_size=most)
    return rows.map(lambda found: [np.array(column) for column in zip(*found, strict=True)])
