from __future__ import annotations

import re

import numpy as np
import pytest
import torch

from softtargets import calibration
from softtargets.calibration import (
    CalibrationMetric,
    measure_calibration,
    temperature_scaling,
    vector_scaling,
)

CALLS = {
    "measure_calibration": lambda z, y: measure_calibration(z, y, from_logits=True, level=None),
    "temperature_scaling": temperature_scaling,
    "vector_scaling": vector_scaling,
    "CalibrationMetric": lambda z, y: CalibrationMetric(4, from_logits=True).update(z, y),
}


def classes_second(length):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(7, 4, length, generator=generator)
    return logits, torch.randint(4, (7, length), generator=generator)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", [lambda x: x, lambda x: x.numpy()], ids=["torch", "numpy"])
def test_classes_that_are_second_are_refused_by_name(name, kind):
    logits, labels = classes_second(3)
    message = "have the classes in their second dimension; they must be in the last: pass logits.movedim"
    with pytest.raises(ValueError, match=re.escape(message)):
        CALLS[name](kind(logits), kind(labels))
    CALLS[name](logits.movedim(1, -1), labels)


@pytest.mark.parametrize("name", CALLS)
def test_where_only_the_shape_could_tell_and_does_not_nothing_is_measured(name):
    logits, labels = classes_second(4)
    with pytest.raises(
        ValueError,
        match=r"may be in the last dimension, or in the second as for losses",
    ):
        CALLS[name](logits, labels)
    with pytest.raises(
        ValueError, match=r"Pass rows to say which: logits.reshape\(-1, 4\), after logits.movedim\(1, -1\)"
    ):
        CALLS[name](logits.movedim(1, -1), labels)
    CALLS[name](logits.movedim(1, -1).reshape(-1, 4), labels.reshape(-1))


def test_probabilities_tell_by_their_sums():
    logits, labels = classes_second(4)
    options = {"from_logits": False, "level": None}
    p = logits.softmax(1)
    with pytest.raises(ValueError, match="must add up to 1"):
        measure_calibration(p, labels, **options)
    found = measure_calibration(p.movedim(1, -1), labels, **options)
    rows = p.movedim(1, -1).reshape(-1, 4)
    assert found.scalars() == measure_calibration(rows, labels.reshape(-1), **options).scalars()
    with pytest.raises(
        ValueError,
        match=r"probabilities \(7, 4, 3\) with labels \(7, 3\) have the classes in their second dimension",
    ):
        measure_calibration(*(each.numpy() for each in classes_second(3)), **options)


def test_one_class_is_the_same_either_way():
    found = measure_calibration(
        torch.zeros(3, 1, 1), np.zeros((3, 1), dtype=int), from_logits=True, level=None
    )
    assert found.examples == 3


OF_PROBABILITIES = (
    calibration.adaptive_calibration_error,
    calibration.brier_decomposition,
    calibration.classwise_calibration_error,
    calibration.debiased_calibration_error,
    calibration.smooth_calibration_error,
    lambda p, y: calibration.reliability(p, y).confidence.nan_to_num(0).tolist(),
)
OF_LOGITS = (
    lambda z, y: measure_calibration(z, y, from_logits=True, resamples=20).scalars(),
    lambda z, y: temperature_scaling(z, y).temperature,
    lambda z, y: vector_scaling(z, y).scale.tolist(),
    lambda z, y: calibration.bias_corrected_temperature(z, y).temperature,
    lambda z, y: calibration.temperature_sweep(z, y).nll,
    lambda z, y: calibration.cross_fit(temperature_scaling, z, y).nll_after,
    lambda z, y: str(calibration.temperature_by_ece(z, y)),
)


@pytest.mark.parametrize("kind", [lambda x: x, lambda x: x.numpy()], ids=["torch", "numpy"])
@pytest.mark.parametrize("instrument", OF_PROBABILITIES + OF_LOGITS)
def test_the_default_device_does_not_matter_to_data_elsewhere(instrument, kind):
    generator = torch.Generator().manual_seed(0)
    scores, labels = torch.randn(300, 4, generator=generator), torch.randint(4, (300,), generator=generator)
    data = kind(scores.softmax(1) if instrument in OF_PROBABILITIES else scores), kind(labels)
    expected = instrument(*data)
    torch.set_default_device("meta")
    try:
        found = instrument(*data)
    finally:
        torch.set_default_device(None)
    assert found == expected


def test_scores_of_smaller_images_are_told_to_be_enlarged():
    with pytest.raises(ValueError, match="the logits have 4 x 4 places and the labels 16 x 16"):
        measure_calibration(torch.zeros(5, 3, 4, 4), torch.zeros(5, 16, 16).long(), from_logits=True)
