"""Set-up for all tests."""

from __future__ import annotations

import os
from collections.abc import Generator
from importlib.metadata import version

# Before torch loads: bf16 matrix products die with "Illegal instruction" on some virtual CPUs that claim AMX.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16")
# Tests run side by side, and so do the programs they start; one thread each is many times faster than all of them
# fighting for every core.
os.environ["OMP_NUM_THREADS"] = "1"

import pytest
import torch

# Before Triton loads: without a GPU its kernels run in the interpreter.
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")

from softtargets.losses.autograd import _TRITON_IS_THERE
from softtargets.recipes import MLP, SGD, Digits, LabelSmoothing, Linear, Recipe, Shift, Symmetric

torch.set_num_threads(1)  # also where torch was loaded before

# With a Triton before 3.3, the one of torch 2.6, losses are computed without kernels, and there is nothing to test.
KERNELS = ("losses/kernels", "losses/test_autograd.py", "models/kernels", "translation/kernels")
collect_ignore = [] if _TRITON_IS_THERE else list(KERNELS)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not torch.cuda.is_available():
        for item in items:
            if "cuda" in item.keywords:
                item.add_marker(pytest.mark.skip(reason="needs an NVIDIA GPU"))


# What Triton's interpreter says where it fails before the given version: the compiler, and so a GPU, does not.
INTERPRETER = {
    "only 0-dimensional arrays": (
        (3, 7),
        "takes an array of one for a number, which numpy refuses since 2.4",
    ),
    "no attribute 'get_int1_ty'": ((3, 4), "cannot combine tensors and booleans"),
}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, None, None]:
    try:
        return (yield)
    except Exception as error:
        for said, (fixed, why) in INTERPRETER.items():
            if _says(error, said) and tuple(map(int, version("triton").split(".")[:2])) < fixed:
                pytest.skip(f"the interpreter of Triton {version('triton')} {why}")
        raise


def _says(error: BaseException, words: str) -> bool:
    several = getattr(error, "exceptions", ())  # of Hypothesis
    return all(_says(each, words) for each in several) if several else words in str(error)


@pytest.fixture(autouse=True)
def own_directories(monkeypatch, tmp_path):
    """No test reads or writes the user's runs."""
    monkeypatch.setenv("SOFTTARGETS_RUNS", str(tmp_path / "runs"))


@pytest.fixture
def recipe() -> Recipe:
    """A training with everything that could break a resume: momentum, dropout, augmentation, noise, a schedule."""
    return Recipe(
        data=Digits(validation=100, limit=150),
        model=MLP(hidden=(32,), dropout=0.2),
        regulariser=LabelSmoothing(alpha=0.1),
        optimiser=SGD(lr=0.1, momentum=0.9, weight_decay=1e-4),
        schedule=Linear(),
        augmentation=(Shift(pixels=1),),
        noise=Symmetric(rate=0.1),
        epochs=4,
        batch=32,
    )
