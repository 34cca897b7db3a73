from __future__ import annotations

import math
import statistics

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from softtargets.errors import FineAndCoarse, Spread, fine_and_coarse_errors, over_runs

from .making import predictions, several

# As in CIFAR-100, superclasses do not lie side by side.
KIND = np.array([0, 1, 0, 2, 1, 0])


def by_loops(predicted, labels, kind):
    fine = coarse = 0
    for said, true in zip(predicted, labels, strict=True):
        if said != true and kind[said] == kind[true]:
            fine += 1
        if kind[said] != kind[true]:
            coarse += 1
    return FineAndCoarse(len(labels), fine, coarse)


def test_near_and_far_misses_by_hand():
    labels = torch.tensor([0, 0, 0, 1, 3])
    found = fine_and_coarse_errors(torch.tensor([0, 2, 1, 4, 5]), labels, KIND)
    assert found == FineAndCoarse(examples=5, fine=2, coarse=2)
    assert found.errors == 4
    assert (found.error_rate, found.fine_rate, found.coarse_rate) == (0.8, 0.4, 0.4)
    assert found.fine_share == 0.5


@pytest.mark.parametrize("seed", range(4))
def test_the_definition_with_loops(seed):
    predicted, labels = predictions(seed=seed)
    assert fine_and_coarse_errors(predicted, labels, KIND) == by_loops(predicted, labels, KIND)


def test_without_errors_there_is_no_share():
    labels = torch.tensor([0, 1])
    found = fine_and_coarse_errors(labels, labels, KIND)
    assert (found.errors, found.error_rate) == (0, 0)
    assert math.isnan(found.fine_share)


@settings(max_examples=60, deadline=None)
@given(several(2, classes=6), st.randoms(use_true_random=False))
def test_every_error_is_fine_or_coarse_in_any_order(columns, random):
    predicted, labels = columns
    found = fine_and_coarse_errors(predicted, labels, KIND)
    assert found.errors == int((predicted != labels).sum())
    assert found.fine_rate + found.coarse_rate == pytest.approx(found.error_rate)
    order = random.sample(range(len(labels)), len(labels))
    assert fine_and_coarse_errors(predicted[order], labels[order], KIND) == found
    assert fine_and_coarse_errors(np.eye(6)[predicted], labels, KIND) == found
    assert fine_and_coarse_errors(predicted, labels, np.zeros(6, int)).coarse == 0
    assert fine_and_coarse_errors(predicted, labels, np.arange(6)).fine == 0


def test_several_runs_have_mean_and_deviation():
    labels = predictions()[1]
    predicted = [np.where(np.arange(200) % (3 + run) == 0, 5 - labels, labels) for run in range(4)]
    runs = [by_loops(one, labels, KIND) for one in predicted]
    found = over_runs(iter(predicted), labels, KIND)
    assert found.runs == tuple(runs)
    assert len({run.errors for run in runs}) > 1
    for name in ("errors", "fine", "coarse", "error_rate", "fine_rate", "coarse_rate", "fine_share"):
        values = [float(getattr(run, name)) for run in runs]
        spread = getattr(found, name)
        assert spread.mean == pytest.approx(statistics.fmean(values), rel=1e-12)
        assert spread.deviation == pytest.approx(statistics.stdev(values), rel=1e-12)


def test_the_numbers_of_the_authors_response():
    """10,000 examples with 1209 fine and 1577 coarse errors are 2786 errors, 43.4 % of them fine."""
    kind = np.repeat(np.arange(20), 5)
    labels = np.tile(np.arange(100), 100)
    predicted = labels.copy()
    predicted[:1209] = labels[:1209] // 5 * 5 + (labels[:1209] + 1) % 5
    predicted[1209:2786] = (labels[1209:2786] + 5) % 100
    found = over_runs([predicted], labels, kind)
    assert [found.errors.mean, found.fine.mean, found.coarse.mean] == [2786, 1209, 1577]
    assert round(100 * found.fine_share.mean, 1) == 43.4
    assert math.isnan(found.errors.deviation)


def test_a_run_without_errors_leaves_no_share():
    labels = torch.tensor([0, 1])
    found = over_runs([labels, torch.tensor([2, 1])], labels, KIND)
    assert found.errors == Spread(0.5, pytest.approx(math.sqrt(0.5)))
    assert math.isnan(found.fine_share.mean)
    assert math.isnan(found.fine_share.deviation)


@pytest.mark.parametrize(
    ("predicted", "labels", "kind", "message"),
    [
        ([0, 6], [0, 1], KIND, "predicted must lie between 0 and 5"),
        ([0, 1], [0, 6], KIND, "labels must lie between 0 and 5"),
        ([0, 1], [0], KIND, "one label for each of the 2 examples"),
        ([0, 1], [0, 1], KIND[:0], r"superclass must be \(classes,\)"),
        ([0, 1], [0, 1], -KIND, "superclass must be whole numbers from 0, but that of class 1 is -1"),
        ([[0.0, math.nan]], [0], KIND[:2], "predicted of example 0 are not all finite"),
        ([[0.0, 1.0]], [0], KIND, "a column for each of the 6 classes, not 2"),
    ],
)
def test_bad_input_is_refused(predicted, labels, kind, message):
    with pytest.raises(ValueError, match=message):
        fine_and_coarse_errors(np.array(predicted), np.array(labels), kind)
    with pytest.raises(ValueError, match=message):
        over_runs([np.array(predicted)], np.array(labels), kind)


def test_there_must_be_a_run():
    with pytest.raises(ValueError, match="at least one run"):
        over_runs([], np.array([0]), KIND)
