from __future__ import annotations

import os

import pytest
import torch
from torch.nn import functional as F

from softtargets.losses import (
    LABO,
    ConfidencePenalty,
    CrossEntropy,
    Distillation,
    FocalLoss,
    LabelSmoothing,
    LinearLoss,
    LinearTeacher,
    OnlineLabelSmoothing,
    top_logits,
    use_kernels,
)

ROWS, WIDTH, CLASSES = 10, 6, 11
WEIGHT = torch.linspace(0.5, 2.0, CLASSES)


def layer(dtype=torch.float64, seed=0):
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype).requires_grad_()

    target = torch.randint(CLASSES, (ROWS,), generator=generator)
    target[3] = -100
    return normal(ROWS, WIDTH), normal(CLASSES, WIDTH), normal(CLASSES), target


def losses(reduction="mean"):
    return {
        "cross entropy": CrossEntropy(reduction=reduction),
        "label smoothing": LabelSmoothing(0.2, reduction=reduction, weight=WEIGHT.double()),
        "prior": LabelSmoothing(0.2, "others", prior=torch.softmax(WEIGHT, 0), reduction=reduction),
        "labo": LABO(reduction=reduction),
        "confidence penalty": ConfidencePenalty(0.3, reduction=reduction),
        "focal": FocalLoss(reduction=reduction),
        "distillation": Distillation(2.0, 0.4, True, True, reduction=reduction),
        "matching": Distillation(beta=0.6, match="logits", reduction=reduction),
    }


def teacher_for(name, dtype=torch.float64):
    generator = torch.Generator().manual_seed(7)
    hidden = torch.randn(ROWS, 3, generator=generator, dtype=torch.float64).to(dtype)
    weight = torch.randn(CLASSES, 3, generator=generator, dtype=torch.float64).to(dtype)
    return LinearTeacher(hidden, weight) if name in ("distillation", "matching") else None


def materialised(loss, hidden, weight, target, bias, teacher):
    logits = F.linear(hidden, weight, bias)
    if teacher is None:
        return loss(logits, target)
    taught = F.linear(teacher.hidden, teacher.weight) if isinstance(teacher, LinearTeacher) else teacher
    return loss(logits, target, taught)


def both(loss, chunk_rows, dtype=torch.float64, teacher=None, bias=True, **options):
    """(loss, gradients) of the whole and in chunks, with some gradient from above."""
    found = []
    for whole in (True, False):
        hidden, weight, offset, target = layer(dtype)
        offset = offset if bias else None
        if whole:
            value = materialised(loss, hidden, weight, target, offset, teacher)
        else:
            value = LinearLoss(loss, chunk_rows, **options)(hidden, weight, target, offset, teacher)
        above = torch.linspace(0.5, -2.0, max(1, value.numel()), dtype=value.dtype).reshape(value.shape)
        inputs = [each for each in (hidden, weight, offset) if each is not None]
        found.append((value, *torch.autograd.grad((value * above).sum(), inputs)))
    return found


@pytest.mark.parametrize("name", losses())
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("chunk_rows", [1, 3, 10, 64])
def test_chunks_give_what_the_whole_gives(name, reduction, chunk_rows):
    whole, chunked = both(losses(reduction)[name], chunk_rows, teacher=teacher_for(name))
    for one, other in zip(whole, chunked, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", losses())
@pytest.mark.parametrize("reduction", ["mean", "none"])
def test_with_kernels_too(name, reduction):
    if pytest.importorskip("triton") and os.environ.get("TRITON_INTERPRET") != "1":
        pytest.skip("needs Triton's interpreter")
    loss = losses(reduction)[name].float()
    teacher = teacher_for(name, torch.float32)
    (whole, _), (_, chunked) = (
        both(loss, 4, torch.float32, teacher),
        _with_kernels(loss, teacher),
    )
    for one, other in zip(whole, chunked, strict=True):
        torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-5)


def _with_kernels(loss, teacher):
    with use_kernels("always"):
        return both(loss, 4, torch.float32, teacher)


def test_stored_logits_of_a_teacher_whole_or_only_the_largest():
    stored = F.linear(*teacher_for("distillation")[:2])
    for teacher in (stored, top_logits(stored, 3)):
        whole, chunked = both(Distillation(2.0, 0.4), 3, teacher=teacher)
        for one, other in zip(whole, chunked, strict=True):
            torch.testing.assert_close(other, one, rtol=1e-12, atol=1e-13)


def test_tokens_of_sentences():
    hidden, weight, _, target = layer()
    loss = LinearLoss(LABO(reduction="none"), 4)
    flat = loss(hidden, weight, target)
    shaped = loss(hidden.reshape(2, 5, WIDTH), weight, target.reshape(2, 5))
    assert shaped.shape == (2, 5)
    assert torch.equal(shaped.reshape(-1), flat)


def test_without_gradients_it_is_the_same_loss():
    hidden, weight, bias, target = layer()
    loss = LinearLoss(LabelSmoothing(0.1), 3)
    with torch.no_grad():
        quiet = loss(hidden, weight, target, bias)
    assert not quiet.requires_grad
    torch.testing.assert_close(quiet, loss(hidden, weight, target, bias).detach(), rtol=1e-14, atol=0)


def test_only_what_is_learnt_gets_a_gradient():
    hidden, weight, bias, target = layer()
    LinearLoss(LABO(), 3)(hidden.detach(), weight, target, bias.detach()).backward()
    assert weight.grad is not None
    assert hidden.grad is None


def test_everything_ignored_or_nothing_there():
    hidden, weight, _, target = layer()
    ignored = torch.full_like(target, -100)
    for reduction, expected in (("mean", float("nan")), ("sum", 0.0)):
        value = LinearLoss(LabelSmoothing(0.1, reduction=reduction), 3)(hidden, weight, ignored)
        torch.testing.assert_close(value.item(), expected, equal_nan=True)
    empty = LinearLoss(LabelSmoothing(0.1, reduction="none"))(hidden[:0], weight, target[:0])
    assert empty.shape == (0,)


def test_single_precision_sums_of_half_precision_weights():
    """Rounded after every chunk, the gradient of the weight is further from the truth than rounded once."""
    truth = both(LABO(), 1)[0][2]
    errors = []
    for accumulate in (None, torch.float32):
        chunked = both(LABO(), 1, torch.bfloat16, accumulate=accumulate)[1][2]
        assert chunked.dtype == torch.bfloat16
        errors.append((chunked.double() - truth).norm().item())
    assert errors[1] < errors[0]


def test_autocast_multiplies_in_half_precision_and_keeps_single_gradients():
    hidden, weight, bias, target = layer(torch.float32)
    with torch.autocast("cpu", torch.bfloat16):
        value = LinearLoss(LABO(), 3)(hidden, weight, target, bias)
        whole = LABO()(F.linear(hidden, weight, bias), target)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, whole, rtol=1e-2, atol=1e-3)
    value.backward()
    assert weight.grad.dtype == torch.float32


def test_a_scaled_loss_saves_small_half_gradients():
    """Gradients too small for fp16 survive when the loss is scaled up, as a gradient scaler does."""
    found = []
    for dtype in (torch.float64, torch.float16):
        hidden, weight, _, target = layer(dtype)
        many = (
            hidden.detach().repeat(4000, 1).requires_grad_()
        )  # so that each has little influence on the mean
        value = LinearLoss(LabelSmoothing(0.1), 4096)(many, weight, target.repeat(4000))
        found.append(torch.autograd.grad(value.float() * 2.0**14, many)[0].double())
    exact, half = found
    assert (half - exact).norm() < 2e-3 * exact.norm()


def test_a_step_of_the_warm_up_is_counted_once():
    hidden, weight, _, target = layer()
    loss = LABO(warmup_steps=2)
    chunked = LinearLoss(loss, 3)
    first = chunked(hidden, weight, target)
    assert loss.step.item() == 1
    torch.testing.assert_close(first, LabelSmoothing(0.1)(F.linear(hidden, weight), target))


def test_gradients_come_once():
    hidden, weight, _, target = layer()
    value = LinearLoss(LABO(), 3)(hidden, weight, target)
    value.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="computes its gradients once"):
        value.backward()


def test_the_chunk_grows_as_the_vocabulary_shrinks():
    loss = LinearLoss(LABO())
    assert loss._chunk(torch.empty(131072, 4, dtype=torch.bfloat16)) == 1024
    assert loss._chunk(torch.empty(32768, 4, dtype=torch.bfloat16)) == 4096
    assert loss._chunk(torch.empty(10_000_000, 1)) == 128


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"hidden": torch.zeros(10, 5)}, ValueError, "same d"),
        ({"target": torch.zeros(9).long()}, ValueError, r"target must have shape \(10,\)"),
        ({"target": torch.zeros(10, 11)}, TypeError, "target must be class indices"),
        ({"bias": torch.zeros(3)}, ValueError, "bias must have shape"),
        ({"hidden": torch.zeros(10, 6).long()}, TypeError, "hidden must be"),
        ({"target": torch.full((10,), 11)}, ValueError, "target has the label 11"),
    ],
)
def test_what_does_not_fit_is_refused(change, error, message):
    call = {
        "hidden": torch.zeros(10, 6),
        "weight": torch.zeros(11, 6),
        "target": torch.zeros(10).long(),
    } | change
    with pytest.raises(error, match=message):
        LinearLoss(LABO())(**call)


def test_losses_it_cannot_take_are_refused():
    with pytest.raises(TypeError, match="keeps a table"):
        LinearLoss(OnlineLabelSmoothing(11))
    with pytest.raises(TypeError, match="must be one of softtargets"):
        LinearLoss(torch.nn.CrossEntropyLoss())
    with pytest.raises(TypeError, match="needs a teacher"):
        LinearLoss(Distillation())(torch.zeros(10, 6), torch.zeros(11, 6), torch.zeros(10).long())
    with pytest.raises(ValueError, match="teacher is for 9 examples"):
        LinearLoss(Distillation())(
            torch.zeros(10, 6), torch.zeros(11, 6), torch.zeros(10).long(), teacher=torch.zeros(9, 11)
        )
    with pytest.raises(ValueError, match="chunk_rows must be at least 1"):
        LinearLoss(LABO(), 0)
