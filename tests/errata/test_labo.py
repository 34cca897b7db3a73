"""Lu et al. 2023: what is printed does not hold, what ERRATA.md says instead does."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
import torch

from softtargets.claims import published
from softtargets.losses import LABO
from softtargets.losses.functional import divergence_from_uniform, relative_entropy, soft_cross_entropy

TAU, RHO = 1.25, 0.5
TRANSLATIONS = (
    "iwslt14-de-en",
    "iwslt14-en-de",
    "iwslt14-en-fr",
    "iwslt14-fr-en",
    "wmt14-en-de",
    "wmt14-de-en",
)
METHODS = ("hard", "ls", "cp", "fl", "afl", "labo")


def examples(deviation, classes=10, count=4096):
    generator = torch.Generator().manual_seed(0)
    logits = deviation * torch.randn(count, classes, generator=generator, dtype=torch.float64)
    return logits.requires_grad_(), torch.randint(classes, (count,), generator=generator)


def objective(logits, labels, q, alpha):
    """Equation 14 with beta = alpha tau; the gradient goes through whatever carries one."""
    log_p = logits.log_softmax(-1)
    hard = -log_p.gather(1, labels[:, None]).squeeze(1)
    cross_entropy = (1 - alpha) * hard + alpha * soft_cross_entropy(log_p, q)
    return (cross_entropy + alpha * TAU * divergence_from_uniform(q.log())).sum()


def adaptive(logits):
    return 1 - RHO * relative_entropy(logits.log_softmax(-1))


def slope(loss, by):
    return torch.autograd.grad(loss, by, retain_graph=True)[0]


def test_what_is_right_the_best_smoothing_and_distillation():
    logits, labels = examples(2.0, count=32)
    logits = logits.detach()
    log_p, alpha, generator = logits.log_softmax(-1), 0.3, torch.Generator().manual_seed(1)
    best = objective(logits, labels, (logits / TAU).softmax(-1), alpha)
    for step in (1e-3, 0.1, 1.0):  # theorem 1: no other distribution is better
        moved = logits / TAU + step * torch.randn(32, 10, generator=generator, dtype=torch.float64)
        assert objective(logits, labels, moved.softmax(-1), alpha) > best
    q = torch.rand(10, generator=generator, dtype=torch.float64).softmax(0).requires_grad_()
    second = torch.autograd.functional.hessian(
        lambda x: (TAU * x * (10 * x).log() - alpha * x * log_p[0]).sum(), q
    )
    assert torch.allclose(second, torch.diag(TAU / q.detach()))  # equation 11, beta = tau
    teacher = torch.randn(32, 10, generator=generator, dtype=torch.float64).softmax(-1)
    hard = -log_p.gather(1, labels[:, None]).squeeze(1)
    distilled = (1 - alpha) * hard + alpha * (teacher * (teacher.log() - log_p)).sum(-1)  # equation 3
    mixed = (1 - alpha) * hard + alpha * soft_cross_entropy(log_p, teacher)
    constant = distilled - mixed - alpha * divergence_from_uniform(teacher.log())  # equation 9
    assert constant.tolist() == pytest.approx([-alpha * math.log(10)] * 32)


@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_l1_with_a_fixed_alpha_nothing_is_neglected(alpha):
    logits, labels = examples(3.0)
    best = (logits / TAU).softmax(-1)
    whole = slope(objective(logits, labels, best, alpha), logits)
    used = slope(LABO(tau=TAU, alpha=alpha, reduction="sum")(logits, labels), logits)
    assert float((whole - used).norm() / whole.norm()) < 1e-14


@pytest.mark.parametrize(("deviation", "length", "angle"), [(3.0, 0.92, 56), (1.0, 0.20, 11)])
def test_l1_with_the_adaptive_alpha_something_is(deviation, length, angle):
    logits, labels = examples(deviation)
    best, alpha = (logits / TAU).softmax(-1), adaptive(logits)
    whole = slope(objective(logits, labels, best, alpha), logits)
    used = slope(LABO(tau=TAU, rho=RHO, reduction="sum")(logits, labels), logits)
    printed = slope(objective(logits, labels, best.detach(), alpha), logits)  # without the part through P*
    assert float((whole - printed).norm() / whole.norm()) < 1e-14
    through_alpha = slope(objective(logits.detach(), labels, best.detach(), alpha), logits)
    assert torch.allclose(whole, used + through_alpha, rtol=1e-10, atol=1e-13)
    assert float(through_alpha.norm() / whole.norm()) == pytest.approx(length, abs=0.03)
    cosine = float((whole * used).sum() / whole.norm() / used.norm())
    assert math.degrees(math.acos(cosine)) == pytest.approx(angle, abs=2)


def test_l1_the_slope_by_the_best_smoothing_is_a_constant_and_not_zero():
    logits, _ = examples(3.0, count=64)
    alpha, classes = 0.1, 10
    best = (logits / TAU).softmax(-1).detach().requires_grad_()
    log_p = logits.detach().log_softmax(-1)
    # Equation 20: the sums as they are written, also where P does not sum to 1.
    smoothing = (-alpha * best * log_p + alpha * TAU * best * (best * classes).log()).sum()
    by_best = slope(smoothing, best)
    powers = (log_p / TAU).exp().sum(-1)
    expected = alpha * TAU * (1 + math.log(classes) - powers.log())
    assert torch.allclose(by_best, expected[:, None].expand(-1, classes), rtol=1e-10)
    assert float(by_best.min()) >= alpha * (TAU + math.log(classes))


def test_l2_three_parts_of_2400_are_more_than_the_test_set():
    validation, test = (
        published(f"lu-2023/examples/iwslt14-de-en/{split}").value for split in ("validation", "test")
    )
    assert 3 * 2400 - test == 450
    assert test / 3 == 2250
    assert validation - 3 * 2400 == 83


def test_l3_eight_translations_and_four_baselines():
    tasks = [*TRANSLATIONS, "iwslt17-de-en", "iwslt17-fr-en"]
    assert all(published(f"lu-2023/bleu/{task}/labo").source[-7:] in ("table 1", "table 2") for task in tasks)
    assert len(tasks) == 8
    baselines = set(METHODS) - {"hard", "labo"}
    assert all(published(f"lu-2023/bleu/wmt14-en-de/{method}").value for method in baselines)
    assert len(baselines) == 4


def test_l4_two_rows_of_deviations_are_nearly_the_same():
    def deviations(method):
        return [published(f"lu-2023/bleu/{task}/{method}").printed.split(" ± ")[1] for task in TRANSLATIONS]

    agree = {
        pair: sum(a == b for a, b in zip(*map(deviations, pair), strict=True))
        for pair in combinations(METHODS, 2)
    }
    assert agree.pop(("ls", "fl")) == 5
    assert max(agree.values()) == 1
    gains = [
        round(published(f"lu-2023/bleu/{task}/ls").value - published(f"lu-2023/bleu/{task}/hard").value, 1)
        for task in TRANSLATIONS
    ]
    assert gains[-1] == 2.1
    assert (min(gains[:-1]), max(gains[:-1])) == (0.5, 0.8)


def beyond(p, classes, loss):
    """How much more the target gives the label than a prediction of p for it, all wrong classes alike; and alpha."""
    logits = torch.full((1, classes), math.log((1 - p) / (classes - 1)), dtype=torch.float64)
    logits[0, 0] = math.log(p)
    logits.requires_grad_()
    (gradient,) = torch.autograd.grad(loss(logits, torch.tensor([0])), logits)  # p minus the target
    return -float(gradient[0, 0]), float(loss.terms(logits, torch.tensor([0])).alpha)


def stops(classes, **options):
    """Where a prediction is its own target, by bisection between all changes of sign."""
    loss = LABO(**options)
    grid = [*(k / 200 for k in range(1, 200)), *(1 - 10.0**-k for k in range(3, 13))]
    signs = [beyond(p, classes, loss)[0] > 0 for p in grid]
    found = []
    for low, high, before, after in zip(grid, grid[1:], signs, signs[1:], strict=False):
        if before and not after:
            for _ in range(50):
                middle = (low + high) / 2
                low, high = (middle, high) if beyond(middle, classes, loss)[0] > 0 else (low, middle)
            found.append(low)
    return found


@pytest.mark.parametrize(("tau", "place", "alpha"), [(1.25, 0.404, 0.67), (1.15, 0.451, 0.69)])
def test_l5_the_literal_alpha_stops_around_04(tau, place, alpha):
    (found,) = stops(10_000, tau=tau, rho=RHO)
    assert found == pytest.approx(place, abs=5e-4)
    assert beyond(found, 10_000, LABO(tau=tau, rho=RHO))[1] == pytest.approx(alpha, abs=0.005)


def test_l5_other_readings_stop_elsewhere():
    assert all(
        0.39 <= place <= 0.465 for tau in (1.15, 1.25) for K in (5000, 32_000) for place in stops(K, tau=tau)
    )
    assert stops(10_000, tau=1.25, alpha=0.1) == pytest.approx([0.97], abs=0.005)
    assert stops(10_000, tau=1.15, alpha=0.1)[0] > 0.99
    for tau in (1.15, 1.25):
        assert stops(10_000, tau=tau, reading="reversed") == []
    assert pytest.approx(0.9, abs=1e-4) == 1 - 0.1 + 0.1 / 10_000  # where label smoothing stops
    assert stops(10_000, tau=1.25, hypergradient=True) == pytest.approx([0.134], abs=5e-4)
    assert stops(10_000, tau=1.15, hypergradient=True) == pytest.approx([0.138], abs=5e-4)


@pytest.mark.parametrize(("tau", "alpha"), [(1.25, 0.1), (1.25, 0.6), (1.0001, 0.3), (0.8, 0.3)])
def test_l6_with_a_fixed_alpha_it_is_a_confidence_penalty(tau, alpha):
    logits, labels = examples(2.0, count=256)
    log_p = logits.log_softmax(-1)
    hard = -log_p.gather(1, labels[:, None]).squeeze(1)
    order = 1 / tau
    renyi = (order * log_p).logsumexp(-1) / (1 - order)
    penalised = (1 - alpha) * hard - alpha * (tau - 1) * renyi
    loss = LABO(tau=tau, alpha=alpha, reduction="none")
    assert torch.allclose(
        slope(penalised.sum(), logits), slope(loss(logits, labels).sum(), logits), atol=1e-10
    )
    whole = loss.terms(logits, labels).objective(tau)
    assert torch.allclose(penalised + alpha * tau * math.log(10), whole, rtol=1e-9)


def test_l6_at_tau_one_there_is_no_penalty():
    logits, labels = examples(2.0, count=256)
    hard = -logits.log_softmax(-1).gather(1, labels[:, None]).sum()
    used = slope(LABO(tau=1.0, alpha=0.3, reduction="sum")(logits, labels), logits)
    assert torch.allclose(used, 0.7 * slope(hard, logits), rtol=1e-12, atol=1e-15)
    assert pytest.approx(0.025) == 0.1 * (1.25 - 1)
