from __future__ import annotations

import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("triton")

from .running import NAMES, PLANS, check, interpreted, losses

pytestmark = interpreted

DTYPES = [torch.float32, torch.bfloat16, torch.float16]
CLASSES = [1, 2, 3, 10, 17, 64, 100]
REDUCTIONS = ["mean", "sum", "none"]


def drawn():
    """Every loss with every second plan; the rest goes round so that each value meets many others."""
    generator = random.Random(5)
    for name in NAMES:
        for place, plan in enumerate(PLANS):
            if (place + NAMES.index(name)) % 2 == 0:
                continue
            dtype = generator.choice(DTYPES)
            classes = generator.choice([k for k in CLASSES if k in losses_of(name)])
            options = (generator.random() < 0.4, generator.random() < 0.5, generator.choice(REDUCTIONS))
            yield pytest.param(name, plan, dtype, classes, *options, id=f"{name}-{plan}-{classes}")


def losses_of(name):
    return [k for k in CLASSES if name in losses(k)] if "others" in name else CLASSES


@pytest.mark.parametrize(
    ("name", "plan", "dtype", "classes", "weighted", "ignored", "reduction"), list(drawn())
)
def test_a_kernel_computes_what_plain_pytorch_does(name, plan, dtype, classes, weighted, ignored, reduction):
    check(name, plan, 3, classes, dtype, weighted, ignored, reduction)


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("classes", [*CLASSES, 300])
def test_every_number_of_classes_fits_every_plan(plan, classes):
    check("label smoothing", plan, 2, classes, torch.float32, False, False, "sum", seed=1)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    name=st.sampled_from(NAMES),
    plan=st.sampled_from(PLANS),
    rows=st.integers(1, 5),
    classes=st.integers(2, 40),
    dtype=st.sampled_from(DTYPES),
    weighted=st.booleans(),
    ignored=st.booleans(),
    reduction=st.sampled_from(REDUCTIONS),
    seed=st.integers(0, 99),
    scale=st.sampled_from([0.01, 1.0, 10.0, 100.0]),
)
def test_everything_at_once(name, plan, rows, classes, dtype, weighted, ignored, reduction, seed, scale):
    check(name, plan, rows, classes, dtype, weighted, ignored, reduction, seed, scale)
