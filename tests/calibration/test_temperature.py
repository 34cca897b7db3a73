from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from softtargets.calibration import fit_temperature
from softtargets.calibration.chunks import Chunks
from softtargets.calibration.temperature import scale, temperature_scaling


def negative_log_likelihood(logits, labels, temperature):
    z = np.asarray(logits, np.float64) / temperature
    return float(np.mean(logsumexp(z, axis=1) - z[np.arange(len(z)), np.asarray(labels)]))


def sampled(scale, count=300, classes=6, seed=0):
    """Labels drawn from softmax(logits), and the logits multiplied by `scale`: the best T is about `scale`."""
    random = np.random.default_rng(seed)
    logits = 2 * random.standard_normal((count, classes))
    gumbel = -np.log(-np.log(random.random((count, classes))))
    return scale * logits, (logits + gumbel).argmax(1)


def best_by_scipy(logits, labels):
    found = minimize_scalar(
        lambda log_t: negative_log_likelihood(logits, labels, math.exp(log_t)),
        bounds=(math.log(0.01), math.log(100)),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return math.exp(found.x)


@pytest.mark.parametrize("scale", [0.1, 0.5, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_temperature_scipy_finds(scale, seed):
    logits, labels = sampled(scale, seed=seed)
    found = fit_temperature(logits, labels)
    assert found == pytest.approx(best_by_scipy(logits, labels), rel=1e-5)
    assert found == pytest.approx(scale, rel=0.2)


def test_a_temperature_known_in_closed_form():
    # softmax([4, 0] / T) = (3/4, 1/4) exactly when 4 / T = log 3
    logits, labels = torch.tensor([[4.0, 0.0]] * 4), torch.tensor([0, 0, 0, 1])
    assert fit_temperature(logits.double(), labels) == pytest.approx(4 / math.log(3), rel=1e-12)
    assert fit_temperature(logits, labels) == pytest.approx(4 / math.log(3), rel=3e-7)


def test_the_slope_vanishes_at_the_temperature_found():
    logits, labels = sampled(2.0)
    t = fit_temperature(logits, labels)
    total = 0.0
    for row, label in zip(logits.tolist(), labels.tolist(), strict=True):
        weights = [math.exp((value - max(row)) / t) for value in row]
        total += sum(w * value for w, value in zip(weights, row, strict=True)) / sum(weights) - row[label]
    assert abs(total / len(labels)) < 1e-9


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.lists(st.floats(-50, 50), min_size=3, max_size=3), min_size=1, max_size=12),
    data=st.data(),
)
def test_it_never_makes_the_likelihood_worse(rows, data):
    labels = data.draw(st.lists(st.integers(0, 2), min_size=len(rows), max_size=len(rows)))
    t = fit_temperature(np.array(rows), np.array(labels))
    assert 0.01 <= t <= 100
    best = negative_log_likelihood(rows, labels, t)
    for other in (0.01, 0.1, 0.5, 1.0, 2.0, 10.0, 100.0):
        assert best <= negative_log_likelihood(rows, labels, other) + 1e-9


@pytest.mark.parametrize("c", [0.25, 2.0, 7.0])
def test_scaling_the_logits_scales_the_temperature(c):
    logits, labels = sampled(1.5)
    assert fit_temperature(c * logits, labels) == pytest.approx(c * fit_temperature(logits, labels), rel=1e-9)


def test_adding_a_constant_to_a_row_changes_nothing():
    logits, labels = sampled(1.5)
    shifted = logits + np.linspace(-100, 100, len(logits))[:, None]
    assert fit_temperature(shifted, labels) == pytest.approx(fit_temperature(logits, labels), rel=1e-9)


def test_huge_logits_do_not_overflow():
    logits, labels = sampled(1.0)
    assert fit_temperature(logits + 1e6, labels) == pytest.approx(fit_temperature(logits, labels), rel=1e-5)


def test_a_separable_set_ends_at_the_lowest_temperature():
    logits = torch.tensor([[3.0, 0.0], [0.0, 2.0], [0.5, 0.0]])
    assert fit_temperature(logits, torch.tensor([0, 1, 0])) == 0.01


def test_a_set_worse_than_chance_ends_at_the_highest_temperature():
    logits = torch.tensor([[3.0, 0.0], [0.0, 2.0], [0.5, 0.0]])
    assert fit_temperature(logits, torch.tensor([1, 0, 1])) == 100


def test_temperatures_beyond_the_ends_are_clipped():
    logits, labels = sampled(1.0)
    assert fit_temperature(logits * 1e4, labels) == 100
    assert fit_temperature(logits * 1e-4, labels) == 0.01


def test_numpy_torch_and_single_precision_agree():
    logits, labels = sampled(2.0)
    expected = fit_temperature(logits, labels)
    assert fit_temperature(torch.tensor(logits), torch.tensor(labels)) == expected
    assert fit_temperature(logits, labels.astype(np.uint8)) == expected
    assert fit_temperature(logits.astype(np.float32), labels) == pytest.approx(expected, rel=1e-5)


def test_the_order_of_examples_does_not_matter():
    logits, labels = sampled(2.0)
    assert fit_temperature(logits[::-1].copy(), labels[::-1].copy()) == pytest.approx(
        fit_temperature(logits, labels), rel=1e-9
    )


@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        (
            torch.zeros(3),
            torch.zeros(3),
            r"logits must be \(examples, classes\), at least one of each, not \(3,\)",
        ),
        (torch.zeros(3, 2), torch.zeros(2), r"one label for each of the 3 examples, not \(2,\)"),
        (torch.zeros(3, 2), torch.zeros(3, 2), r"one label for each of the 3 examples, not \(3, 2\)"),
        (torch.zeros(0, 2), torch.zeros(0), r"at least one of each, not \(0, 2\)"),
        (torch.tensor([[math.nan, 0.0]]), torch.tensor([0]), "not all finite: nan"),
        (torch.tensor([[math.inf, 0.0]]), torch.tensor([0]), "not all finite: inf"),
        (
            torch.zeros(2, 2),
            torch.tensor([0, 2]),
            "must lie between 0 and 1 for 2 classes, but that of example 1 is 2",
        ),
    ],
)
def test_bad_input_is_refused(logits, labels, message):
    with pytest.raises(ValueError, match=message):
        fit_temperature(logits, labels)


def test_a_very_wide_margin_is_separable_all_the_same():
    assert fit_temperature(torch.tensor([[1e5, 0.0]]), torch.tensor([0])) == 0.01
    assert fit_temperature(torch.tensor([[1e5, 0.0]]), torch.tensor([1])) == 100
    assert fit_temperature(torch.ones(3, 4), torch.tensor([0, 1, 2])) == 1.0


def test_the_result_says_what_was_gained_and_by_how_many_examples():
    logits, labels = sampled(3.0)
    fit = temperature_scaling(logits, labels)
    assert fit.nll_before == pytest.approx(negative_log_likelihood(logits, labels, 1.0), rel=1e-12)
    assert fit.nll_after == pytest.approx(negative_log_likelihood(logits, labels, fit.temperature), rel=1e-12)
    assert (fit.examples, fit.ending, fit.note) == (300, "converged", "")
    assert fit.nll_after < fit.nll_before


def test_the_standard_error_from_derivatives_by_hand():
    logits, labels = sampled(2.0)
    fit = temperature_scaling(logits, labels)
    slopes = curvature = 0.0
    for row, label in zip(logits, labels, strict=True):
        p = np.exp(row / fit.temperature - logsumexp(row / fit.temperature))
        slopes += (p @ row - row[label]) ** 2
        curvature += p @ row**2 - (p @ row) ** 2
    assert fit.standard_error == pytest.approx(fit.temperature**2 * math.sqrt(slopes) / curvature, rel=1e-6)
    low, high = fit.interval(0.95)
    assert math.log(high / fit.temperature) == pytest.approx(math.log(fit.temperature / low))
    assert math.log(high / low) == pytest.approx(
        2 * 1.959964 * fit.standard_error / fit.temperature, rel=1e-6
    )


@pytest.mark.parametrize("misfit", [False, True])
def test_intervals_cover_as_often_as_they_say(misfit):
    # With `misfit` no temperature is right: what is to be covered is then the best one, of very many examples.
    random = np.random.default_rng(1)

    def draw(count):
        z = 2 * random.standard_normal((count, 5))
        truth = z * np.array([1, 1, 0.5, 2, 1]) if misfit else z
        return 1.5 * z, (truth + random.gumbel(size=z.shape)).argmax(1)

    best = fit_temperature(*draw(200_000)) if misfit else 1.5
    covered = sum(
        low <= best <= high for low, high in (temperature_scaling(*draw(200)).interval() for _ in range(500))
    )
    assert 0.92 < covered / 500 < 0.98


def test_a_level_that_is_no_probability_is_refused():
    with pytest.raises(ValueError, match=r"must lie between 0 and 1, such as 0.95 for 95 %, not 95"):
        temperature_scaling(*sampled(1.0)).interval(95)


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    count=st.integers(1, 300),
    log_scale=st.floats(-2, 2),
    sharpness=st.floats(0.1, 10),
    single=st.booleans(),
)
def test_few_passes_are_enough_and_never_make_it_worse(seed, count, log_scale, sharpness, single):
    random = np.random.default_rng(seed)
    logits = sharpness * random.standard_normal((count, 5))
    labels = (logits + random.gumbel(size=logits.shape)).argmax(1)
    logits = (10**log_scale * logits).astype(np.float32 if single else np.float64)
    fit = temperature_scaling(logits, labels)
    assert fit.passes <= 12
    assert fit.nll_after <= fit.nll_before
    at = negative_log_likelihood(logits, labels, fit.temperature)
    for other in np.geomspace(0.01, 100, 41):
        assert at <= negative_log_likelihood(logits, labels, other) + (1e-6 if single else 1e-10)


@pytest.mark.parametrize(
    ("labels", "ending", "said"),
    [([0, 1, 0], "lowest", "no confidence is too high"), ([1, 0, 1], "highest", "no better than chance")],
)
def test_the_end_of_the_range_is_said_in_a_sentence(labels, ending, said):
    fit = temperature_scaling(torch.tensor([[3.0, 0.0], [0.0, 2.0], [0.5, 0.0]]), torch.tensor(labels))
    assert fit.ending == ending
    assert said in fit.note
    assert math.isnan(fit.standard_error)
    assert all(math.isnan(end) for end in fit.interval())


def test_equal_logits_are_said_to_be_equal():
    fit = temperature_scaling(torch.full((4, 3), 7.0), torch.tensor([0, 1, 2, 0]))
    assert (fit.temperature, fit.ending) == (1.0, "flat")
    assert fit.nll_after == pytest.approx(math.log(3))
    assert "every temperature has the same effect" in fit.note


def test_one_example_and_one_class():
    assert fit_temperature(torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([2])) == 0.01
    assert fit_temperature(torch.tensor([[1.0, 2.0, 3.0]]), torch.tensor([0])) == 100
    assert fit_temperature(torch.tensor([[1.0], [5.0]]), torch.tensor([0, 0])) == 1.0


@pytest.mark.parametrize(
    ("dtype", "size"), [(torch.float32, 1e4), (torch.float16, 6e4), (torch.bfloat16, 1e4)]
)
def test_huge_logits_in_low_precision(dtype, size):
    # 3 of 4 are right: sigmoid(2 size / T) = 3/4, if T were not clipped.
    logits = (torch.tensor([[1.0, -1.0]] * 4) * size).to(dtype)
    fit = temperature_scaling(logits, torch.tensor([0, 0, 0, 1]))
    assert (fit.temperature, fit.ending) == (100, "highest")
    assert fit.nll_after == pytest.approx(2 * float(logits[0, 0].double()) / 100 / 4, rel=1e-6)


def test_half_precision_is_computed_in_single():
    logits, labels = sampled(2.0)
    half = torch.tensor(logits).half()
    assert fit_temperature(half, labels) == fit_temperature(half.float(), labels)


def test_a_masked_class_changes_nothing_and_infinity_is_advised_against():
    logits, labels = sampled(2.0)
    masked = np.concatenate([logits, np.full((len(logits), 2), -1e4)], axis=1)
    assert fit_temperature(masked, labels) == pytest.approx(fit_temperature(logits, labels), rel=1e-9)
    masked[5, 6] = -math.inf
    with pytest.raises(
        ValueError, match="of example 5 are not all finite: -inf for class 6; give a masked class -1e4"
    ):
        fit_temperature(masked, labels)


def test_logits_without_a_difference_that_is_a_number_are_refused():
    with pytest.raises(ValueError, match="too far apart for their precision"):
        fit_temperature(torch.tensor([[3e38, -3e38]]), torch.tensor([1]))


@settings(max_examples=20, deadline=None)
@given(cuts=st.lists(st.integers(0, 300), max_size=5))
def test_where_a_stream_is_cut_does_not_matter(cuts):
    logits, labels = map(torch.as_tensor, sampled(2.0))
    edges = [0, *sorted(cuts), 300]
    fit = temperature_scaling(lambda: ((logits[a:b], labels[a:b]) for a, b in pairwise(edges)))
    assert fit.temperature == pytest.approx(fit_temperature(logits, labels), rel=1e-10)
    assert fit.examples == 300


def test_ignored_tokens_may_hold_anything():
    logits, labels = sampled(2.0)
    tokens = np.full((30, 12, 6), np.nan)
    tokens[:, :10] = logits.reshape(30, 10, 6)
    classes = np.full((30, 12), -100)
    classes[:, :10] = labels.reshape(30, 10)
    fit = temperature_scaling(tokens, classes, ignore_index=-100)
    assert fit.examples == 300
    assert fit.temperature == pytest.approx(fit_temperature(logits, labels), rel=1e-10)


def test_probabilities_as_a_stream_give_the_temperature_of_their_logits():
    logits, labels = map(torch.as_tensor, sampled(2.0))
    chunks = Chunks(lambda: [(logits.softmax(1), labels)], from_logits=False)
    assert fit_temperature(chunks) == pytest.approx(fit_temperature(logits, labels), rel=1e-9)


def test_scaling_divides_and_half_precision_does_not_overflow():
    fit = temperature_scaling(*sampled(3.0))
    logits = torch.randn(2, 3, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    assert torch.equal(fit(logits), logits / fit.temperature)
    assert scale(torch.tensor([6e4]).half(), 0.01) == pytest.approx(6e6)
    assert scale(np.array([3, 6]), 3).tolist() == [1, 2]


@pytest.mark.parametrize("temperature", [0, -1.0, math.nan, math.inf])
def test_a_temperature_must_be_positive(temperature):
    with pytest.raises(ValueError, match="temperature must be a positive number, not"):
        scale(torch.zeros(2), temperature)


@pytest.mark.cuda
def test_a_device_gives_the_same():
    logits, labels = map(torch.as_tensor, sampled(2.0))
    assert fit_temperature(logits.cuda(), labels.cuda()) == pytest.approx(
        fit_temperature(logits, labels), rel=1e-10
    )
