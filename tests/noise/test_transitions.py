from __future__ import annotations

import numpy as np
import pytest

from softtargets.noise import CORRUPTIONS, TRANSITIONS

RATED = ("symmetric", "pair")


def test_every_corruption_has_its_matrix_unless_it_depends_on_the_example():
    assert set(TRANSITIONS) == set(CORRUPTIONS) - {"instance"}


@pytest.mark.parametrize("name", RATED)
@pytest.mark.parametrize("rate", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("classes", [2, 5])
def test_the_matrix_says_how_often_each_label_becomes_each_other(name, rate, classes):
    clean = np.arange(40_000 * classes, dtype=np.int64) % classes
    noisy = CORRUPTIONS[name](clean, rate, classes, seed=0)
    found = (
        np.array([np.bincount(noisy[clean == label], minlength=classes) for label in range(classes)]) / 40_000
    )
    matrix = TRANSITIONS[name](rate, classes)
    np.testing.assert_allclose(found, matrix, atol=0.012)
    np.testing.assert_allclose(matrix.sum(1), 1, rtol=1e-12)
    assert not found[matrix == 0].any()


@pytest.mark.parametrize("name", RATED)
def test_what_makes_no_sense_is_refused(name):
    transitions = TRANSITIONS[name]
    with pytest.raises(ValueError, match="rate must be between 0 and 1, not 2"):
        transitions(2, 5)
    with pytest.raises(ValueError, match="at least two classes, not 1"):
        transitions(0.5, 1)
