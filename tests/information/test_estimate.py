from __future__ import annotations

import dataclasses
import math
import statistics

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from information.exact import by_quadrature, held_out_by_loops, plug_in_by_loops, pooled_variance
from softtargets.information import (
    Information,
    estimate_information,
    example_information,
    mixture_information,
)
from softtargets.information import estimate as module
from softtargets.information.kernels import blocks


def drawn(examples, draws, spread, seed=0):
    """Means of examples, and draws around them with standard deviation 1."""
    generator = np.random.default_rng(seed)
    means = spread * generator.normal(size=examples)
    return means, means[:, None] + generator.normal(size=(examples, draws))


@pytest.mark.parametrize("spread", [0.0, 0.5, 3.0, 30.0, 1000.0])
@pytest.mark.parametrize(("examples", "draws"), [(2, 2), (12, 2), (12, 3), (25, 5)])
def test_against_loops(examples, draws, spread):
    _, samples = drawn(examples, draws, spread)
    found = estimate_information(samples)
    assert found.unclipped == pytest.approx(held_out_by_loops(samples.tolist()), abs=1e-9)
    assert found.variance == pytest.approx(pooled_variance(samples.tolist()), rel=1e-9)
    assert found.bound == math.log(examples)
    assert found.value == min(max(found.unclipped, 0), found.bound) == example_information(samples)


@pytest.mark.parametrize("spread", [0.0, 0.3, 1.0, 3.0, 10.0, 50.0])
@pytest.mark.parametrize(("examples", "draws"), [(100, 5), (400, 5), (400, 20)])
def test_within_three_standard_errors_of_the_truth(examples, draws, spread):
    means, samples = drawn(examples, draws, spread, seed=3)
    found = estimate_information(samples)
    truth = by_quadrature(means, 1.0) if examples <= 100 and spread <= 3 else mixture_information(means, 1.0)
    assert abs(found.unclipped - truth) < 3 * found.standard_error
    assert 0 < found.standard_error < 1 / math.sqrt(examples)


def test_the_estimate_converges():
    errors = []
    for examples in (50, 500, 5000):
        means, samples = drawn(examples, 10, 5.0, seed=1)
        found = estimate_information(samples)
        errors.append(found.standard_error)
        assert abs(found.unclipped - mixture_information(means, 1.0)) < 2.5 * found.standard_error
    assert errors[0] > 2.5 * errors[1] > 6 * errors[2]
    assert abs(found.unclipped - mixture_information(means, 1.0)) < 0.01


@pytest.mark.parametrize(("draws", "within"), [(2, 0.03), (3, 0.025), (5, 0.02)])
@pytest.mark.parametrize("spread", [0.0, 1.0, 10.0])
def test_few_draws_do_not_bias_the_estimate_as_they_do_the_plug_in(draws, within, spread):
    held_out, plug_in = [], []
    for seed in range(40):
        means, samples = drawn(150, draws, spread, seed)
        truth = mixture_information(means, 1.0)
        held_out.append(estimate_information(samples).unclipped - truth)
        if seed < 2:
            plug_in.append(plug_in_by_loops(samples.tolist()) - truth)
    assert abs(statistics.fmean(held_out)) < within
    assert statistics.fmean(plug_in) > 0.6 * 0.5 * math.log(draws / (draws - 1)) > 3 * within


def test_nothing_to_tell_apart_is_nothing_on_average():
    found = [estimate_information(drawn(60, 3, 0.0, seed)[1]) for seed in range(100)]
    raw = [one.unclipped for one in found]
    assert abs(statistics.fmean(raw)) < 0.01
    assert min(raw) < 0 == min(one.value for one in found)


def test_two_collapsed_clusters_leave_one_bit():
    centres = torch.tensor([-20.0, 20.0]).repeat(300)
    noise = torch.randn(600, 5, generator=torch.Generator().manual_seed(0))
    found = estimate_information(centres[:, None] + noise)
    assert abs(found.value - math.log(2)) < 3 * found.standard_error < 0.03
    exact = estimate_information(centres[:, None].expand(600, 5))
    assert exact == Information(
        pytest.approx(math.log(2)), math.log(600), 0, pytest.approx(0), pytest.approx(math.log(2))
    )


def test_separated_examples_have_all_information():
    _, samples = drawn(80, 3, 0.0)
    found = estimate_information(samples + 100 * np.arange(80)[:, None])
    assert found.value == pytest.approx(math.log(80), abs=1e-12)
    assert found.value <= found.bound
    assert found.standard_error == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("draws", [2, 3, 5, 7])
def test_without_noise_the_information_is_the_entropy_of_the_values(draws):
    def repeated(values):
        return torch.tensor(values)[:, None].expand(-1, draws)

    assert example_information(repeated([0.1, 0.7, 1.3, -0.3])) == pytest.approx(math.log(4))
    assert example_information(repeated([0.1] * 9)) == 0
    assert example_information(repeated([0.0] * 9)) == 0
    found = estimate_information(repeated([0.1, 0.1, 0.7, 0.3]))
    assert found.value == pytest.approx(0.5 * math.log(2) + 0.5 * math.log(4))
    assert found.variance == 0
    assert 0 < found.standard_error < 1


@pytest.mark.parametrize(
    "samples",
    [
        [[0.0, 0.0], [0.0, 1e-200], [1.0, 1.0]],
        [[0.0, 0.0], [0.0, 1e-120], [1.0, 1.0]],
        [[1e300, -1e300], [1e300, 1e299]],
        [[5e-324, 0.0], [0.0, 0.0]],
        [[0.0, 0.0], [0.0, 0.0], [0.0, 1e12]],
        [[1e15, 1e15 + 1], [0.0, 0.0], [1.0, 1.0]],
        [[0.0, 1e3]] + [[k * 1e-3, k * 1e-3] for k in range(2000)],
    ],
)
def test_extremes_give_numbers(samples):
    found = estimate_information(torch.tensor(samples, dtype=torch.float64))
    values = [value for name, value in dataclasses.asdict(found).items() if name != "variance"]
    assert all(math.isfinite(value) for value in values)
    assert 0 <= found.value <= found.bound == math.log(len(samples))


def test_one_example_has_no_information():
    found = estimate_information(torch.tensor([[0.0, 1.0, 2.0]]))
    assert found == Information(0, 0, pytest.approx(1), pytest.approx(0), 0)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 1000),
    spread=st.floats(0, 30),
    shift=st.floats(-100, 100),
    scale=st.floats(1e-3, 1e3),
    draws=st.integers(2, 6),
)
def test_moving_scaling_and_order_change_nothing(seed, spread, shift, scale, draws):
    _, samples = drawn(20, draws, spread, seed)
    there = estimate_information(samples)
    assert 0 <= there.value <= there.bound
    generator = np.random.default_rng(seed)
    mixed = generator.permuted(generator.permutation(samples), axis=1)
    for other in (scale * samples + shift, -samples, mixed):
        found = estimate_information(other)
        assert found.unclipped == pytest.approx(there.unclipped, abs=1e-8)
        assert found.standard_error == pytest.approx(there.standard_error, abs=1e-8)


@pytest.mark.parametrize(("spread", "within"), [(0.2, 0.05), (2.0, 0.05), (20.0, 0.15)])
def test_the_standard_error_is_that_of_leaving_examples_out(spread, within):
    """Against the jackknife done in full: every example left out in turn, with log N as it was."""
    _, samples = drawn(120, 4, spread)
    without = [
        estimate_information(np.delete(samples, k, axis=0)).unclipped + math.log(120 / 119)
        for k in range(120)
    ]
    middle = statistics.fmean(without)
    jackknife = math.sqrt(119 / 120 * math.fsum((value - middle) ** 2 for value in without))
    assert estimate_information(samples).standard_error == pytest.approx(jackknife, rel=within)


@pytest.mark.parametrize(("draws", "spread"), [(2, 1.0), (5, 3.0)])
def test_the_standard_error_is_how_much_estimates_scatter(draws, spread):
    found = [estimate_information(drawn(100, draws, spread, seed)[1]) for seed in range(150)]
    scatter = statistics.stdev(one.unclipped for one in found)
    assert statistics.fmean(one.standard_error for one in found) == pytest.approx(scatter, rel=0.2)


@pytest.mark.parametrize("spread", [0.0, 30.0, 3000.0])
def test_neither_blocks_nor_reach_change_the_result(spread, monkeypatch):
    _, samples = drawn(300, 3, spread)
    samples[7, 1] += 60  # an outlier, far from its own mean and maybe among others
    there = estimate_information(samples)
    monkeypatch.setattr(module, "blocks", lambda low, high: blocks(low, high, size=700))
    small = estimate_information(samples)
    assert small.unclipped == pytest.approx(there.unclipped, abs=1e-12)
    assert small.standard_error == pytest.approx(there.standard_error, abs=1e-12)
    monkeypatch.setattr(module, "blocks", lambda low, high: [(slice(0, 900), slice(0, 300))])
    whole = estimate_information(samples)
    assert whole.unclipped == pytest.approx(there.unclipped, abs=2e-12)
    assert whole.standard_error == pytest.approx(there.standard_error, abs=1e-10)


def test_what_is_far_is_not_looked_at(monkeypatch):
    pairs = []

    def counting(low, high):
        for points, bells in blocks(low, high):
            pairs.append((points.stop - points.start) * (bells.stop - bells.start))
            yield points, bells

    monkeypatch.setattr(module, "blocks", counting)
    _, samples = drawn(5000, 2, 1000.0)
    estimate_information(samples)
    assert sum(pairs) < 0.1 * 5000 * 10_000


def test_torch_numpy_and_precision_agree():
    _, samples = drawn(50, 5, 2.0)
    there = estimate_information(samples)
    assert estimate_information(torch.tensor(samples)) == there
    assert estimate_information(torch.tensor(samples, requires_grad=True)) == there
    single = estimate_information(samples.astype(np.float32))
    assert single.value == pytest.approx(there.value, abs=1e-5)
    whole = np.rint(10 * samples)
    assert estimate_information(whole.astype(np.int64)) == estimate_information(whole)


@pytest.mark.parametrize("shape", [(5,), (2, 3, 4), (0, 3), (3, 0), ()])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match=r"samples must be \(examples, draws\), at least one example, not "):
        example_information(torch.zeros(shape))


def test_one_draw_is_refused():
    with pytest.raises(
        ValueError, match="need at least 2 draws of each example to know what is noise, not 1"
    ):
        example_information(torch.zeros(7, 1))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_refused(value):
    samples = torch.zeros(4, 3)
    samples[2, 1] = value
    with pytest.raises(ValueError, match=f"samples of example 2 are not all finite: {value} in draw 1"):
        example_information(samples)


@pytest.mark.parametrize("dtype", [torch.bool, torch.complex64])
def test_other_kinds_of_numbers_are_refused(dtype):
    with pytest.raises(ValueError, match="samples must be real numbers, not torch"):
        example_information(torch.zeros(4, 3, dtype=dtype))
