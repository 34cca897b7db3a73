from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from softtargets import losses, noise, theory

CLASSES = st.integers(2, 100_000)
SPREADS = st.sampled_from(["all", "others"])


@given(p=st.floats(0, 1), classes=CLASSES, spread=SPREADS)
def test_the_target_of_a_converted_alpha_is_that_of_p(p, classes, spread):
    alpha = theory.alpha_from_p(p, classes, spread)
    if spread == "all":
        label, other = 1 - alpha + alpha / classes, alpha / classes
    else:
        label, other = 1 - alpha, alpha / (classes - 1)
    assert label == pytest.approx(p, abs=1e-12)
    assert other == pytest.approx((1 - p) / (classes - 1), abs=1e-15)
    assert theory.p_from_alpha(alpha, classes, spread) == pytest.approx(p, abs=1e-12)


@given(x=st.floats(0, 1), classes=CLASSES, spread=SPREADS)
def test_losses_convert_in_the_same_way(x, classes, spread):
    assert theory.alpha_from_p(x, classes, spread) == pytest.approx(
        losses.alpha_from_p(x, classes, spread), abs=1e-15
    )
    assert theory.p_from_alpha(x, classes, spread) == pytest.approx(
        losses.p_from_alpha(x, classes, spread), abs=1e-15
    )


def test_arrays_broadcast():
    p, classes = np.array([0.5, 0.9]), np.array([2, 5, 10])
    found = theory.alpha_from_p(p[:, None], classes)
    assert found == pytest.approx(np.array([[1, 0.625, 5 / 9], [0.2, 0.125, 1 / 9]]))
    assert theory.p_from_alpha(found, classes) == pytest.approx(np.broadcast_to(p[:, None], (2, 3)))
    assert type(theory.alpha_from_p(0.5, 3)) is float
    assert type(theory.p_from_alpha(0.5, 3)) is float


def test_a_uniform_matrix_is_that_of_the_noise():
    assert theory.uniform_matrix(0.8, 4) == pytest.approx(noise.symmetric_transitions(0.2, 4))
    assert theory.uniform_matrix([0.8, 0.3], 4).shape == (2, 4, 4)
    assert theory.uniform_matrix([0.8, 0.3], 4)[1] == pytest.approx(theory.uniform_matrix(0.3, 4))


def test_labels_drawn_anew_among_all_classes_are_right_as_often_as_converted():
    generator = np.random.default_rng(0)
    labels = np.zeros(200_000, dtype=int)
    anew = generator.random(len(labels)) < 0.4
    labels[anew] = generator.integers(5, size=anew.sum())
    assert theory.p_from_alpha(0.4, 5, "all") == pytest.approx((labels == 0).mean(), abs=0.005)


def test_what_is_refused():
    with pytest.raises(
        ValueError, match=r"alpha must lie between 0 and 1.25 for spread='all' and 5 classes, not 1.3"
    ):
        theory.p_from_alpha(1.3, 5)
    with pytest.raises(ValueError, match=r"between 0 and 1 for spread='others' and 5 classes, not 1.2"):
        theory.p_from_alpha([0.5, 1.2], 5, "others")
    with pytest.raises(ValueError, match="not nan"):
        theory.p_from_alpha(np.nan, 5)
    with pytest.raises(ValueError, match=r"p must lie between 0 and 1, not -0.1"):
        theory.alpha_from_p(-0.1, 5)
    with pytest.raises(ValueError, match="classes must be whole numbers from 2, not 1"):
        theory.alpha_from_p(0.5, 1)
    with pytest.raises(ValueError, match="spread must be 'all' or 'others', not 'some'"):
        theory.alpha_from_p(0.5, 5, "some")
    with pytest.raises(ValueError, match=r"classes must be one number here, not an array of shape \(2,\)"):
        theory.uniform_matrix(0.5, [3, 4])
