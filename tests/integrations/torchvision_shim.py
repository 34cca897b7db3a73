"""timm on a torch without CUDA: torchvision's operators are declared, which it looks for when it is imported."""

from __future__ import annotations

import contextlib
import importlib.util

import pytest
import torch


def timm():
    """timm, or a skip that says what is missing."""
    for name in ("timm", "torchvision"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed; the formulas of timm are checked without it")
    library = torch.library.Library("torchvision", "DEF")
    for signature in (
        "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
        "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    ):
        with contextlib.suppress(RuntimeError):  # there already
            library.define(signature)
    timm._library = library  # it must outlive the import
    import timm as found

    return found
