"""Sixteen bits for a probability: what they keep."""

from __future__ import annotations

import math

import numpy as np

from softtargets.arrays import decoded, encoded
from softtargets.runs import compact as runs_compact


def test_a_code_is_the_rounded_inverse_hyperbolic_sine():
    odds = np.linspace(-40, 40, 2001)
    expected = [min(65535, max(0, round(math.asinh(z) * 6000) + 32768)) for z in odds]
    assert encoded(odds).tolist() == expected


def test_probabilities_and_their_distance_from_the_ends_survive():
    p = np.concatenate([np.logspace(-12, -0.31, 500), 1 - np.logspace(-12, -0.31, 500)])
    z = np.log(p) - np.log1p(-p)
    back = 1 / (1 + np.exp(-decoded(encoded(z))))
    assert np.abs(back - p).max() < 2.5e-5
    small = p < 0.01
    assert (np.abs(back[small] / p[small] - 1) < 0.005).all()


def test_what_has_no_size_becomes_an_end():
    assert encoded(np.array([-np.inf, np.inf, np.nan])).tolist() == [0, 65535, 0]


def test_runs_keep_their_names():
    assert runs_compact.encoded is encoded
    assert runs_compact.decoded is decoded
