"""The estimate against the other examples: by loops, in its limits, and beside the one against all."""

from __future__ import annotations

import math

import pytest
import torch

from softtargets.information import estimate_information, evolution, information_against_others


def drawn(examples, draws, spread, seed=0):
    generator = torch.Generator().manual_seed(seed)
    means = spread * torch.randn(examples, 1, generator=generator, dtype=torch.float64)
    return means + torch.randn(examples, draws, generator=generator, dtype=torch.float64)


def by_loops(samples):
    """log N(distance) - log of the mean density of the others, with the corrections for estimated means."""
    examples, draws = samples.shape
    means = samples.mean(1)
    s2 = float((samples - means[:, None]).square().sum()) / (examples * (draws - 1))
    total = 0.0
    for x in range(examples):
        for y in samples[x].tolist():
            left_out = (draws * float(means[x]) - y) / (draws - 1)
            distance = (y - left_out) / math.sqrt(draws / (draws - 1))
            own = -(distance**2) / (2 * s2) - 0.5 * math.log(2 * math.pi * s2)
            v = s2 * (1 - 1 / draws)
            others = [
                math.exp(-((y - float(means[o])) ** 2) / (2 * v)) / math.sqrt(2 * math.pi * v)
                for o in range(examples)
                if o != x
            ]
            total += own - math.log(sum(others) / len(others))
    return total / (examples * draws)


@pytest.mark.parametrize(("examples", "draws", "spread"), [(2, 2, 0.5), (7, 3, 1.0), (20, 5, 2.0)])
def test_against_loops(examples, draws, spread):
    samples = drawn(examples, draws, spread)
    assert information_against_others(samples).unclipped == pytest.approx(by_loops(samples), rel=1e-9)


def test_it_is_at_least_the_information_and_equal_in_a_crowd():
    crowd, few = drawn(800, 5, 0.3), drawn(20, 5, 50.0)
    for samples in (crowd, few):
        assert information_against_others(samples).unclipped > estimate_information(samples).unclipped
    near = information_against_others(crowd).unclipped - estimate_information(crowd).unclipped
    assert near < 0.01
    assert information_against_others(few).value > math.log(20), "it has no upper bound"


def test_two_collapsed_clusters_leave_about_one_bit():
    """Of N examples the other N/2 - 1 of a cluster: log (N - 1) / (N/2 - 1)."""
    samples = torch.tensor([[0.0, 0.0]] * 50 + [[9.0, 9.0]] * 50)
    assert information_against_others(samples).value == pytest.approx(math.log(99 / 49))


def test_far_examples_do_not_leave_the_range_of_numbers():
    samples = 1e3 * torch.arange(6.0)[:, None] + drawn(6, 4, 0.0)
    assert math.isfinite(information_against_others(samples).value)
    still = torch.arange(3.0)[:, None].expand(3, 2)
    assert information_against_others(still).value == math.inf


def test_nothing_to_tell_apart_is_nothing_on_average():
    found = [information_against_others(drawn(200, 5, 0.0, seed)).unclipped for seed in range(40)]
    assert abs(sum(found) / len(found)) < 0.005


@pytest.mark.parametrize("spread", [0.5, 2.0])
def test_the_standard_error_is_how_much_estimates_scatter(spread):
    found = [information_against_others(drawn(150, 5, spread, seed)) for seed in range(80)]
    scatter = float(torch.tensor([one.unclipped for one in found]).std())
    said = sum(one.standard_error for one in found) / len(found)
    assert said == pytest.approx(scatter, rel=0.3)


def test_blocks_change_nothing(monkeypatch):
    samples = drawn(40, 3, 1.0)
    whole = information_against_others(samples)
    monkeypatch.setattr("softtargets.information.others._AT_A_TIME", 200)
    parts = information_against_others(samples)
    assert parts.unclipped == pytest.approx(whole.unclipped, rel=1e-12)
    assert parts.standard_error == pytest.approx(whole.standard_error, rel=1e-9)


def test_one_example_is_refused():
    with pytest.raises(ValueError, match="at least 2"):
        information_against_others([[1.0, 2.0]])


def test_its_curve_has_names_of_its_own():
    names = {"nats": 2.0, "standard_error": 0.1, "bound": 3.0}
    rows = [{"step": 4} | {f"information.train_0_5_others_{name}": value for name, value in names.items()}]
    assert evolution(rows, inner="others").nats == (2.0,)
    with pytest.raises(ValueError, match=r"information\.train_0_5_others_nats"):
        evolution(rows)
