from __future__ import annotations

import copy
import io
import math
import random

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from softtargets.losses import LABO, Distillation, LabelSmoothing
from softtargets.losses.batch import Batch

from .making import (
    batch,
    by_rows,
    cross_entropy,
    entropy,
    log_softmax,
    mixed,
    one_hot,
    rows,
    shaped,
    softmax,
    value_and_gradient,
    weight_of,
    weighted_cross_entropy,
    weighted_cross_entropy_gradient,
)

MODES = {
    "fixed": {"alpha": 0.3},
    "literal": {"rho": 0.5},
    "literal, rho 1": {"rho": 1.0},
    "reversed": {"rho": 0.8, "reading": "reversed"},
}


def divergence(p):
    """KL(p || U)."""
    return sum(value * math.log(value * len(p)) for value in p if value)


def mass(row, alpha=None, rho=0.5, reading="literal"):
    if alpha is not None:
        return alpha
    highest = math.log(len(row))
    if reading == "literal":
        return (highest - rho * entropy(softmax(row))) / highest  # equation 16
    return rho * entropy(softmax(row)) / highest


def optimum(row, tau):
    """Theorem 1 as the paper has it: powers of the prediction, not a softmax of logits."""
    log_p = log_softmax(row)
    powers = [math.exp(value / tau) for value in log_p]
    return [value / sum(powers) for value in powers]


def one_row(tau, options, weight=None, include_kl=False):
    def one(row, t, taught, label):
        alpha, best = mass(row, **options), optimum(row, tau)
        loss = weighted_cross_entropy(mixed(t, best, alpha), row, weight)
        if include_kl:
            loss += weight_of(t, weight) * alpha * tau * divergence(best)
        return loss

    return one


# --- value and gradient ---


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("tau", [0.5, 1.25, 20.0])
@pytest.mark.parametrize("kind", ["indices", "probabilities"])
@pytest.mark.parametrize("weight", [None, [0.5, 2.0, 1.0, 0.25]])
@pytest.mark.parametrize("include_kl", [False, True])
def test_value_and_gradient_against_loops(mode, tau, kind, weight, include_kl):
    options = MODES[mode]
    logits, labels, probabilities = shaped((3, 2), 4)
    labels[2, 1] = -100
    target = labels if kind == "indices" else probabilities
    tensor = torch.tensor(weight, dtype=torch.float64) if weight else None
    for reduction in ("mean", "sum", "none"):
        loss = LABO(tau, include_kl=include_kl, weight=tensor, reduction=reduction, **options)
        found, slope = value_and_gradient(loss, logits, target)
        expected = by_rows(one_row(tau, options, weight, include_kl), logits, target, reduction, weight)
        expected = expected if reduction == "none" else [expected]
        assert found.reshape(-1).tolist() == pytest.approx(expected, rel=1e-11)
    # Of the sum over rows: neither P* nor alpha nor the KL term is followed.
    listed = labels.reshape(-1).tolist()
    targets = rows(probabilities) if kind == "probabilities" else [one_hot(y, 4) for y in listed]
    for place, (row, t) in enumerate(zip(rows(logits), targets, strict=True)):
        constant = mixed(t, optimum(row, tau), mass(row, **options))
        expected = weighted_cross_entropy_gradient(constant, row, weight)
        if kind == "indices" and listed[place] == -100:
            expected = [0.0] * 4
        assert rows(slope)[place] == pytest.approx(expected, rel=1e-10, abs=1e-13)


@pytest.mark.parametrize("mode", MODES)
def test_it_is_torchs_cross_entropy_with_a_constant_target(mode):
    logits, labels = batch(6, 5)
    targets = [
        mixed(one_hot(y, 5), softmax([v / 1.25 for v in row]), mass(row, **MODES[mode]))
        for row, y in zip(logits.tolist(), labels.tolist(), strict=True)
    ]
    constant = torch.tensor(targets, dtype=torch.float64)
    value, slope = value_and_gradient(LABO(1.25, **MODES[mode]), logits, labels)
    expected, theirs = value_and_gradient(F.cross_entropy, logits, constant)
    torch.testing.assert_close(value, expected, rtol=1e-12, atol=0)
    torch.testing.assert_close(slope, theirs, rtol=1e-11, atol=1e-14)


def test_nothing_is_followed_through_the_target_even_twice():
    logits, labels = batch(2, 3)
    hessian = torch.func.hessian(lambda z: LABO(alpha=0.3, include_kl=True)(z, labels))(logits)
    p = softmax(logits[0].tolist())
    expected = [[p[i] * ((i == j) - p[j]) / 2 for j in range(3)] for i in range(3)]
    torch.testing.assert_close(hessian[0, :, 0], torch.tensor(expected, dtype=torch.float64))


# --- alpha ---


def extremes(classes):
    """A prediction that knows nothing, one that is certain, and some between."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(50, classes, generator=generator, dtype=torch.float64) * 4
    logits[0] = 0
    logits[1] = torch.tensor([1000.0] + [0.0] * (classes - 1))
    return logits, torch.zeros(50, dtype=torch.long)


@pytest.mark.parametrize("rho", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("classes", [2, 5])
def test_alpha_read_literally_lies_between_1_minus_rho_and_1(rho, classes):
    logits, labels = extremes(classes)
    alpha = LABO(rho=rho).terms(logits, labels).alpha
    assert alpha.min().item() >= 1 - rho - 1e-12
    assert alpha.max().item() <= 1
    assert alpha[0].item() == pytest.approx(1 - rho)  # knows nothing: the entropy is log K
    assert alpha[1].item() == pytest.approx(1)  # certain: everything moves
    expected = [mass(row, rho=rho) for row in logits[2:].tolist()]
    assert alpha[2:].tolist() == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize("rho", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("classes", [2, 5])
def test_alpha_read_the_other_way_lies_between_0_and_rho(rho, classes):
    logits, labels = extremes(classes)
    alpha = LABO(rho=rho, reading="reversed").terms(logits, labels).alpha
    assert alpha.min().item() >= 0
    assert alpha.max().item() <= rho + 1e-12
    assert alpha[0].item() == pytest.approx(rho)
    assert alpha[1].item() == pytest.approx(0)
    literal = LABO(rho=rho).terms(logits, labels).alpha
    torch.testing.assert_close(alpha + literal, torch.ones(50, dtype=torch.float64))


def test_a_fixed_alpha_is_the_same_for_all():
    logits, labels = extremes(3)
    assert LABO(alpha=0.3).terms(logits, labels).alpha.tolist() == [0.3] * 50


# --- Theorem 1: P* solves the inner problem ---


def found_optimum(row, tau):
    """P*, read off from outside: with alpha = 1 the gradient is the prediction minus P*."""
    loss = LABO(tau, alpha=1.0)
    logits = torch.tensor([row], dtype=torch.float64)
    _, slope = value_and_gradient(loss, logits, torch.tensor([0]))
    return (torch.softmax(logits, -1) - slope)[0].tolist()


def inner(p, row, label, alpha, beta):
    """Equation 8 for one example: cross-entropy with the smoothed label + beta KL(P || U)."""
    return cross_entropy(mixed(one_hot(label, len(row)), p, alpha), row) + beta * divergence(p)


@pytest.mark.parametrize("tau", [0.3, 1.0, 1.25, 5.0])
@pytest.mark.parametrize("alpha", [0.1, 0.7])
def test_no_other_distribution_is_better(tau, alpha):
    chance = random.Random(1)
    row, label = [1.5, -0.5, 0.2, 3.0, -2.0], 1
    best = found_optimum(row, tau)
    assert sum(best) == pytest.approx(1, rel=1e-12)
    lowest = inner(best, row, label, alpha, alpha * tau)
    for _ in range(1000):
        drawn = [chance.expovariate(1) ** chance.choice([0.5, 1, 3]) for _ in row]
        other = [value / sum(drawn) for value in drawn]
        assert inner(other, row, label, alpha, alpha * tau) > lowest
    for _ in range(1000):
        moved = [value * math.exp(chance.gauss(0, 1e-3)) for value in best]
        other = [value / sum(moved) for value in moved]
        assert inner(other, row, label, alpha, alpha * tau) > lowest - 1e-14
    corners = [one_hot(k, 5) for k in range(5)]
    for other in [*corners, [0.2] * 5, softmax(row), one_hot(label, 5)]:
        assert inner(other, row, label, alpha, alpha * tau) >= lowest - 1e-12


@pytest.mark.parametrize("tau", [0.3, 1.0, 1.25, 5.0])
def test_the_lagrangian_is_stationary(tau):
    """Equation 21: -alpha log p + beta log P* + beta + beta log K is the same for every class."""
    for row in batch(5, 6)[0].tolist():
        alpha, beta = 0.4, 0.4 * tau
        p, best = log_softmax(row), found_optimum(row, tau)
        multiplier = [-alpha * p[j] + beta * math.log(best[j]) + beta + beta * math.log(6) for j in range(6)]
        assert multiplier == pytest.approx([multiplier[0]] * 6, rel=1e-9)


def test_powers_of_the_prediction_are_the_softmax_at_a_temperature():
    """Remark 4."""
    for row in batch(5, 6)[0].tolist():
        for tau in (0.5, 1.25, 8.0):
            assert found_optimum(row, tau) == pytest.approx(optimum(row, tau), rel=1e-9)
            assert found_optimum(row, tau) == pytest.approx(softmax([v / tau for v in row]), rel=1e-9)


# --- the other remarks ---


def test_a_uniform_opinion_is_label_smoothing():
    """Remark 1: the KL term is zero, and what remains is uniform smoothing."""
    logits, labels = torch.zeros(4, 5, dtype=torch.float64), torch.tensor([0, 1, 2, 3])
    terms = LABO(alpha=0.3).terms(logits, labels)
    assert terms.divergence.tolist() == pytest.approx([0.0] * 4, abs=1e-15)
    for include_kl in (False, True):
        value, slope = value_and_gradient(LABO(alpha=0.3, include_kl=include_kl), logits, labels)
        expected, theirs = value_and_gradient(LabelSmoothing(0.3), logits, labels)
        torch.testing.assert_close(value, expected)
        torch.testing.assert_close(slope, theirs)


def test_distillation_is_the_special_case_of_a_teacher_for_p():
    """Remark 2: (1 - a) CE + a KL(P_T || p) = CE with the mixed target + a KL(P_T || U) - a log K."""
    logits, labels = batch(6, 5)
    teacher, _ = batch(6, 5, seed=1)
    alpha, objective, constant, distilling = 0.4, 0.0, 0.0, 0.0
    for row, y, taught in zip(logits.tolist(), labels.tolist(), teacher.tolist(), strict=True):
        q, log_p = softmax(taught), log_softmax(row)
        objective += inner(q, row, y, alpha, alpha) / 6
        constant += alpha * divergence(q) / 6
        distance = sum(v * (math.log(v) - log_p[j]) for j, v in enumerate(q))
        distilling += ((1 - alpha) * -log_p[y] + alpha * distance) / 6
    assert distilling == pytest.approx(objective - alpha * math.log(5), rel=1e-12)
    value, slope = value_and_gradient(Distillation(1.0, alpha), logits, labels, teacher)
    assert value.item() == pytest.approx(objective - constant, rel=1e-12)

    class Taught(LABO):
        def smoothing(self, batch, given):
            return self.alpha, torch.softmax(teacher, -1)

    found, theirs = value_and_gradient(Taught(1.0, alpha=alpha), logits, labels)
    torch.testing.assert_close(found, value)
    torch.testing.assert_close(theirs, slope)


@pytest.mark.parametrize("tau", [1.0, 1.25, 4.0])
def test_it_is_distillation_from_oneself(tau):
    logits, labels = batch(6, 5)
    value, slope = value_and_gradient(LABO(tau, alpha=0.4), logits, labels)
    expected, theirs = value_and_gradient(Distillation(tau, 0.4), logits, labels, logits.clone())
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(slope, theirs)


def test_as_tau_grows_it_becomes_label_smoothing_at_the_rate_1_over_tau():
    """Remark 3, with the constant: P* is 1/K + (z - mean z) / (K tau) + O(1 / tau^2)."""
    logits, labels = batch(6, 5)
    expected, theirs = value_and_gradient(LabelSmoothing(0.3), logits, labels)
    value_constant = 0.0
    gradient_constant = []
    for row in logits.tolist():
        tilt = [(value - sum(row) / 5) / 5 for value in row]
        value_constant -= 0.3 * sum(t * log_p for t, log_p in zip(tilt, log_softmax(row), strict=True)) / 6
        gradient_constant += [-0.3 * t / 6 for t in tilt]
    for tau in (1e3, 1e4, 1e5):
        value, slope = value_and_gradient(LABO(tau, alpha=0.3), logits, labels)
        assert tau * (value - expected).item() == pytest.approx(value_constant, rel=20 / tau)
        assert (tau * (slope - theirs)).reshape(-1).tolist() == pytest.approx(
            gradient_constant, rel=20 / tau, abs=2 / tau
        )


# --- the KL term and `terms` ---


@pytest.mark.parametrize("mode", MODES)
def test_the_terms_against_loops(mode):
    logits, labels, probabilities = shaped((3, 2), 4)
    labels[1, 0] = -100
    for target in (labels, probabilities):
        terms = LABO(1.5, **MODES[mode]).terms(logits.requires_grad_(), target)
        alpha = by_rows(lambda row, *_: mass(row, **MODES[mode]), logits, target, "none")
        spread = by_rows(lambda row, *_: divergence(optimum(row, 1.5)), logits, target, "none")
        plain = by_rows(one_row(1.5, MODES[mode]), logits, target, "none")
        whole = by_rows(one_row(1.5, MODES[mode], include_kl=True), logits, target, "none")
        objective = terms.objective(1.5)
        parts = (terms.alpha, terms.divergence, terms.cross_entropy, objective)
        for found, expected in zip(parts, (alpha, spread, plain, whole), strict=True):
            assert found.shape == (3, 2)
            assert not found.requires_grad
            assert found.reshape(-1).tolist() == pytest.approx(expected, rel=1e-11, abs=1e-14)


def test_the_kl_term_adds_to_the_value_and_not_to_the_gradient():
    logits, labels = batch(6, 5)
    without, slope = value_and_gradient(LABO(2.0), logits, labels)
    value, same = value_and_gradient(LABO(2.0, include_kl=True), logits, labels)
    terms = LABO(2.0).terms(logits, labels)
    added = (terms.alpha * 2.0 * terms.divergence).mean()
    assert added.item() > 0.01
    torch.testing.assert_close(value, without + added)
    assert torch.equal(slope, same)


# --- the warm-up ---


@pytest.mark.parametrize("steps", [0, 1, 3])
@pytest.mark.parametrize("include_kl", [False, True])
def test_the_warm_up_takes_exactly_so_many_steps(steps, include_kl):
    logits, labels = batch(6, 5, torch.float32)
    loss = LABO(2.0, warmup_steps=steps, include_kl=include_kl)
    smooth = value_and_gradient(LabelSmoothing(0.1), logits, labels)
    after = value_and_gradient(LABO(2.0, include_kl=include_kl), logits, labels)
    assert abs(smooth[0] - after[0]).item() > 0.01
    for call in range(steps + 3):
        found = value_and_gradient(loss, logits, labels)
        for part, expected in zip(found, smooth if call < steps else after, strict=True):
            torch.testing.assert_close(part, expected)


@pytest.mark.parametrize("options", [{}, {"alpha": 0.3}, {"reading": "reversed"}])
def test_a_warm_up_does_not_cost_precision(options):
    logits, labels = batch(6, 5)
    loss = LABO(1.3, warmup_steps=1, warmup_alpha=0.1, **options)
    torch.testing.assert_close(loss(logits, labels), LabelSmoothing(0.1)(logits, labels), rtol=1e-13, atol=0)
    torch.testing.assert_close(loss(logits, labels), LABO(1.3, **options)(logits, labels), rtol=1e-13, atol=0)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 0.1),
        ({"alpha": 0.3}, 0.3),
        ({"alpha": 0.3, "warmup_alpha": 0.2}, 0.2),
        ({"warmup_alpha": 0.4}, 0.4),
    ],
)
def test_how_much_is_smoothed_in_the_warm_up(options, expected):
    logits, labels = batch(6, 5, torch.float32)
    found = LABO(warmup_steps=1, **options)(logits, labels)
    torch.testing.assert_close(found, LabelSmoothing(expected)(logits, labels))


def test_evaluation_and_reports_are_no_steps():
    logits, labels = batch(6, 5, torch.float32)
    loss = LABO(warmup_steps=2)
    warm = LabelSmoothing(0.1)(logits, labels)
    loss(logits, labels)
    loss.eval()
    for _ in range(5):
        torch.testing.assert_close(loss(logits, labels), warm)  # evaluation uses the present state
    loss.train()
    for _ in range(5):
        terms = loss.terms(logits, labels)
        assert terms.alpha.tolist() == pytest.approx([0.1] * 6)
        assert terms.divergence.tolist() == pytest.approx([0.0] * 6, abs=1e-6)
        torch.testing.assert_close(terms.cross_entropy.mean(), warm)
    assert loss.step.item() == 1
    torch.testing.assert_close(loss(logits, labels), warm)
    torch.testing.assert_close(loss(logits, labels), LABO()(logits, labels))
    torch.testing.assert_close(loss.terms(logits, labels).alpha, LABO().terms(logits, labels).alpha)


def test_without_a_warm_up_nothing_is_counted():
    logits, labels = batch()
    loss = LABO()
    loss(logits, labels)
    assert loss.step.item() == 0


def test_a_call_that_is_refused_is_no_step():
    logits, labels = batch(6, 4)
    loss = LABO(warmup_steps=2)
    with pytest.raises(ValueError, match="target must have shape"):
        loss(logits, labels[:3])
    assert loss.step.item() == 0


def test_the_warm_up_survives_saving():
    logits, labels = batch(6, 5, torch.float32)
    loss = LABO(warmup_steps=2)
    loss(logits, labels)
    buffer = io.BytesIO()
    torch.save(loss.state_dict(), buffer)
    buffer.seek(0)
    other = LABO(warmup_steps=2)
    other.load_state_dict(torch.load(buffer))
    assert other.step.item() == 1
    for _ in range(3):
        torch.testing.assert_close(other(logits, labels), loss(logits, labels))
    twin = copy.deepcopy(loss)
    twin(logits, labels)
    assert (loss.step.item(), twin.step.item()) == (4, 5)


@pytest.mark.parametrize(
    "numbers",
    [
        {"tau": [1.0, 2.0, 5.0]},
        {"rho": [0.0, 0.5, 1.0]},
        {"warmup_alpha": [0.0, 0.1, 0.2]},
        {"alpha": [0.3, 0.4, 0.5], "warmup_alpha": [0.0, 0.1, 0.2]},
    ],
)
def test_the_runs_of_a_pack_warm_up_together(numbers):
    logits = torch.stack([batch(6, 5, torch.float32, seed=run)[0] for run in range(3)])
    labels = torch.stack([batch(6, 5, seed=run)[1] for run in range(3)])
    pack = LABO(warmup_steps=2, include_kl=True, **{k: torch.tensor(v) for k, v in numbers.items()})
    singles = [
        LABO(warmup_steps=2, include_kl=True, **{k: v[run] for k, v in numbers.items()}) for run in range(3)
    ]
    for call in range(4):
        found = pack(logits, labels)
        assert pack.step.item() == call + 1
        for run, single in enumerate(singles):
            torch.testing.assert_close(found[run], single(logits[run], labels[run]))


def test_losses_stacked_by_torch_warm_up_on_their_own():
    logits = torch.stack([batch(6, 5, torch.float32, seed=run)[0] for run in range(2)])
    labels = torch.stack([batch(6, 5, seed=run)[1] for run in range(2)])
    losses = [LABO(torch.tensor(tau), warmup_steps=2) for tau in (1.0, 3.0)]
    losses[0](logits[0], labels[0])
    states = [loss.named_state() for loss in losses]
    stacked = {name: torch.stack([state[name] for state in states]) for name in states[0]}
    template = copy.deepcopy(losses[0])

    def one(state, z, y):
        return torch.func.functional_call(template, state, (z, y)), state["step"]

    for _ in range(3):
        found, stacked["step"] = torch.vmap(one)(stacked, logits, labels)
        for run in range(2):
            torch.testing.assert_close(found[run], losses[run](logits[run], labels[run]))
        assert stacked["step"].tolist() == [loss.step.item() for loss in losses]


def test_inside_transforms_of_torch():
    """Under grad torch allows no change of state, as for batch normalisation; in evaluation there is none."""
    logits, labels = batch(6, 5)
    loss = LABO(warmup_steps=5)
    torch.func.vmap(loss)(logits, labels)
    assert loss.step.item() == 1
    slope = torch.func.grad(lambda z: loss.eval()(z, labels))(logits)
    _, expected = value_and_gradient(LabelSmoothing(0.1), logits, labels)
    torch.testing.assert_close(slope, expected, rtol=1e-6, atol=1e-8)
    assert loss.step.item() == 1


# --- edges ---


@pytest.mark.parametrize("options", [*MODES.values(), {"warmup_steps": 1}])
@pytest.mark.parametrize("include_kl", [False, True])
def test_one_class(options, include_kl):
    logits = torch.tensor([[3.0], [-2.0]], dtype=torch.float64)
    value, slope = value_and_gradient(LABO(include_kl=include_kl, **options), logits, torch.tensor([0, 0]))
    assert value.item() == 0
    assert slope.tolist() == [[0.0], [0.0]]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("include_kl", [False, True])
def test_impossible_classes_have_no_part_in_the_opinion(mode, include_kl):
    logits = torch.tensor([[0.5, -1.0, -math.inf]], dtype=torch.float64)
    row, options = logits[0].tolist(), MODES[mode]
    value, slope = value_and_gradient(LABO(1.25, include_kl=include_kl, **options), logits, torch.tensor([1]))
    expected = one_row(1.25, options, include_kl=include_kl)(row, [0.0, 1.0, 0.0], None, 1)
    assert value.item() == pytest.approx(expected, rel=1e-12)
    constant = mixed([0.0, 1.0, 0.0], optimum(row, 1.25), mass(row, **options))
    assert slope[0].tolist() == pytest.approx(weighted_cross_entropy_gradient(constant, row), rel=1e-12)
    terms = LABO(1.25, **options).terms(logits, torch.tensor([1]))
    assert terms.divergence.item() == pytest.approx(divergence(optimum(row, 1.25)), rel=1e-12)


def test_impossible_classes_in_the_warm_up_cost_what_they_cost_in_label_smoothing():
    logits, labels = torch.tensor([[0.5, -1.0, -math.inf]]), torch.tensor([0])
    loss = LABO(warmup_steps=1)
    assert loss(logits, labels).item() == LabelSmoothing(0.1)(logits, labels).item() == math.inf
    assert math.isfinite(loss(logits, labels).item())


def test_impossible_classes_in_a_warm_up_without_smoothing():
    logits, labels = torch.tensor([[0.5, -1.0, -math.inf]]), torch.tensor([0])
    found = LABO(warmup_steps=1, warmup_alpha=0.0)(logits, labels).item()
    assert found == pytest.approx(F.cross_entropy(logits, labels).item())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("include_kl", [False, True])
def test_huge_logits(dtype, mode, include_kl):
    size = 30000.0
    logits = torch.tensor([[size, 0, -size], [size, 0, -size], [0, 0, 0]], dtype=dtype)
    labels = torch.tensor([0, 1, 2])
    loss = LABO(1.25, include_kl=include_kl, reduction="none", **MODES[mode])
    value, slope = value_and_gradient(loss, logits, labels)
    expected = by_rows(one_row(1.25, MODES[mode], include_kl=include_kl), logits, labels, "none")
    assert value.tolist() == pytest.approx(expected, rel=2e-3, abs=1e-6)
    assert torch.isfinite(slope).all()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"tau": 0.0}, ValueError, "tau must be above 0, not 0.0"),
        ({"tau": -1.0}, ValueError, "tau must be above 0"),
        ({"tau": math.inf}, ValueError, "tau must be above 0"),
        ({"rho": 1.5}, ValueError, "rho must be between 0 and 1, not 1.5"),
        ({"alpha": -0.5}, ValueError, "alpha must be between 0 and 1, not -0.5"),
        ({"warmup_alpha": 2}, ValueError, "warmup_alpha must be between 0 and 1, not 2"),
        ({"warmup_steps": -1}, ValueError, "warmup_steps must be at least 0, not -1"),
        ({"warmup_steps": 1.5}, TypeError, "warmup_steps must be a whole number, not 1.5"),
        ({"reading": "literally"}, ValueError, "reading must be 'literal' or 'reversed', not 'literally'"),
    ],
)
def test_impossible_options_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        LABO(**options)


def test_the_defaults_are_those_of_the_paper():
    loss = LABO()
    assert (loss.tau, loss.rho, loss.alpha, loss.reading) == (1.25, 0.5, None, "literal")
    assert (loss.warmup_steps, loss.warmup_alpha, loss.include_kl) == (0, 0.1, False)
    assert loss.step.item() == 0


def test_it_prints_its_options():
    assert repr(LABO()) == "LABO(tau=1.25, rho=0.5, reading='literal')"
    assert repr(LABO(2.0, alpha=0.3, include_kl=True)) == "LABO(tau=2.0, alpha=0.3, include_kl=True)"
    assert repr(LABO(warmup_steps=7)) == (
        "LABO(tau=1.25, rho=0.5, reading='literal', warmup_steps=7, warmup_alpha=0.1)"
    )


def test_a_kernel_is_told_the_same():
    logits, labels = batch(6, 4)
    made = Batch(logits, labels, None, -100)
    assert LABO(2.0, 0.4).rule(made, None).values == (1.0, -0.4, 0.5, 0.0)
    assert LABO(2.0, 0.4, reading="reversed", include_kl=True).rule(made, None).values == (
        0.0,
        0.4,
        0.5,
        1.0,
    )
    assert LABO(2.0, alpha=0.3).rule(made, None).values == (0.3, 0.0, 0.5, 0.0)
    loss = LABO(2.0, warmup_steps=1)
    warm = [float(value) for value in loss.rule(made, None).values]
    assert warm == pytest.approx([0.1, 0.0, 0.0, 0.0])
    loss(logits, labels)
    assert [float(value) for value in loss.rule(made, None).values] == pytest.approx([1.0, -0.5, 0.5, 0.0])


def test_a_learnt_alpha_gets_the_slope_of_the_loss():
    logits, labels = batch(6, 4)
    alpha = nn.Parameter(torch.tensor(0.3, dtype=torch.float64))
    LABO(1.5, alpha=alpha)(logits, labels).backward()
    slope = sum(
        cross_entropy(optimum(row, 1.5), row) + log_softmax(row)[y]
        for row, y in zip(logits.tolist(), labels.tolist(), strict=True)
    )
    assert alpha.grad.item() == pytest.approx(slope / 6, rel=1e-11)


def test_the_terms_of_a_pack_are_refused():
    with pytest.raises(ValueError, match="terms works for a single run"):
        LABO(tau=torch.tensor([1.0, 2.0])).terms(torch.zeros(2, 2), torch.zeros(2).long())
