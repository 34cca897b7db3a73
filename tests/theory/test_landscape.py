from __future__ import annotations

import math

import numpy as np
import pytest

from softtargets.theory import gamma_transition, generalization_loss, landscape, optimal_p, optimum_curve

KINDS = ("alpha", "beta", "gamma")


@pytest.mark.parametrize("kind", KINDS)
def test_every_place_is_the_loss_there(kind):
    found = landscape(10, kind, a=[0.2, 0.5, 0.8, 0.9], p=[0.1, 0.6, 0.95])
    assert found.loss.shape == (3, 4)
    for i, j in np.ndindex(3, 4):
        assert found.loss[i, j] == generalization_loss(float(found.p[i]), float(found.a[j]), 10, kind)
    assert found.best_p == pytest.approx(optimal_p(found.a, 10, kind))
    assert (found.best_loss <= found.loss.min(0)).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("classes", [2, 10])
def test_the_best_of_a_fine_grid_is_next_to_the_best(classes, kind):
    found = landscape(classes, kind)
    assert found.a == pytest.approx(np.arange(1, 100) / 100)
    assert (found.a == found.p).all()
    inside = np.abs(found.a - (found.jump or -1)) > 0.01
    assert np.abs(found.best_p_on_grid - found.best_p)[inside].max() <= 0.01
    assert found.jump == (gamma_transition(10).a if (kind, classes) == ("gamma", 10) else None)


def test_of_two_that_are_as_good_the_grid_gives_the_larger():
    found = landscape(2, "gamma", a=[0.9], p=[0.25, 0.5, 0.75])
    assert found.loss[0, 0] == found.loss[2, 0]
    assert found.best_p_on_grid.tolist() == [0.75]


def test_grids_with_ends():
    found = landscape(10, "alpha", a=[0.5, 1.0], p=[0.5, 1.0], limits=True)
    assert found.loss[1].tolist() == [math.inf, 0]
    assert found.best_p.tolist() == [0.5, 1]
    assert found.best_loss[1] == 0
    with pytest.raises(ValueError, match="p must lie strictly between 0 and 1, but at index"):
        landscape(10, "alpha", a=[0.5], p=[0.5, 1.0])


@pytest.mark.parametrize("classes", [2, 3, 10, 1000, math.inf])
@pytest.mark.parametrize("kind", KINDS)
def test_a_curve_is_the_best_p(classes, kind):
    found = optimum_curve(classes, kind)
    assert found.p == pytest.approx(optimal_p(found.a, classes, kind))
    assert (np.diff(found.a) > 0).all()
    if kind == "gamma" and 2 < classes < math.inf:
        place = int(np.searchsorted(found.a, found.jump))
        assert found.a[place] == found.jump == gamma_transition(classes).a
        assert found.p[place] == 1 / classes
        assert found.p[place + 1] == pytest.approx(gamma_transition(classes).high, abs=1e-12)
    else:
        assert found.jump is None
        assert len(found.a) == 199


def test_what_is_refused():
    for wrong in ([0.5, 0.2], [[0.5]], [], 0.5):
        with pytest.raises(ValueError, match="a must be a list of increasing numbers, at least one, not"):
            landscape(10, "alpha", a=wrong)
    with pytest.raises(ValueError, match=r"classes must be one number here, not an array of shape \(2,\)"):
        landscape([2, 3], "alpha")
    with pytest.raises(ValueError, match="classes must be one number here"):
        optimum_curve([2, 3], "alpha")
    with pytest.raises(ValueError, match="kind must be"):
        optimum_curve(2, "delta")
