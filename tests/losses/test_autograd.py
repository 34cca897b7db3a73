from __future__ import annotations

import copy
import gc
import os
import pickle
import subprocess
import sys
import weakref

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, jacrev, stack_module_state

pytest.importorskip("triton")

from softtargets.losses import (
    LABO,
    AntiFocalLoss,
    BetaSmoothing,
    ConfidencePenalty,
    CrossEntropy,
    Distillation,
    FocalLoss,
    LabelSmoothing,
    OnlineLabelSmoothing,
    autograd,
    use_kernels,
)
from softtargets.losses.kernels import launch

from .kernels.running import agree, class_weights, exactly, example, interpreted, planned, run
from .making import distribution, matrix

pytestmark = interpreted


def both(function):
    """What a function returns without kernels and with them."""
    with use_kernels("never"):
        plain = function()
    with planned("chosen") as launches:
        fused = function()
    assert launches
    return plain, fused


def close(found, expected, rtol=1e-5, atol=1e-6, **more):
    torch.testing.assert_close(found, expected, rtol=rtol, atol=atol, equal_nan=True, **more)


def small(dtype=torch.float32, rows=3, classes=7):
    logits, labels, _ = example(rows, classes, dtype)
    return logits.requires_grad_(), labels


# --- when a kernel is used ---


def test_the_mode_holds_inside_the_block_and_nowhere_else():
    before = autograd._mode
    with use_kernels("always"):
        assert autograd._mode == "always"
        with use_kernels("never"):
            assert autograd._mode == "never"
        assert autograd._mode == "always"
    assert autograd._mode == before
    with pytest.raises(KeyError), use_kernels("always"):
        raise KeyError
    assert autograd._mode == before


def test_other_modes_are_refused_and_change_nothing():
    before = autograd._mode
    with pytest.raises(
        ValueError, match=r"'auto', 'always' or 'never', not 'allways' \(did you mean 'always'"
    ):
        use_kernels("allways").__enter__()
    assert autograd._mode == before


def in_a_program(value):
    environment = {**os.environ, "SOFTTARGETS_KERNELS": value, "TRITON_INTERPRET": "1"}
    code = (
        "import torch\n"
        "from softtargets.losses import LabelSmoothing\n"
        "LabelSmoothing()(torch.zeros(2, 3), torch.tensor([0, 1]))\n"
        "import sys; print('softtargets.losses.kernels.launch' in sys.modules)"
    )
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120
    )


@pytest.mark.parametrize(("value", "wanted"), [("always", "True"), ("auto", "False")])
def test_the_environment_chooses_for_a_whole_program(value, wanted):
    done = in_a_program(value)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == wanted


def test_the_environment_is_checked():
    result = in_a_program("sometimes")
    assert result.returncode != 0
    assert "SOFTTARGETS_KERNELS must be 'auto', 'always' or 'never', not 'sometimes'" in result.stderr


def refuse(*arguments, **options):
    raise AssertionError("a kernel was launched")


@pytest.fixture
def no_kernels(monkeypatch):
    for name in ("mean_or_sum", "per_row", "gradient_of_rows"):
        monkeypatch.setattr(launch, name, refuse)


def test_on_the_cpu_kernels_run_only_when_told_to(no_kernels):
    logits, labels = small()
    for mode in ("auto", "never"):
        with use_kernels(mode):
            for reduction in ("mean", "none"):
                LabelSmoothing(reduction=reduction)(logits, labels).sum().backward()
    with use_kernels("always"), pytest.raises(AssertionError, match="launched"):
        LabelSmoothing()(logits, labels)


def test_what_kernels_cannot_do_is_left_to_plain_pytorch(no_kernels):
    logits, labels = small()
    weight = class_weights(7)
    with use_kernels("always"):
        LabelSmoothing()(logits.double(), labels)
        LabelSmoothing()(logits, torch.softmax(logits.detach(), -1))
        LabelSmoothing()(torch.zeros(0, 7), labels[:0])
        Distillation(weight=weight)(logits, labels, logits)
        LABO(include_kl=True, weight=weight)(logits, labels)


# --- gradients ---


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("factor", [3.0, -0.5, 0.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_gradient_is_multiplied_by_what_comes_from_above(reduction, factor, dtype):
    logits, labels = small(dtype)
    loss = LabelSmoothing(reduction=reduction)

    def gradient():
        return torch.autograd.grad((loss(logits, labels).float() * factor).sum(), logits)[0]

    plain, fused = both(gradient)
    close(fused, plain, rtol=1e-5 if dtype == torch.float32 else 2e-2)


def test_large_gradients_are_multiplied_by_a_kernel_to_the_same_effect(monkeypatch):
    monkeypatch.setattr(autograd, "LOOK_FIRST", 1)
    logits, labels = small()
    for factor in (1.0, 3.0):
        close(
            *both(lambda factor=factor: torch.autograd.grad(LABO()(logits, labels) * factor, logits)[0])[::-1]
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_a_factor_of_one_leaves_every_bit(dtype):
    values = torch.randn(100, generator=torch.Generator().manual_seed(0)).to(dtype)
    values[3], values[4], values[5], values[6] = torch.inf, -0.0, torch.finfo(dtype).tiny / 2, torch.nan
    before = values.clone()
    launch.scale_(values, torch.tensor(1.0))
    whole = torch.int32 if dtype == torch.float32 else torch.int16
    assert torch.equal(values.view(whole), before.view(whole))
    values[5] = before[5] = 1.0  # the interpreter does not know bfloat16 numbers as small as that
    launch.scale_(values, torch.tensor(-2.0))
    close(values, before * -2, rtol=0, atol=0)
    launch.scale_(values, torch.tensor(0.5, dtype=torch.float16))
    close(values, -before, rtol=0, atol=0)


@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_a_kept_graph_can_be_used_again(reduction):
    logits, labels = small()
    loss = LabelSmoothing(reduction=reduction)

    def gradients():
        total = loss(logits, labels).sum()
        first = torch.autograd.grad(total, logits, retain_graph=True)[0].clone()
        second = torch.autograd.grad(total * 2, logits, retain_graph=True)[0].clone()
        return first, second, torch.autograd.grad(total, logits)[0]

    for plain, fused in zip(*both(gradients), strict=True):
        close(fused, plain)


def test_gradients_given_out_are_not_changed_by_the_next_ones():
    logits, labels = small()
    with use_kernels("always"):
        loss = LabelSmoothing()(logits, labels)
    (first,) = torch.autograd.grad(loss, logits, retain_graph=True)
    kept = first.clone()
    torch.autograd.grad(loss, logits, torch.tensor(5.0))
    assert torch.equal(first, kept)


def test_a_graph_that_was_not_kept_is_gone():
    logits, labels = small()
    with use_kernels("always"):
        loss = LabelSmoothing()(logits, labels)
        loss.backward()
        with pytest.raises(RuntimeError, match="second time"):
            loss.backward()


MADE = {
    "label smoothing": LabelSmoothing,
    "prior": lambda **more: LabelSmoothing(0.3, "others", prior=distribution(7).float(), **more),
    "labo": LABO,
    "focal": FocalLoss,
    "penalty": lambda **more: ConfidencePenalty(0.4, **more),
}


@pytest.mark.parametrize("name", MADE)
def test_second_derivatives_are_those_of_plain_pytorch(name):
    logits, labels = small()
    loss = MADE[name](weight=class_weights(7))

    def second():
        (first,) = torch.autograd.grad(loss(logits, labels).square(), logits, create_graph=True)
        return first.detach(), torch.autograd.grad(first.square().sum(), logits)[0]

    for plain, fused in zip(*both(second), strict=True):
        close(fused, plain)


def test_second_derivatives_of_distillation():
    logits, labels = small()
    loss = Distillation(2.0, 0.5, student_temperature=True)

    def second():
        (first,) = torch.autograd.grad(
            loss(logits, labels, logits.detach().flip(0)), logits, create_graph=True
        )
        return torch.autograd.grad(first.square().sum(), logits)[0]

    close(*both(second)[::-1])


def test_second_derivatives_without_reduction_are_refused_with_advice():
    logits, labels = small()
    with use_kernels("always"):
        (first,) = torch.autograd.grad(
            LabelSmoothing(reduction="none")(logits, labels).square().sum(), logits, create_graph=True
        )
        with pytest.raises((NotImplementedError, RuntimeError), match="use_kernels"):
            torch.autograd.grad(first.square().sum(), logits)


def test_the_last_step_of_a_warm_up_has_its_own_second_derivatives():
    """The step is counted when the loss is called, and the gradient of the gradient is wanted later."""
    logits, labels = small()

    def first():
        loss = LABO(warmup_steps=1)
        return torch.autograd.grad(loss(logits, labels), logits, create_graph=True)[0].detach()

    close(*both(first)[::-1])


def test_random_losses_differentiate_what_they_drew():
    logits, labels = small()

    def first():
        torch.manual_seed(0)
        loss = BetaSmoothing(0.3)(logits, labels)
        torch.manual_seed(1)
        return torch.autograd.grad(loss, logits, create_graph=True)[0].detach()

    close(*both(first)[::-1])


def test_finite_differences():
    """Single precision allows no more than a few digits."""
    for loss in (LabelSmoothing(), LABO(alpha=0.3, tau=1e9), FocalLoss(1.0), ConfidencePenalty(0.3)):
        logits, labels = small(rows=2, classes=4)
        with use_kernels("always"):
            (gradient,) = torch.autograd.grad(loss(logits, labels), logits)
            for place in ((0, 0), (1, 2)):
                moved = [logits.detach().clone() for _ in range(2)]
                moved[0][place] += 0.02
                moved[1][place] -= 0.02
                slope = (loss(moved[0], labels) - loss(moved[1], labels)) / 0.04
                assert gradient[place].item() == pytest.approx(slope.item(), rel=2e-3, abs=1e-4)


def test_without_gradients_the_loss_is_the_same():
    logits, labels = small()
    with use_kernels("always"):
        for reduction in ("mean", "none"):
            loss = LABO(reduction=reduction)
            wanted = loss(logits, labels)
            with torch.no_grad():
                found = loss(logits, labels)
            assert not found.requires_grad
            close(found, wanted.detach(), rtol=1e-7)
            close(loss(logits.detach(), labels), wanted.detach(), rtol=1e-7)
            with torch.inference_mode():
                close(loss(logits.detach(), labels).clone(), wanted.detach(), rtol=1e-7)


def test_the_logits_may_change_before_the_gradient_is_asked_for():
    """It is there already; only gradients of gradients, or a second gradient, would need the logits again."""
    source, labels = small()
    with use_kernels("always"):
        wanted = torch.autograd.grad(LabelSmoothing()(source, labels), source)[0]
        logits = source * 1
        loss = LabelSmoothing()(logits, labels)
        logits.add_(1)
        close(torch.autograd.grad(loss, source, retain_graph=True)[0], wanted)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            torch.autograd.grad(loss, source, retain_graph=True)
        logits = source * 1
        loss = LabelSmoothing()(logits, labels)
        logits.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            torch.autograd.grad(loss, source, create_graph=True)


@pytest.mark.parametrize("inplace", [False, True])
def test_a_loss_kept_for_the_record_keeps_no_logits(inplace):
    """After the backward pass nothing of the batch is left, as after torch's own."""
    source, labels = small()
    with use_kernels("always"):
        logits = source * 1
        seen = weakref.ref(logits)
        loss = LabelSmoothing(inplace=inplace)(logits, labels)
        loss.backward()
        del logits
        gc.collect()
    assert seen() is None


# --- in place ---


@pytest.mark.parametrize("loss", [LabelSmoothing, LABO, lambda **more: ConfidencePenalty(0.2, **more)])
@pytest.mark.parametrize("how", ["tile", "tile in chunks", "held", "sweep", "parts"])
def test_in_place_the_loss_and_gradient_are_the_same_and_need_no_memory(loss, how):
    source, labels = small(classes=12)
    value, gradient = exactly(loss(), source.detach(), labels)
    seen = []
    logits = source * 1
    logits.register_hook(lambda each: seen.append((each.data_ptr(), each.clone())))
    with planned(how):
        found = loss(inplace=True)(logits, labels)
    found.backward()
    assert seen[0][0] == logits.data_ptr()
    agree((found.detach(), seen[0][1]), (value, gradient), torch.float32)
    close(source.grad, gradient.float())


@pytest.mark.parametrize("shape", [(2, 5, 3), (2, 5, 2, 3)])
@pytest.mark.parametrize("last", [False, True])
def test_in_place_in_every_layout(shape, last):
    generator = torch.Generator().manual_seed(0)
    source = torch.randn(shape, generator=generator)
    if last:
        source = source.movedim(1, -1).contiguous().movedim(-1, 1)
    labels = torch.randint(5, (shape[0], *shape[2:]), generator=generator)
    wanted = exactly(LABO(), source, labels)
    source.requires_grad_()
    logits = source * 1
    seen = []
    logits.register_hook(lambda each: seen.append(each.data_ptr()))
    with use_kernels("always"):
        found = LABO(inplace=True)(logits, labels)
    (gradient,) = torch.autograd.grad(found, source)
    agree((found.detach(), gradient), wanted, torch.float32)
    assert seen == [logits.data_ptr()]


def test_in_place_with_rows_that_no_strides_describe():
    wide = torch.randn(2, 5, 2, 4, generator=torch.Generator().manual_seed(0))
    labels = torch.zeros(2, 2, 3, dtype=torch.int64)
    wanted = exactly(LabelSmoothing(), wide[..., :3], labels)
    source = wide.requires_grad_()
    with use_kernels("always"):
        found = LabelSmoothing(inplace=True)((source * 1)[..., :3], labels)
    (gradient,) = torch.autograd.grad(found, source)
    agree((found.detach(), gradient[..., :3]), wanted, torch.float32)
    assert not gradient[..., 3:].any()


def test_in_place_with_a_leaf():
    logits, labels = small()
    wanted = exactly(LabelSmoothing(), logits.detach().clone(), labels)
    with use_kernels("always"):
        found = LabelSmoothing(inplace=True)(logits, labels)
    found.backward()
    agree((found.detach(), logits.grad), wanted, torch.float32)


def test_in_place_one_example_for_all_rows_is_not_mixed_up():
    """Rows that share their memory cannot hold a gradient each: either that is refused or memory is taken."""
    source = torch.randn(1, 6, generator=torch.Generator().manual_seed(0))
    labels = torch.tensor([0, 3, 5])
    wanted = exactly(LabelSmoothing(), source.expand(3, 6), labels)[1].sum(0, keepdim=True)
    source.requires_grad_()
    with use_kernels("always"):
        try:
            LabelSmoothing(inplace=True)(source.expand(3, 6), labels).backward()
        except RuntimeError:
            return
    close(source.grad, wanted.float())


def test_in_place_there_is_one_gradient_and_no_gradient_of_it():
    for again in (False, True):
        source, labels = small()
        with use_kernels("always"):
            loss = LabelSmoothing(inplace=True)(source * 1, labels)
        if again:
            torch.autograd.grad(loss, source, retain_graph=True)
            with pytest.raises(RuntimeError, match=r"inplace=True, .* computed only once"):
                torch.autograd.grad(loss, source)
        else:
            with pytest.raises(RuntimeError, match="gradients of gradients not at all; use inplace=False"):
                torch.autograd.grad(loss, source, create_graph=True)


def test_in_place_nobody_else_may_need_the_logits():
    source, labels = small()
    with use_kernels("always"):
        logits = source * 1
        squares = logits.square().sum()
        loss = LabelSmoothing(inplace=True)(logits, labels)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            (loss + squares).backward()
        logits = source.exp()  # whose gradient is its value
        loss = LabelSmoothing(inplace=True)(logits, labels)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


def test_in_place_without_gradients_the_logits_stay():
    logits, labels = small()
    before = logits.detach().clone()
    with use_kernels("always"):
        with torch.no_grad():
            LabelSmoothing(inplace=True)(logits, labels)
        LabelSmoothing(inplace=True)(logits.detach(), labels)
    assert torch.equal(logits.detach(), before)


# --- precision ---


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_autocast_gives_a_single_loss_and_half_gradients(dtype, reduction):
    logits, labels = small(dtype)
    loss = LABO(reduction=reduction)
    upstream = None if reduction == "mean" else torch.ones(3)
    with torch.autocast("cpu", dtype=dtype), planned("chosen") as launches:
        found = run(loss, logits, labels, upstream=upstream)
    assert launches
    agree(found, exactly(loss, logits.detach(), labels), dtype, torch.float32)


def test_second_derivatives_under_autocast():
    logits, labels = small(torch.bfloat16)
    with use_kernels("always"), torch.autocast("cpu", dtype=torch.bfloat16):
        loss = LabelSmoothing()(logits, labels)
    (first,) = torch.autograd.grad(loss, logits, create_graph=True)
    close(first.detach().double(), exactly(LabelSmoothing(), logits.detach(), labels)[1], rtol=1e-2)
    assert torch.autograd.grad(first.float().square().sum(), logits)[0].isfinite().all()


def test_a_scaled_loss_saves_small_half_gradients():
    """What a gradient scaler is for: a gradient below the smallest half must survive when the loss was scaled up."""
    rows, classes = 32, 256
    logits = (8 * torch.randn(rows, classes, generator=torch.Generator().manual_seed(0))).half()
    labels = logits.float().argmax(-1)
    exact = exactly(CrossEntropy(), logits, labels)[1] * 2.0**16
    with use_kernels("always"), torch.autocast("cpu", dtype=torch.float16):
        leaf = logits.clone().requires_grad_()
        (CrossEntropy()(leaf, labels) * 2.0**16).backward()
    close(leaf.grad.double(), exact, rtol=2e-3, atol=1e-7)


# --- hyper-parameters that are learnt ---


@pytest.mark.parametrize("reduction", ["mean", "none"])
@pytest.mark.parametrize("logits_too", [False, True])
def test_hyper_parameters_that_are_learnt_have_the_right_gradient(reduction, logits_too):
    logits, labels = small()
    logits = logits.detach().requires_grad_(logits_too)
    for make in (
        lambda: LabelSmoothing(nn.Parameter(torch.tensor(0.2)), reduction=reduction),
        lambda: FocalLoss(nn.Parameter(torch.tensor(1.5)), reduction=reduction),
        lambda: ConfidencePenalty(nn.Parameter(torch.tensor(0.5)), reduction=reduction),
        lambda: LABO(rho=nn.Parameter(torch.tensor(0.5)), reduction=reduction),
        lambda: AntiFocalLoss(alpha=nn.Parameter(torch.tensor(0.5)), detach=False, reduction=reduction),
    ):
        gradients = []
        for mode in ("never", "always"):
            with use_kernels(mode):
                loss = make()
                loss(logits, labels).sum().backward()
                gradients.append([each.grad for each in loss.parameters()])
        assert gradients[0][0] is not None
        close(gradients[1][0], gradients[0][0])


def test_hyper_parameters_that_are_learnt_in_a_pack_or_through_torch_func():
    logits, labels = small()
    stacked = torch.stack([logits.detach(), logits.detach() + 1])
    gradients = []
    for mode in ("never", "always"):
        with use_kernels(mode):
            alphas = nn.Parameter(torch.tensor([0.1, 0.4]))
            LabelSmoothing(alphas)(stacked, labels.expand(2, 3)).sum().backward()
            loss = LabelSmoothing(torch.tensor(0.2))
            wanted = grad(lambda alpha, loss=loss: functional_call(loss, {"alpha": alpha}, (logits, labels)))
            gradients.append((alphas.grad, wanted(torch.tensor(0.2)).detach()))
    for plain, fused in zip(*gradients, strict=True):
        assert plain.abs().min() > 0
        close(fused, plain)


# --- the operators, torch.compile and torch.func ---


def operator_arguments(kind="labo", **options):
    logits, labels, teacher = example(3, 6, torch.float32)
    labels[1] = -100
    numbers = {"labo": [1.0, -0.5, 0.8, 0.0], "mixture": [0.9, 0.1], "matching": [0.5, 0.5]}[kind]
    return (
        options.get("logits", logits), labels, options.get("values"), [] if "values" in options else numbers,
        options.get("table"), options.get("weight"), teacher if kind == "matching" else None, kind, -100,
    )  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"kind": "mixture", "table": matrix(6).float(), "weight": class_weights(6)},
        {"values": torch.tensor([[1.0, -0.5, 0.8, 0.0]])},
        {"kind": "matching"},
    ],
    ids=["values", "table and weights", "numbers in a tensor", "teacher"],
)
def test_the_operators_are_what_torch_expects_of_operators(options):
    from softtargets.losses.kernels import ops

    assert ops.row_losses is not None
    arguments = operator_arguments(**options)
    logits = arguments[0].requires_grad_()
    torch.library.opcheck(torch.ops.softtargets.row_losses.default, (logits, *arguments[1:]))
    torch.library.opcheck(
        torch.ops.softtargets.row_gradients.default,
        (logits.detach(), *arguments[1:], torch.tensor([1.0, 2.0, 3.0])),
    )


def test_the_operators_take_deep_logits():
    from softtargets.losses.kernels import ops

    logits = torch.randn(2, 4, 3).transpose(0, 2)  # (3, 4, 2), not contiguous
    arguments = (torch.zeros(6, dtype=torch.int64), None, [0.9, 0.1], None, None, None, "mixture", -100)
    torch.library.opcheck(torch.ops.softtargets.row_losses.default, (logits.requires_grad_(), *arguments))
    found = ops.row_losses(logits, *arguments).detach()
    with use_kernels("never"):
        close(
            found.reshape(3, 2), LabelSmoothing(reduction="none")(logits, torch.zeros(3, 2).long()).detach()
        )


@pytest.fixture
def fresh_compiler():
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_compiled_as_eager(fresh_compiler, reduction):
    logits, labels = small()
    labels[0] = -100
    loss = LabelSmoothing(weight=class_weights(7), reduction=reduction)
    upstream = None if reduction != "none" else torch.tensor([1.0, -2.0, 3.0])
    wanted = run(loss, logits, labels, upstream=upstream)
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    with planned("chosen") as launches:
        found = run(lambda *call: compiled(*call), logits, labels, upstream=upstream)
    assert launches
    for one, other in zip(found, wanted, strict=True):
        close(one, other)


def test_compiled_through_a_warm_up(fresh_compiler):
    logits, labels = small()
    eager, compiled = LABO(warmup_steps=2), LABO(warmup_steps=2)
    step = torch.compile(compiled, backend="aot_eager", fullgraph=True)
    with use_kernels("always"):
        for _ in range(4):
            found, wanted = (run(each, logits, labels) for each in (lambda *call: step(*call), eager))
            close(found[0], wanted[0])
            close(found[1], wanted[1])
    assert compiled.step.item() == eager.step.item() == 4


def test_compiled_with_a_teacher_and_a_net(fresh_compiler):
    generator = torch.Generator().manual_seed(0)
    net = nn.Linear(4, 7)
    inputs = torch.randn(3, 4, generator=generator)
    taught, labels = torch.randn(3, 7, generator=generator), torch.tensor([1, 2, 3])
    loss = Distillation(2.0, 0.5)

    def total():
        return loss(net(inputs), labels, taught)

    with use_kernels("always"):
        wanted = torch.autograd.grad(total(), list(net.parameters()))
        found = torch.autograd.grad(
            torch.compile(total, backend="aot_eager", fullgraph=True)(), list(net.parameters())
        )
    for one, other in zip(found, wanted, strict=True):
        close(one, other)


TRANSFORMED = {
    "label smoothing": lambda: LabelSmoothing(weight=class_weights(7)),
    "matrix": lambda: LabelSmoothing(0.3, matrix=matrix(7).float()),
    "labo": LABO,
    "labo, warming up": lambda: LABO(warmup_steps=9).eval(),
    "hyper-parameter in a tensor": lambda: FocalLoss(torch.tensor(1.5)),
}


@pytest.mark.parametrize("name", TRANSFORMED)
def test_function_transforms_as_plain_pytorch(name):
    logits, labels = small()
    logits = logits.detach()
    stacked, many = torch.stack([logits, 2 * logits]), torch.stack([labels, labels.flip(0)])
    loss = TRANSFORMED[name]()
    for function in (
        lambda: grad(loss)(logits, labels),
        lambda: torch.vmap(loss)(stacked, many),
        lambda: torch.vmap(grad(loss), in_dims=(0, None))(stacked, labels),
        lambda: torch.vmap(loss, in_dims=(1, None))(stacked.movedim(0, 1).contiguous(), labels),
    ):
        plain, fused = both(function)
        close(fused, plain)


def test_first_derivatives_of_every_loss_by_jacrev():
    logits, labels = small(rows=2, classes=4)
    loss = LABO(reduction="none")
    close(*both(lambda: jacrev(loss)(logits.detach(), labels))[::-1])
    close(*both(lambda: torch.vmap(jacrev(loss))(logits.detach()[None], labels[None]))[::-1])


def test_transforms_of_deep_logits_and_teachers():
    generator = torch.Generator().manual_seed(0)
    logits, taught = torch.randn(2, 2, 5, 3, generator=generator), torch.randn(2, 5, 3, generator=generator)
    labels = torch.randint(5, (2, 2, 3), generator=generator)
    loss = Distillation(2.0, 0.5)
    close(*both(lambda: torch.vmap(loss, in_dims=(0, 0, None))(logits, labels, taught))[::-1])
    close(*both(lambda: torch.vmap(grad(loss), in_dims=(0, 0, None))(logits, labels, taught))[::-1])


def test_a_loss_inside_a_transform_of_something_else():
    """The logits carry a gradient, but the transform is not about them."""
    logits, labels = small()
    loss = LabelSmoothing()

    def gradient():
        losses = torch.vmap(lambda factor: factor * loss(logits, labels))(torch.tensor([1.0, 2.0]))
        return torch.autograd.grad(losses.sum(), logits)[0]

    close(*both(gradient)[::-1])


def test_many_gradients_at_once():
    logits, labels = small()
    loss = LabelSmoothing()

    def gradients():
        factors = torch.tensor([1.0, 2.0, -1.0])
        return torch.autograd.grad(loss(logits, labels), logits, factors, is_grads_batched=True)[0]

    close(*both(gradients)[::-1])


PACKS = {
    "label smoothing": lambda a, b: LabelSmoothing(a),
    "prior, others": lambda a, b: LabelSmoothing(a, "others", prior=distribution(7).float()),
    "labo": lambda a, b: LABO(tau=1 + b, rho=a),
    "focal": lambda a, b: FocalLoss(1 + a),
    "anti-focal": lambda a, b: AntiFocalLoss(1 + a, b, detach=False),
    "penalty": lambda a, b: ConfidencePenalty(b),
}


@pytest.mark.parametrize("name", PACKS)
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_a_pack_is_its_runs(name, reduction):
    a, b = torch.tensor([0.1, 0.3, 0.9]), torch.tensor([0.5, 0.1, 2.0])
    logits, labels, _ = example(6, 7, torch.float32)
    labels[1] = -100
    logits, labels = logits.reshape(3, 2, 7).requires_grad_(), labels.reshape(3, 2)

    def packed():
        loss = PACKS[name](a, b)
        loss.reduction = reduction
        losses = loss(logits, labels)
        return losses.detach(), torch.autograd.grad(losses.square().sum(), logits)[0]

    (value, gradient), (fused, fused_gradient) = both(packed)
    close(fused, value)
    close(fused_gradient, gradient)


def test_a_pack_through_its_warm_up():
    logits, labels, _ = example(4, 5, torch.float32)
    logits, labels = logits.reshape(2, 2, 5), labels.reshape(2, 2)

    def steps():
        loss = LABO(tau=torch.tensor([1.0, 3.0]), warmup_steps=2)
        return torch.stack([loss(logits, labels) for _ in range(3)]), loss.step.clone()

    (plain, count), (fused, fused_count) = both(steps)
    close(fused, plain)
    assert count.item() == fused_count.item() == 3
    assert (fused[0] - fused[2]).abs().min() > 1e-4


def test_a_pack_of_distillations():
    logits, labels, teacher = example(4, 5, torch.float32)
    logits, labels, teacher = logits.reshape(2, 2, 5), labels.reshape(2, 2), teacher.reshape(2, 2, 5)
    loss = Distillation(torch.tensor([1.0, 4.0]), 0.5, student_temperature=True, scale_gradients=True)
    close(*both(lambda: loss(logits, labels, teacher))[::-1])


@pytest.mark.parametrize("table", ["prior", "matrix", "weight"])
def test_runs_with_tables_of_their_own(table):
    make = {
        "prior": lambda seed: LabelSmoothing(0.2, prior=distribution(7, seed).float()),
        "matrix": lambda seed: LabelSmoothing(0.2, matrix=matrix(7, seed).float()),
        "weight": lambda seed: LabelSmoothing(0.2, weight=class_weights(7, seed)),
    }[table]
    losses = [make(seed) for seed in range(2)]
    _, buffers = stack_module_state(losses)
    logits, labels, _ = example(4, 7, torch.float32)
    logits, labels = logits.reshape(2, 2, 7), labels.reshape(2, 2)

    def one(own, *call):
        return functional_call(losses[0], own, call)

    for function in (torch.vmap(one), torch.vmap(grad(one, argnums=1))):
        close(*both(lambda function=function: function(buffers, logits, labels))[::-1])


def test_hessians_are_refused_with_advice():
    logits, labels = small(rows=2, classes=3)
    with use_kernels("always"), pytest.raises(NotImplementedError, match="use_kernels"):
        jacrev(jacrev(lambda z: LabelSmoothing()(z, labels)))(logits.detach())


def test_the_older_way_to_a_hessian():
    logits, labels = small(rows=2, classes=3)
    hessian = torch.autograd.functional.hessian
    close(*both(lambda: hessian(lambda z: LabelSmoothing()(z, labels), logits.detach()))[::-1])


# --- the losses themselves ---


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda loss: pickle.loads(pickle.dumps(loss))])
def test_copies_are_the_same_loss(copied):
    logits, labels = small()
    for loss in (LABO(warmup_steps=2), LabelSmoothing(torch.tensor(0.3), matrix=matrix(7).float())):
        with use_kernels("always"):
            loss(logits, labels).backward()
            other = copied(loss)
            for _ in range(2):
                close(other(logits, labels), loss(logits, labels), rtol=0, atol=0)


def test_a_loss_with_a_table_collects_as_before():
    logits, labels = small()

    def trained():
        loss = OnlineLabelSmoothing(7)
        loss(logits, labels).backward()
        loss.end_epoch()
        return torch.cat([loss.table.flatten(), loss(logits, labels).detach().reshape(1)])

    close(*both(trained)[::-1])


def test_a_step_of_training_is_the_same():
    generator = torch.Generator().manual_seed(0)
    inputs, labels = torch.randn(3, 4, generator=generator), torch.tensor([0, 2, 1])

    def weights():
        torch.manual_seed(0)
        net = nn.Linear(4, 3)
        optimiser = torch.optim.SGD(net.parameters(), lr=0.5, momentum=0.9)
        loss = LABO(warmup_steps=2, inplace=True)
        for _ in range(4):
            optimiser.zero_grad()
            loss(net(inputs), labels).backward()
            optimiser.step()
        return net.weight.detach()

    close(*both(weights)[::-1])
