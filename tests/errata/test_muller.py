"""Müller et al. 2019: what is printed does not hold, what ERRATA.md says instead does."""

from __future__ import annotations

import math

import pytest
import torch
from torch.nn import functional as F

from softtargets.calibration import expected_calibration_error
from softtargets.claims import published
from softtargets.distillation import smoothness_index
from softtargets.information import estimate_information
from softtargets.losses import Distillation, LabelSmoothing

DRAWS = 5


def seeded(seed):
    return torch.Generator().manual_seed(seed)


def printed_information(y, means):
    """The estimate as it is printed, a loop for each sum: x is the index of both."""
    examples = len(y)
    variance = sum((a - b) ** 2 for a, b in zip(y, means, strict=True)) / examples
    exponents = [-((a - b) ** 2) / (2 * variance) for a, b in zip(y, means, strict=True)]
    inner = math.log(sum(math.exp(each) for each in exponents) / examples)
    return sum(each - inner for each in exponents) / examples


def plug_in(y, means):
    """The same with the inner sum over all examples."""
    variance = (y - means).square().mean()
    own = -(y - means).square() / (2 * variance)
    mixture = torch.logsumexp(-(y[:, None] - means).square() / (2 * variance), 1) - math.log(len(y))
    return float((own - mixture).mean())


@pytest.mark.parametrize("spread", [0.0, 1.0, 100.0])
def test_m1_the_printed_estimate_is_never_above_zero(spread):
    generator = seeded(0)
    centres = spread * torch.randn(200, 1, generator=generator, dtype=torch.float64)
    draws = centres + torch.randn(200, DRAWS, generator=generator, dtype=torch.float64)
    printed = printed_information(draws[:, 0].tolist(), draws.mean(1).tolist())
    assert -0.5 <= printed <= 0
    found = estimate_information(draws).value
    assert 0 <= found <= math.log(200)
    assert (found > 4) == (spread == 100)


def test_m1_the_sum_of_the_softmax_runs_over_classes():
    logits = torch.randn(10, generator=seeded(0), dtype=torch.float64).exp()
    assert float((logits / logits[:DRAWS].sum()).sum()) > 1.1
    assert float((logits / logits.sum()).sum()) == pytest.approx(1)


@pytest.mark.parametrize(("clusters", "truth"), [(1, 0.0), (2, math.log(2))])
def test_m2_the_plug_in_estimate_finds_a_tenth_of_a_nat_where_nothing_is(clusters, truth):
    among, further, ours = [], [], []
    for seed in range(20):
        generator = seeded(seed)
        centres = (40.0 * (torch.arange(600) % clusters)).double()
        draws = centres[:, None] + torch.randn(600, DRAWS, generator=generator, dtype=torch.float64)
        another = centres + torch.randn(600, generator=generator, dtype=torch.float64)
        among.append(plug_in(draws[:, 0], draws.mean(1)) - truth)
        further.append(plug_in(another, draws.mean(1)) - truth)
        ours.append(estimate_information(draws).unclipped - truth)

    def mean(values):
        return sum(values) / len(values)

    assert mean(among) == pytest.approx(math.log(DRAWS / (DRAWS - 1)) / 2, abs=0.006)
    assert math.log(DRAWS / (DRAWS - 1)) / 2 == pytest.approx(0.112, abs=5e-4)
    expected = math.log((DRAWS + 2) / (DRAWS + 1)) / 2 - 1 / (DRAWS + 2)
    assert expected == pytest.approx(-0.066, abs=5e-4)
    assert mean(further) == pytest.approx(expected, abs=0.006)
    assert abs(mean(ours)) < 0.006


def test_m3_perplexity_rises():
    hard, smoothed = (
        published(f"muller-2019/perplexity/en-de-transformer/{which}").value for which in ("hard", "smoothed")
    )
    assert math.log(smoothed / hard) == pytest.approx(0.052, abs=5e-4)


def test_m4_logits_do_not_say_how_close_the_template_is():
    classes, alpha = 4, 0.1
    gap = math.log(1 + classes * (1 - alpha) / alpha)
    templates = torch.eye(classes, dtype=torch.float64)
    x = (gap * templates[0]).requires_grad_()
    loss = LabelSmoothing(alpha)
    (slope,) = torch.autograd.grad(loss((templates @ x)[None], torch.tensor([0])), x)
    assert slope.abs().max() < 1e-12  # the minimum of the loss
    x = x.detach()
    distances = []
    for scale in (0.1, 1.0, 10.0):
        scaled, shrunk = scale * x, templates / scale
        assert torch.allclose(shrunk @ scaled, templates @ x, rtol=1e-14)
        squared = (scaled - shrunk).square().sum(1)
        assert (squared[1:] - squared[0]).tolist() == pytest.approx([2 * gap] * (classes - 1))
        distances.append(float(squared[0].sqrt()))
    assert max(distances) > 10 * min(distances)


def test_m5_squared_logits_are_a_high_temperature_up_to_a_factor_and_the_mean():
    temperature, classes = 2000.0, 10
    generator = seeded(0)
    teacher = 3 * torch.randn(1, classes, generator=generator, dtype=torch.float64)
    student = (3 * torch.randn(1, classes, generator=generator, dtype=torch.float64) + 1).requires_grad_()
    label = torch.tensor([0])

    def slope(loss):
        return torch.autograd.grad(loss(student, label, teacher), student)[0]

    difference = (student - teacher).detach()
    soft = slope(Distillation(temperature, beta=1.0, student_temperature=True))
    assert torch.allclose(
        soft * classes * temperature**2, difference - difference.mean(), rtol=1e-2, atol=1e-2
    )
    assert torch.allclose(slope(Distillation(beta=1.0, match="logits")), difference, rtol=1e-12)
    assert abs(float(difference.mean())) > 0.1


def test_m6_a_variance_of_003_explodes():
    def first(deviation, seed):
        """Standard deviation of logits and the loss of a new network for random labels."""
        generator = seeded(seed)
        grey = torch.rand(100, 784, generator=generator, dtype=torch.float64)
        hidden = grey * (torch.rand(100, 784, generator=generator) < 0.2)
        for width in (1200, 1200, 10):
            weights = torch.randn(hidden.shape[1], width, generator=generator, dtype=torch.float64)
            hidden = hidden @ (deviation * weights)
            hidden = hidden if width == 10 else hidden.relu()
        labels = torch.randint(10, (100,), generator=generator)
        return float(hidden.square().mean().sqrt()), float(F.cross_entropy(hidden, labels))

    as_variance, as_deviation = (
        [sum(each) / 4 for each in zip(*(first(deviation, seed) for seed in range(4)), strict=True)]
        for deviation in (math.sqrt(0.03), 0.03)
    )
    assert as_variance == pytest.approx([22, 35], rel=0.1)
    assert as_deviation[1] == pytest.approx(2.31, abs=0.01)
    assert math.sqrt(1200 / 2 * 0.03) == pytest.approx(4.2, abs=0.05)
    assert math.sqrt(1200 / 2) * 0.03 == pytest.approx(0.73, abs=0.005)


def test_with_care_the_temperature_divides():
    logits = torch.tensor([[4.0, 0.0]] * 50)
    labels = torch.tensor([0] * 39 + [1] * 11)  # over-confident

    def error(scale):
        return expected_calibration_error((logits * scale).softmax(1), labels)

    assert error(1 / 1.9) < error(1) < error(1.9)


def test_with_care_the_students_temperature_makes_another_loss():
    generator = seeded(0)
    student, teacher = (torch.randn(1, 10, generator=generator) for _ in range(2))
    printed, trained = (
        Distillation(4.0, beta=0.6, student_temperature=which)(student, torch.tensor([0]), teacher)
        for which in (True, False)
    )
    assert abs(float(printed - trained)) > 0.01


def test_with_care_the_smoothness_index_is_more_than_the_mass_on_wrong_classes():
    wrong = torch.tensor([[0.0, 1.0, 0.0, 0.0]])
    assert smoothness_index(wrong, torch.tensor([0])) == pytest.approx(4 / 3)
    smoothed = torch.full((1, 4), 0.05)
    smoothed[0, 0] = 0.85
    assert smoothness_index(smoothed, torch.tensor([0])) == pytest.approx(0.2)  # 0.15 lies on wrong classes


def test_with_care_one_row_of_three_gains():
    gains = [
        published(f"muller-2019/accuracy/{place}/smoothed").value
        - published(f"muller-2019/accuracy/{place}/hard").value
        for place in ("cifar10", "cifar100", "imagenet")
    ]
    assert gains == pytest.approx([-0.001, 0.006, 0.0])
