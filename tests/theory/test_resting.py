from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from softtargets.losses import LABO
from softtargets.theory import labo_pull, labo_rests

READINGS = {
    "literal": {},
    "literal, rho 1": {"rho": 1.0},
    "fixed": {"alpha": 0.1},
    "reversed": {"reading": "reversed"},
    "whole gradient": {"hypergradient": True},
    "whole gradient, reversed": {"hypergradient": True, "reading": "reversed"},
}


def by_the_loss(p, classes, tau, options):
    """The same from the loss itself, by autograd: nothing of the derivation is in here."""
    logits = torch.full((1, classes), math.log((1 - p) / (classes - 1)), dtype=torch.float64)
    logits[0, 0] = math.log(p)
    logits.requires_grad_()
    (gradient,) = torch.autograd.grad(LABO(tau, **options)(logits, torch.tensor([0])), logits)
    return -float(gradient[0, 0])


@pytest.mark.parametrize("name", READINGS)
@pytest.mark.parametrize("classes", [2, 10, 1000])
@pytest.mark.parametrize("tau", [0.8, 1.25, 2.0])
def test_the_pull_is_the_gradient_of_the_loss(name, classes, tau):
    for p in (0.001, 0.3, 0.5, 0.9, 0.999):
        expected = by_the_loss(p, classes, tau, READINGS[name])
        assert labo_pull(p, classes, tau, **READINGS[name]) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", READINGS)
@pytest.mark.parametrize("classes", [2, 10, 100])
def test_at_rest_the_loss_pulls_no_more_and_brings_back_what_leaves(name, classes):
    for rest in labo_rests(classes, **READINGS[name]):
        if rest.p < 1 - 1e-6:
            assert by_the_loss(rest.p, classes, 1.25, READINGS[name]) == pytest.approx(0, abs=1e-9)
            step = 1e-3 * (1 - rest.p)
            assert by_the_loss(rest.p - step, classes, 1.25, READINGS[name]) > 0
            assert by_the_loss(rest.p + step, classes, 1.25, READINGS[name]) < 0


def test_what_errata_says_of_figure_2():
    for tau, place, alpha in ((1.25, 0.404, 0.665), (1.15, 0.451, 0.688)):
        (rest,) = labo_rests(10_000, tau)
        assert (rest.p, rest.alpha) == pytest.approx((place, alpha), abs=6e-4)
    (fixed,) = labo_rests(10_000, 1.25, alpha=0.1)
    assert fixed.p == pytest.approx(0.97, abs=5e-3)
    assert labo_rests(10_000, 1.15, alpha=0.1)[0].p > 0.999
    assert labo_rests(10_000, 1.25, reading="reversed") == ()
    assert labo_rests(10_000, 1.15, reading="reversed") == ()


def test_with_a_fixed_alpha_the_rest_is_where_the_logit_says():
    """For p near 1 the others are (K-1) exp(-u): 1 - p = alpha (1 - P) gives u = tau / (tau - 1) log(1 / alpha)."""
    for tau, alpha in ((1.15, 0.1), (1.25, 0.05)):
        (rest,) = labo_rests(10, tau, alpha=alpha)
        u = tau / (tau - 1) * math.log(1 / alpha)
        assert math.log(1 - rest.p) == pytest.approx(math.log(9) - u, abs=0.01)


def test_edges():
    assert labo_rests(10, tau=1.0, alpha=0.1) == ()  # cross-entropy, times 0.9
    assert labo_rests(10, alpha=0.0) == ()
    (nothing,) = labo_rests(10, rho=0.0)  # alpha is 1: the model is its own target, softened again and again
    assert nothing.p == pytest.approx(0.1, abs=1e-9)
    assert nothing.alpha == 1
    (uniform,) = labo_rests(10, tau=1e9, alpha=0.1)  # remark 3: label smoothing
    assert uniform.p == pytest.approx(0.91, abs=1e-6)


def test_many_at_once():
    found = labo_pull(np.array([[0.1, 0.5], [0.7, 0.9]]), 10)
    assert found.shape == (2, 2)
    assert found[1, 0] == labo_pull(0.7, 10)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"classes": 1}, "classes must be whole numbers from 2, not 1"),
        ({"tau": 0.0}, "tau must be above 0 and finite, not 0"),
        ({"rho": 1.5}, "rho must lie between 0 and 1, not 1.5"),
        ({"alpha": -0.1}, "alpha must lie between 0 and 1, not -0.1"),
        ({"reading": "literally"}, "reading must be 'literal' or 'reversed', not 'literally'"),
    ],
)
def test_what_cannot_be(options, message):
    with pytest.raises(ValueError, match=message.replace(".", r"\.")):
        labo_rests(**{"classes": 10, **options})
