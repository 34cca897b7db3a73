"""timm on a torch without CUDA: torchvision's operators are declared, which it looks for when it is imported."""

from __future__ import annotations

import contextlib
import importlib.util
from typing import Any

import pytest
import torch


def declare() -> Any:
    """Declare them; what is given back must be kept as long as they are needed."""
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        with contextlib.suppress(RuntimeError):  # there already
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library


def timm() -> Any:
    """timm, or a skip that says what is missing."""
    for name in ("timm", "torchvision"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed; the formulas of timm are checked without it")
    timm.declared = declare()  # type: ignore[attr-defined]
    import timm as found

    return found
