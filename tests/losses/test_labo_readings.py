"""LABO's other readings: the whole gradient of its objective, and an alpha that follows the model in the warm-up."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from softtargets.exceptions import RecipeError
from softtargets.losses import LABO, LabelSmoothing, LinearLoss, use_kernels
from softtargets.losses import analytic as closed_form
from softtargets.losses.batch import Batch
from softtargets.losses.functional import divergence_from_uniform, entropy, soft_cross_entropy
from softtargets.recipes import LABO as LABORecipe

from .kernels.running import interpreted, planned
from .making import batch, shaped, softmax, value_and_gradient
from .test_labo import divergence, mass, mixed, one_hot, optimum, weighted_cross_entropy

MODES = {
    "fixed": {"alpha": 0.3},
    "literal": {"rho": 0.5},
    "literal, rho 1": {"rho": 1.0},
    "reversed": {"rho": 0.8, "reading": "reversed"},
}


def objective(logits, labels, tau, options, uniform=False):
    """Equation 14 as it is printed, nothing detached, row by row."""
    classes = logits.shape[-1]
    log_p = logits.log_softmax(-1)
    alpha = options.get("alpha")
    if alpha is None:
        share = options["rho"] * entropy(log_p) / math.log(classes)
        alpha = share if options.get("reading") == "reversed" else 1 - share
    q = torch.full_like(logits, 1 / classes) if uniform else (log_p / tau).softmax(-1)
    hard = -log_p.gather(1, labels[:, None]).squeeze(1)
    kl = divergence_from_uniform(q.log())
    return (1 - alpha) * hard + alpha * soft_cross_entropy(log_p, q) + alpha * tau * kl


def value_by_loops(row, label, tau, options):
    alpha, best = mass(row, **options), optimum(row, tau)
    target = mixed(one_hot(label, len(row)), best, alpha)
    return weighted_cross_entropy(target, row) + alpha * tau * divergence(best)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("tau", [0.5, 1.25, 20.0])
@pytest.mark.parametrize("count", [7, 3000])  # few logits and many take other ways
def test_the_hypergradient_is_that_of_equation_14(mode, tau, count):
    logits, labels = batch(count, 5)
    loss = LABO(tau, hypergradient=True, reduction="none", **MODES[mode])
    rule = loss.rule(Batch(logits, labels, None, -100), None)
    assert closed_form._KINDS[rule.kind] is closed_form._labo  # so it is the closed form that is tested
    assert rule.values[3] == 2.0
    value, slope = value_and_gradient(loss, logits, labels)
    expected, by_autograd = value_and_gradient(lambda z: objective(z, labels, tau, MODES[mode]), logits)
    torch.testing.assert_close(value, expected, rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(slope, by_autograd, rtol=1e-10, atol=1e-12)
    with use_kernels("never"):
        reference, by_reference = value_and_gradient(loss, logits, labels)
    torch.testing.assert_close(reference, expected, rtol=1e-12, atol=1e-13)
    torch.testing.assert_close(by_reference, by_autograd, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("mode", MODES)
def test_the_hypergradient_against_finite_differences(mode):
    logits, labels = batch(4, 3)
    _, slope = value_and_gradient(
        LABO(1.25, hypergradient=True, reduction="sum", **MODES[mode]), logits, labels
    )
    step = 1e-6
    for row, label, found in zip(logits.tolist(), labels.tolist(), slope.tolist(), strict=True):
        for k in range(3):
            above, below = ([z + sign * step * (j == k) for j, z in enumerate(row)] for sign in (1, -1))
            up, down = (value_by_loops(each, label, 1.25, MODES[mode]) for each in (above, below))
            assert found[k] == pytest.approx((up - down) / (2 * step), rel=1e-6, abs=1e-8)


def test_the_formula_of_the_docstring():
    (row,), (label,) = (each.tolist() for each in batch(1, 4))
    tau, rho, p = 1.25, 0.5, softmax(row)
    alpha, best, h = mass(row, rho=rho), optimum(row, tau), -sum(each * math.log(each) for each in p)
    by_alpha = math.log(p[label]) + tau * math.log(4) - tau * math.log(sum(each ** (1 / tau) for each in p))
    expected = [
        p[k] - (1 - alpha) * (k == label) - alpha * best[k]
        + by_alpha * rho / math.log(4) * p[k] * (math.log(p[k]) + h)
        for k in range(4)
    ]  # fmt: skip
    _, slope = value_and_gradient(
        LABO(tau, rho, hypergradient=True), torch.tensor([row], dtype=torch.float64), torch.tensor([label])
    )
    assert slope[0].tolist() == pytest.approx(expected, rel=1e-11)


def test_with_a_fixed_alpha_only_the_value_changes():
    logits, labels = batch(6, 5)
    value, slope = value_and_gradient(LABO(alpha=0.3, hypergradient=True), logits, labels)
    with_kl, detached = value_and_gradient(LABO(alpha=0.3, include_kl=True), logits, labels)
    torch.testing.assert_close(value, with_kl, rtol=1e-12, atol=0)
    torch.testing.assert_close(slope, detached, rtol=1e-11, atol=1e-14)


def test_probabilities_ignored_rows_and_further_dimensions():
    logits, labels, probabilities = shaped((3, 2), 4)
    loss = LABO(hypergradient=True, reduction="none")
    onehot = torch.nn.functional.one_hot(labels, 4).movedim(-1, 1).double()
    value, slope = value_and_gradient(loss, logits, labels)
    again, same = value_and_gradient(loss, logits, onehot)
    torch.testing.assert_close(again, value, rtol=1e-12, atol=0)
    torch.testing.assert_close(same, slope, rtol=1e-10, atol=1e-13)
    assert torch.isfinite(loss(logits, probabilities)).all()
    labels[2, 1] = -100
    value, slope = value_and_gradient(loss, logits, labels)
    assert value[2, 1] == 0
    assert slope[2, :, 1].tolist() == [0.0] * 4


def test_derivatives_of_derivatives():
    logits, labels = batch(3, 4)
    loss = LABO(hypergradient=True, reduction="sum")
    assert torch.autograd.gradgradcheck(lambda z: loss(z, labels), logits.requires_grad_())
    mine = torch.autograd.functional.hessian(lambda z: loss(z, labels), logits)
    theirs = torch.autograd.functional.hessian(
        lambda z: objective(z, labels, 1.25, {"rho": 0.5}).sum(), logits
    )
    torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-11)


def test_an_impossible_class_and_a_single_one():
    logits = torch.tensor([[0.5, -1.0, -math.inf]], dtype=torch.float64)
    value, slope = value_and_gradient(LABO(hypergradient=True), logits, torch.tensor([1]))
    row = logits[0].tolist()
    assert value.item() == pytest.approx(value_by_loops(row, 1, 1.25, {"rho": 0.5}), rel=1e-12)
    assert torch.isfinite(slope).all()
    value, slope = value_and_gradient(LABO(hypergradient=True), torch.tensor([[3.0]]), torch.tensor([0]))
    assert (value.item(), slope.item()) == (0.0, 0.0)


def test_class_weights_are_refused():
    with pytest.raises(ValueError, match="hypergradient=True cannot be used with class weights"):
        LABO(hypergradient=True, weight=torch.ones(3))


@interpreted
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_there_is_no_kernel_for_it_and_the_rest_of_labo_has_one(dtype):
    logits, labels = batch(5, 7, dtype)
    loss = LABO(hypergradient=True)
    with planned("chosen") as launched:
        value, slope = value_and_gradient(loss, logits, labels)
        assert launched == []
        LABO(warmup="adaptive", warmup_steps=3)(logits, labels)
        assert launched
    wide = value_and_gradient(lambda z: objective(z, labels, 1.25, {"rho": 0.5}).mean(), logits.double())
    close = {"rtol": 1e-5, "atol": 1e-6} if dtype == torch.float32 else {"rtol": 0.02, "atol": 2e-3}
    torch.testing.assert_close(value.double(), wide[0], **close)
    torch.testing.assert_close(slope.double(), wide[1], **close)


def test_behind_a_linear_layer():
    generator = torch.Generator().manual_seed(0)
    hidden, weight = (torch.randn(n, 4, generator=generator, dtype=torch.float64) for n in (6, 5))
    labels, loss = torch.tensor([0, 1, 2, 3, 4, 0]), LABO(hypergradient=True)
    hidden.requires_grad_()
    (found,) = torch.autograd.grad(LinearLoss(loss, chunk_rows=2)(hidden, weight, labels), hidden)
    (expected,) = torch.autograd.grad(loss(hidden @ weight.T, labels), hidden)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-13)


# --- the warm-up ---


@pytest.mark.parametrize("mode", ["literal", "reversed"])
@pytest.mark.parametrize("hypergradient", [False, True])
def test_an_adaptive_warm_up_swaps_only_p(mode, hypergradient):
    options = MODES[mode]
    logits, labels = batch(6, 4)
    loss = LABO(
        1.25, warmup_steps=2, warmup="adaptive", hypergradient=hypergradient, reduction="none", **options
    )
    for _ in range(2):
        value, slope = value_and_gradient(loss, logits, labels)
        for place, (row, label) in enumerate(zip(logits.tolist(), labels.tolist(), strict=True)):
            target = mixed(one_hot(label, 4), [0.25] * 4, mass(row, **options))
            assert value[place].item() == pytest.approx(weighted_cross_entropy(target, row), rel=1e-11)
            if not hypergradient:
                expected = [a - b for a, b in zip(softmax(row), target, strict=True)]
                assert slope[place].tolist() == pytest.approx(expected, rel=1e-9, abs=1e-12)
    if hypergradient:
        _, whole = value_and_gradient(lambda z: objective(z, labels, 1.25, options, uniform=True), logits)
        torch.testing.assert_close(slope, whole, rtol=1e-10, atol=1e-12)
    after = LABO(1.25, hypergradient=hypergradient, reduction="none", **options)
    torch.testing.assert_close(loss(logits, labels), after(logits, labels))


def test_in_a_constant_warm_up_the_hypergradient_has_nothing_to_follow():
    logits, labels = batch(6, 4)
    found = value_and_gradient(LABO(hypergradient=True, warmup_steps=1), logits, labels)
    expected = value_and_gradient(LabelSmoothing(0.1), logits, labels)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


def test_two_alphas_in_the_warm_up_are_refused():
    with pytest.raises(ValueError, match=r"warmup_alpha \(0\.2\) is only for warmup='constant'"):
        LABO(warmup="adaptive", warmup_alpha=0.2)
    with pytest.raises(RecipeError, match=r"0\.2 is only for warmup: constant, but warmup is adaptive"):
        LABORecipe(warmup="adaptive", warmup_alpha=0.2)
    with pytest.raises(ValueError, match="warmup must be 'constant' or 'adaptive', not 'both'"):
        LABO(warmup="both")


def test_it_prints_its_reading():
    assert repr(LABO(hypergradient=True)) == "LABO(tau=1.25, rho=0.5, reading='literal', hypergradient=True)"
    assert repr(LABO(warmup_steps=7, warmup="adaptive")) == (
        "LABO(tau=1.25, rho=0.5, reading='literal', warmup_steps=7, warmup='adaptive')"
    )


def test_defaults_keep_what_recipes_mean():
    assert LABORecipe().canonical() == {"name": "labo"}
    assert LABORecipe(hypergradient=True).canonical() == {"name": "labo", "hypergradient": True}
    assert LABORecipe(warmup="adaptive").canonical() == {"name": "labo", "warmup": "adaptive"}


@pytest.mark.parametrize("adaptive", [False, True])
def test_a_pack_of_hypergradients_is_its_runs(adaptive):
    logits = torch.stack([batch(6, 5, torch.float32, seed=run)[0] for run in range(3)])
    labels = torch.stack([batch(6, 5, seed=run)[1] for run in range(3)])
    rhos, options = [0.0, 0.5, 1.0], {"warmup_steps": 2, "hypergradient": True}
    options |= {"warmup": "adaptive"} if adaptive else {}
    pack = LABO(rho=torch.tensor(rhos), **options)
    singles = [LABO(rho=rho, **options) for rho in rhos]
    for _ in range(3):
        found, slope = value_and_gradient(pack, logits, labels)
        for run, single in enumerate(singles):
            alone = value_and_gradient(single, logits[run], labels[run])
            torch.testing.assert_close(found[run], alone[0])
            torch.testing.assert_close(slope[run], alone[1], rtol=1e-4, atol=1e-6)


def test_a_learnt_tau_gets_its_slope():
    logits, labels = batch(6, 4)
    tau = nn.Parameter(torch.tensor(1.5, dtype=torch.float64))
    LABO(tau, hypergradient=True)(logits, labels).backward()
    step = 1e-6
    up, down = (objective(logits, labels, 1.5 + sign * step, {"rho": 0.5}).mean() for sign in (1, -1))
    assert tau.grad.item() == pytest.approx(((up - down) / (2 * step)).item(), rel=1e-6)
