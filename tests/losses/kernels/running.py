"""Kernels run with a plan of one's choice and compared with plain PyTorch in double precision."""

from __future__ import annotations

import copy
import os
from contextlib import contextmanager

import pytest
import torch

from softtargets.losses import LABO, AntiFocalLoss, Distillation, FocalLoss, use_kernels
from softtargets.losses.autograd import _TRITON_IS_THERE
from softtargets.losses.kernels import launch

from ..making import every_loss

# Tensors on the CPU are for the interpreter; on a GPU there is test_cuda.
interpreted = pytest.mark.skipif(
    os.environ.get("TRITON_INTERPRET") != "1" or not _TRITON_IS_THERE,
    reason="runs in Triton's interpreter, from 3.3 on, so without a GPU",
)

# Here alone is written down how each kind of plan is made.
PLANS = ["chosen", "tile", "tile in chunks", "one row at a time", "held", "sweep", "parts"]


def plan(name, rows, classes):
    """Small blocks, so that a few classes already make several chunks, parts or stretches."""
    power = 1 << (classes - 1).bit_length()
    quarter, eighth = max(2, power // 4), max(1, power // 8)
    return {
        "tile": launch.Tiling(rows=2, block=max(16, power), warps=1),
        "tile in chunks": launch.Tiling(rows=2, block=quarter, warps=1, scatter=True),
        "one row at a time": launch.Tiling(rows=1, block=power, warps=1, programs=2),
        "held": launch.Tiling(rows=0, block=quarter, warps=1, parts=-(-classes // quarter)),
        "sweep": launch.Tiling(rows=0, block=eighth, warps=1, depth=2),
        "parts": launch.Tiling(rows=0, block=eighth, warps=1, depth=1, parts=3),
    }[name]


@contextmanager
def planned(name):
    """Kernels always, with this plan ("chosen": the one they choose); gives a list of the launches' sizes."""
    seen, choose = [], launch.tiling_for

    def plan_for(rows, classes, *rest, **more):
        seen.append((rows, classes))
        chosen = choose(rows, classes, *rest, **more)
        return chosen if name == "chosen" else plan(name, rows, classes)

    launch.tiling_for = plan_for
    try:
        with use_kernels("always"):
            yield seen
    finally:
        launch.tiling_for = choose


def losses(classes, **options):
    """Everything that kernels compute, by name; every one can be called as loss(logits, target, teacher)."""
    return every_loss(classes, **options) | {
        "labo, warming up": LABO(warmup_steps=5, warmup_alpha=0.3, **options),
        "labo, just warm": LABO(tau=0.7, warmup_steps=0, reading="reversed", **options),
        "labo, warmed up": warmed(LABO(tau=2.0, warmup_steps=2, **options), 2),
        "labo, with KL": LABO(tau=1.5, include_kl=True, **options),
        "labo, warming up with KL": LABO(warmup_steps=5, include_kl=True, **options),
        "focal, hyper-parameter in a tensor": FocalLoss(torch.tensor(1.5), **options),
        "anti-focal, as in the focal loss": AntiFocalLoss(0.5, 0.25, detach=False, **options),
        "distillation, T squared": Distillation(2.0, 0.7, scale_gradients=True, **options),
        "distillation, nothing hard": Distillation(2.0, 1.0, student_temperature=True, **options),
    }


def warmed(loss, steps):
    loss.step.fill_(steps)
    return loss


NAMES = list(losses(2))


def needs_teacher(name):
    return name.startswith("distillation")


def without_kernel(name, weighted):
    """What is left to plain PyTorch."""
    return weighted and (needs_teacher(name) or "KL" in name or name == "labo, reversed")


def example(rows, classes, dtype, seed=0, ignored=False, scale=3.0):
    """Logits, labels and a teacher's logits."""
    generator = torch.Generator().manual_seed(seed)
    logits = (scale * torch.randn(rows, classes, generator=generator)).to(dtype)
    teacher = (scale * torch.randn(rows, classes, generator=generator)).to(dtype)
    labels = torch.randint(classes, (rows,), generator=generator)
    if ignored:
        labels[torch.randperm(rows, generator=generator)[: (rows + 1) // 2]] = -100
    return logits, labels, teacher


def class_weights(classes, seed=0):
    return torch.rand(classes, generator=torch.Generator().manual_seed(seed)) + 0.1


def run(loss, logits, target, teacher=None, upstream=None):
    """Loss and gradient."""
    logits = logits.detach().requires_grad_()
    value = loss(logits, target, teacher)
    upstream = torch.ones_like(value) if upstream is None else upstream.to(value.dtype)
    (gradient,) = torch.autograd.grad(value, logits, upstream)
    return value.detach(), gradient


def exactly(loss, logits, target, teacher=None, upstream=None):
    """The same in plain PyTorch and double precision."""
    loss = copy.deepcopy(loss).double()
    if isinstance(teacher, torch.Tensor):
        teacher = teacher.double()
    if upstream is not None:
        upstream = upstream.double()
    with use_kernels("never"):
        return run(loss, logits.double(), target, teacher, upstream)


def rounding(dtype, device):
    """How far rounding may move a number: relatively, and near zero."""
    kind = torch.finfo(dtype)
    # Triton's interpreter cuts bfloat16 off instead of rounding to the nearest.
    truncated = dtype == torch.bfloat16 and device.type == "cpu"
    return kind.eps if truncated else kind.eps / 2, kind.smallest_normal * kind.eps


def agree(found, exact, dtype, loss_dtype=None, unit=1.0):
    """Loss and gradient to what single precision can do, and then to the rounding of the result.

    `unit` is the gradient that a whole unit of probability would have.
    """
    for value, wanted, kept in zip(found, exact, (loss_dtype or dtype, dtype), strict=True):
        assert value.dtype == kept
        relative, smallest = (0.0, 0.0) if kept == torch.float32 else rounding(kept, value.device)
        finite = wanted[wanted.isfinite()]
        size = max(unit, finite.abs().amax().item() if finite.numel() else 0.0)
        torch.testing.assert_close(
            value.double(), wanted, rtol=1.05 * relative + 1e-5, atol=smallest + 1e-6 * size, equal_nan=True
        )


def check(name, plan_name, rows, classes, dtype, weighted, ignored, reduction, seed=0, scale=3.0):
    """A loss by a kernel against the same loss in double precision."""
    weight = class_weights(classes, seed) if weighted else None
    loss = losses(classes, weight=weight, reduction=reduction)[name]
    logits, labels, teacher = example(rows, classes, dtype, seed, ignored, scale)
    upstream = None
    if reduction == "none":
        upstream = torch.randn(rows, generator=torch.Generator().manual_seed(seed)).to(dtype)
    exact = exactly(loss, logits, labels, teacher, upstream)
    with planned(plan_name) as launches:
        found = run(loss, logits, labels, teacher, upstream)
    assert bool(launches) != without_kernel(name, weighted)
    agree(found, exact, dtype, unit=1 / rows if reduction == "mean" else 1.0)
