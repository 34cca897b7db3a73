from __future__ import annotations

import math

import pytest
import torch

from inspection.made import net
from softtargets.calibration.chunks import fold_of
from softtargets.calibration.sweep import temperature_sweep
from softtargets.calibration.temperature import temperature_scaling
from softtargets.inspection.shared.two_passes import TEMPERATURES, TemperatureGrid, lowest


def filled(logits, labels, folds=3, bins=15):
    grid = TemperatureGrid(folds, bins)
    grid.add(logits, labels, fold_of(0, len(labels), folds))
    return grid


def test_the_grid_has_the_temperature_that_changes_nothing():
    assert 1.0 in TEMPERATURES


def test_squares_of_exponentials_give_what_a_sweep_gives():
    logits, labels = net(500, 7, sharpness=1.4)
    nll, curves = zip(*filled(logits.double(), labels).points(), strict=True)
    sweep = temperature_sweep(logits.double(), labels, TEMPERATURES)
    assert nll == pytest.approx(sweep.nll, rel=1e-9)
    assert [one.expected_calibration_error for one in curves] == pytest.approx(sweep.ece, abs=1e-9)


def test_single_precision_loses_little():
    logits, labels = net(500, 7, sharpness=3.0)
    found, exact = ([nll for nll, _ in filled(z, labels).points()] for z in (logits, logits.double()))
    assert found == pytest.approx(exact, rel=1e-5)


def test_the_best_temperature_is_that_of_an_exact_fit():
    logits, labels = net(2000, 10, sharpness=1.7)
    assert filled(logits, labels).best() == pytest.approx(
        temperature_scaling(logits, labels).temperature, rel=1e-4
    )


def test_each_fold_gets_the_temperature_of_the_others():
    logits, labels = net(600, 5, sharpness=0.7)
    fold = fold_of(0, 600, 3)
    found = filled(logits, labels).held_out()
    expected = [temperature_scaling(logits[fold != f], labels[fold != f]).temperature for f in range(3)]
    assert found == pytest.approx(expected, rel=1e-4)


def test_rows_may_come_in_pieces():
    logits, labels = net(100, 4)
    fold = fold_of(0, 100, 3)
    whole, pieces = filled(logits, labels), TemperatureGrid(3, 15)
    for some in (slice(0, 37), slice(37, 100)):
        pieces.add(logits[some], labels[some], fold[some])
    assert torch.allclose(whole.nll, pieces.nll)
    assert torch.equal(whole.bins[0], pieces.bins[0])


@pytest.mark.parametrize("centre", [0.01, 100.0])
def test_an_optimum_outside_the_grid_is_not_made_up(centre):
    x = torch.tensor(TEMPERATURES, dtype=torch.float64).log() - math.log(centre)
    assert lowest(x.square()) is None


def test_a_flat_likelihood_has_no_optimum():
    assert lowest(torch.full((len(TEMPERATURES),), 0.7, dtype=torch.float64)) is None
