"""Wagner et al. 2023: what is printed, or done in the code, does not hold; what ERRATA.md says instead does."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from itertools import pairwise

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from softtargets.calibration import expected_calibration_error
from softtargets.claims import published
from softtargets.geometry import template_plane
from softtargets.losses import Distillation
from softtargets.models import AlexNet
from softtargets.models.alexnet import local_response_norm

CLASSIFIERS = (
    "mnist-fcn",
    "emnist-fcn",
    "fmnist-fcn",
    "cifar10-alexnet",
    "cifar10-resnet56",
    "cifar100-resnet56",
    "cub200-resnet34",
    "tiny-imagenet-resnet50",
)
OWN = (*CLASSIFIERS, "multi30k-transformer")
SMOOTHED = ("smoothed-0.05", "smoothed", "smoothed-0.15", "smoothed-0.3")


def ece(network, condition):
    return published(f"wagner-2023/ece/{network}/{condition}").value


def test_r1_iterations_are_those_of_40_000_images():
    a_few, all_of_them = math.ceil(40_000 / 128), math.ceil(50_000 / 128)
    assert (a_few, all_of_them) == (313, 391)
    assert [epochs * a_few for epochs in (205, 1246)] == [64_165, 389_998]
    assert [epochs * all_of_them for epochs in (205, 1246)] == [80_155, 487_186]
    assert all_of_them / a_few == pytest.approx(1.25, abs=0.001)


def test_r2_the_printed_bins_lose_low_confidences():
    def printed(confidences, right, bins=15):
        total = 0.0
        for b in range(1, bins + 1):
            here = [i for i, c in enumerate(confidences) if b / bins <= c < (b + 1) / bins]
            if here:
                gap = sum(confidences[i] - right[i] for i in here) / len(here)
                total += len(here) / len(confidences) * abs(gap)
        return total

    scores = torch.full((100, 100), 0.95 / 99, dtype=torch.float64)
    scores[:, 0] = 0.05
    assert printed([0.05] * 100, [0] * 100) == 0
    assert expected_calibration_error(scores, torch.ones(100, dtype=torch.int64)) == pytest.approx(0.05)
    ordinary = [0.1, 0.5, 0.72, 0.9]  # all is well above 1/15
    pairs = torch.tensor([[c, *[(1 - c) / 99] * 99] for c in ordinary], dtype=torch.float64)
    labels = torch.tensor([0, 1, 0, 0])
    right = [1, 0, 1, 1]
    assert printed(ordinary, right) == pytest.approx(expected_calibration_error(pairs, labels))


def test_r3_the_hard_part_has_no_temperature():
    z, tau, beta = torch.tensor([[4.0, 0.0, 0.0]], dtype=torch.float64), 4.0, 0.5
    label = torch.tensor([0])
    warm = (z / tau).softmax(1)
    soft = -(warm * warm.log()).sum()
    printed = (1 - beta) * F.cross_entropy(z / tau, label) + beta * soft
    right = (1 - beta) * F.cross_entropy(z, label) + beta * soft
    assert (float(printed), float(right)) == pytest.approx((0.763, 0.506), abs=5e-4)
    ours = Distillation(tau, beta, student_temperature=True)(z, label, z)
    assert float(ours) == pytest.approx(float(right), rel=1e-12)


def test_r4_smoothing_lowers_the_ece_in_fewer_than_half_of_the_cells():
    def lower(networks, conditions):
        return sum(ece(network, each) < ece(network, "hard") for network in networks for each in conditions)

    assert lower(OWN, SMOOTHED) == 14
    assert len(OWN) * len(SMOOTHED) == 36
    assert lower(OWN, ["smoothed"]) == 4
    at_best = [
        network for network in OWN if min(ece(network, each) for each in SMOOTHED) < ece(network, "hard")
    ]
    assert len(at_best) == 5
    assert len(set(at_best) & set(CLASSIFIERS)) == 4
    assert (ece("cub200-resnet34", "hard"), ece("cub200-resnet34", "smoothed-0.05")) == (0.082, 0.159)
    better = sum(
        published(f"wagner-2023/accuracy/{network}/{each}").value
        > published(f"wagner-2023/accuracy/{network}/hard").value
        for network in CLASSIFIERS
        for each in SMOOTHED
    )
    assert better == 24


def test_r5_temperature_scaling_is_best_in_every_row():
    rows = [*OWN, "cifar100-resnet56-quoted", "imagenet-inception-v4-quoted"]
    assert len(rows) == 11
    for network in rows:
        found = []
        for condition in ("hard", *SMOOTHED):
            try:
                found.append(ece(network, condition))
            except KeyError:
                assert network.endswith("quoted")
        assert ece(network, "scaled") < min(found)


def test_r6_logits_are_not_probabilities():
    teacher = torch.tensor([12.0] + [0.0] * 9, dtype=torch.float64)
    p = teacher.softmax(0)

    def squared(z):
        return 0.5 * F.mse_loss(p, z)

    assert squared(p) == 0
    assert squared(teacher) > 1  # a student that equals its teacher
    certain = F.one_hot(torch.tensor(0), 10).double()
    assert float(certain.softmax(0)[0]) == pytest.approx(math.e / (math.e + 9))
    assert math.e / (math.e + 9) == pytest.approx(0.23, abs=0.005)

    z = torch.zeros(10, dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([z], max_iter=200, tolerance_grad=1e-12, line_search_fn="strong_wolfe")

    def closure():
        optimiser.zero_grad()
        loss = 0.4 * F.cross_entropy(z[None], torch.tensor([0])) + 0.6 * 0.5 * F.mse_loss(certain, z)
        loss.backward()
        return loss

    optimiser.step(closure)
    assert float(z.grad.abs().max()) < 1e-6
    assert float(z.detach().softmax(0)[0]) == pytest.approx(0.71, abs=0.005)
    ours = Distillation(beta=1.0, match="logits")
    assert float(ours(teacher[None], torch.tensor([0]), teacher[None])) == 0


def test_r7_the_axis_is_time():
    logits = torch.randn(7, 2, 5, generator=torch.Generator().manual_seed(0))  # time, batch, vocabulary
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that it chooses the axis itself
        found = F.log_softmax(logits)
    assert torch.allclose(found.exp().sum(0), torch.ones(2, 5))
    assert not torch.allclose(found.exp().sum(-1), torch.ones(7, 2), atol=0.05)


@pytest.mark.parametrize(("channels", "weaker"), [("one", 8), ("all", 9)])
def test_r8_torch_divides_alpha_by_the_window(channels, weaker):
    maps = torch.zeros(1, 64, 1, 1, dtype=torch.float64)
    maps[0, slice(30, 31) if channels == "one" else slice(None)] = 10.0

    def bracket(normed):
        return (10.0 / float(normed[0, 30, 0, 0])) ** (1 / 0.75) - 1

    tutorial = bracket(local_response_norm(maps, 4, 1.0, 0.001 / 9, 0.75))
    code = bracket(nn.LocalResponseNorm(8, k=1.0, alpha=0.001 / 9, beta=0.75)(maps))
    assert tutorial / code == pytest.approx(weaker, rel=1e-9)


def test_r9_a_distribution_cut_off_at_one_point_is_constant():
    layer = nn.Linear(192, 10)
    nn.init.trunc_normal_(layer.weight, std=1 / 192, a=-1 / 96, b=-1 / 96)
    assert layer.weight.unique().tolist() == pytest.approx([-1 / 96])
    nn.init.zeros_(layer.bias)
    below = torch.rand(8, 192, generator=torch.Generator().manual_seed(0), requires_grad=True)
    logits = layer(below)
    assert torch.allclose(logits, logits[:, :1].expand(-1, 10), atol=1e-6)
    F.cross_entropy(logits, torch.arange(8)).backward()
    assert below.grad.abs().max() < 1e-8
    weights = AlexNet(shape=(3, 24, 24), classes=10).head.weight.detach()
    assert float(weights.max()) == pytest.approx(1 / 96, rel=0.05)  # cut off at two deviations on both sides


def test_r10_the_norm_pulls_with_one_strength():
    torch.manual_seed(0)
    net = AlexNet(shape=(3, 24, 24), classes=10)
    for weights, times in ((net.local3.weight, 33), (net.local4.weight, 10)):
        (code,) = torch.autograd.grad(0.04 * torch.norm(weights), weights)
        (tutorial,) = torch.autograd.grad(0.04 * 0.5 * weights.square().sum(), weights)
        assert float(code.norm()) == pytest.approx(0.04, rel=1e-5)
        assert float(tutorial.norm() / code.norm()) == pytest.approx(times, rel=0.05)


def test_r11_rounded_shifts_are_not_equally_frequent():
    edges = [Fraction(-2), *(Fraction(2 * shift + 1, 2) for shift in range(-2, 2)), Fraction(2)]
    chances = [(high - low) / 4 for low, high in pairwise(edges)]  # of a uniform number, rounded
    assert chances == [Fraction(1, 8), *[Fraction(1, 4)] * 3, Fraction(1, 8)]
    assert chances[0] ** 2 / chances[2] ** 2 == Fraction(1, 4)  # a corner against the middle
    drawn = torch.empty(20_000).uniform_(-2, 2, generator=torch.Generator().manual_seed(0)).round()
    assert float((drawn == 2).float().mean()) == pytest.approx(1 / 8, abs=0.01)


def test_with_care_the_hard_network_of_table_2_is_another_one():
    def error(condition):
        return 1 - published(f"wagner-2023/accuracy/mnist-fcn/{condition}").value

    assert error("hard") == pytest.approx(0.0094)
    assert published("wagner-2023/teacher-error/mnist/hard").value == 0.0081
    assert error("smoothed") == pytest.approx(published("wagner-2023/teacher-error/mnist/smoothed").value)


@pytest.mark.parametrize(("paper", "errors"), [("wagner-2023", 0.9), ("muller-2019", 1.3)])
def test_with_care_students_are_about_one_standard_error_apart(paper, errors):
    hard, smoothed = (
        published(f"{paper}/student-error/mnist/{which}").value for which in ("hard", "smoothed")
    )
    scatter = math.sqrt((hard * (1 - hard) + smoothed * (1 - smoothed)) / 10_000)
    assert (smoothed - hard) / scatter == pytest.approx(errors, abs=0.05)


def test_with_care_the_two_planes_are_one():
    generator = torch.Generator().manual_seed(0)
    templates = torch.randn(3, 20, generator=generator, dtype=torch.float64)
    activations = torch.randn(50, 20, generator=generator, dtype=torch.float64)
    differences = torch.stack(
        [F.normalize(templates[1] - templates[0], dim=0), F.normalize(templates[2] - templates[0], dim=0)]
    )
    printed, _ = torch.linalg.qr(differences.T)
    text = template_plane(templates, [0, 1, 2])
    assert torch.allclose(printed @ printed.T, text @ text.T)
    turned = text.T @ printed
    assert torch.allclose(turned @ turned.T, torch.eye(2, dtype=torch.float64), atol=1e-12)
    assert not torch.allclose(activations @ printed, activations @ text, atol=0.1)
