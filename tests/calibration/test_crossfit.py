from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import log_softmax, softmax

from softtargets.calibration import expected_calibration_error
from softtargets.calibration.bias import bias_corrected_temperature
from softtargets.calibration.chunks import fold_of
from softtargets.calibration.crossfit import cross_fit
from softtargets.calibration.temperature import fit_temperature, temperature_scaling
from softtargets.calibration.vector import vector_scaling


def sampled(count=300, classes=6, seed=0):
    random = np.random.default_rng(seed)
    logits = 2 * random.standard_normal((count, classes))
    return 2 * logits, (logits + random.gumbel(size=logits.shape)).argmax(1)


def test_every_example_is_scaled_by_a_fit_to_the_others():
    logits, labels = sampled()
    found = cross_fit(temperature_scaling, logits, labels, folds=4, seed=3)
    fold = fold_of(0, 300, 4, seed=3).numpy()
    scaled = np.empty_like(logits)
    for k in range(4):
        t = fit_temperature(logits[fold != k], labels[fold != k])
        assert found.fits[k].temperature == pytest.approx(t, rel=1e-10)
        scaled[fold == k] = logits[fold == k] / t
    for z, nll, ece in (
        (logits, found.nll_before, found.ece_before),
        (scaled, found.nll_after, found.ece_after),
    ):
        assert nll == pytest.approx(-log_softmax(z, axis=1)[np.arange(300), labels].mean(), rel=1e-10)
        assert ece == pytest.approx(expected_calibration_error(softmax(z, axis=1), labels), abs=1e-10)
    assert found.examples == 300
    assert "fit to the other 3 of 4 folds" in found.note


@pytest.mark.parametrize("fit", [vector_scaling, bias_corrected_temperature])
def test_scaling_what_is_right_already_gains_only_on_its_own_examples(fit):
    # Labels are drawn from softmax(logits), so that nothing can be gained in truth and fitting only loses.
    others, wanted = sampled(count=5000, seed=99)
    found = np.array([gains(fit, seed, others / 2, wanted) for seed in range(12)])
    own, crossed, truth = found.mean(0)
    assert own > 0 > max(crossed, truth)
    error = (found[:, 1] - found[:, 2]).std(ddof=1) / np.sqrt(12)
    assert abs(crossed - truth) < 4 * error < abs(own - truth)


def gains(fit, seed, others, wanted):
    """By how much the likelihood gets better: on the examples of a fit, by cross-fitting, and in truth for its fits."""
    logits, labels = sampled(count=150, seed=seed)
    own, crossed = fit(logits / 2, labels), cross_fit(fit, logits / 2, labels, folds=4)
    before, *after = (
        -log_softmax(z, axis=1)[np.arange(len(wanted)), wanted].mean()
        for z in (others, *(scaling(others).numpy() for scaling in crossed.fits))
    )
    return own.nll_before - own.nll_after, crossed.nll_before - crossed.nll_after, before - np.mean(after)


def test_streams_and_ignored_rows_do_not_change_the_folds():
    logits, labels = sampled()
    expected = cross_fit(temperature_scaling, logits, labels)
    z = torch.as_tensor(np.insert(logits, 100, np.nan, axis=0))
    y = torch.as_tensor(np.insert(labels, 100, -100))
    found = cross_fit(temperature_scaling, lambda: [(z[:30], y[:30]), (z[30:], y[30:])], ignore_index=-100)
    assert found.nll_after == pytest.approx(expected.nll_after, rel=1e-10)
    assert found.ece_after == pytest.approx(expected.ece_after, abs=1e-10)
    assert cross_fit(temperature_scaling, logits, labels, seed=1).nll_after != expected.nll_after


def test_too_few_of_anything_are_refused():
    with pytest.raises(ValueError, match="folds must be at least 2, not 1"):
        cross_fit(temperature_scaling, *sampled(), folds=1)
    with pytest.raises(ValueError, match="there are no examples to fit to, with 5 folds; pass more examples"):
        cross_fit(temperature_scaling, torch.zeros(1, 3), torch.tensor([0]))
    with pytest.raises(ValueError, match="all 2 labels are -1, which is ignored"):
        cross_fit(temperature_scaling, torch.zeros(2, 3), torch.tensor([-1, -1]), ignore_index=-1)


def test_of_very_few_examples_each_is_counted_once():
    found = cross_fit(temperature_scaling, *sampled(count=8))
    assert found.examples == 8
