"""Who takes part: ours, ours overwriting the logits, and the rivals.

Each is a function of logits and target, or after a projection of hidden states, weight and target.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks.bench import Contestant
from benchmarks.failures import Absent, installed
from benchmarks.losses.results import IN_PLACE, OURS
from benchmarks.losses.textbook import ComparedLoss
from softtargets import losses

Loss = Callable[..., Tensor]


def contestant(name: str, compared: ComparedLoss, given: Tensor | None, device: torch.device) -> Contestant:
    """One contestant for ``call(logits, target)``; `Absent` where there is none."""
    if name in (OURS, IN_PLACE):
        return Contestant(name, _ours(compared, given, device, name == IN_PLACE), overwrites=name == IN_PLACE)
    if name == "liger":
        return Contestant(name, _liger("LigerCrossEntropyLoss", compared, device), overwrites=True)
    function = compared.textbook if name == "eager" else torch.compile(compared.textbook, dynamic=False)
    return Contestant(name, function if given is None else _with(function, given))


def linear_contestant(name: str, compared: ComparedLoss, dtype: str, device: torch.device) -> Contestant:
    """One contestant for ``call(hidden, weight, target)``; `Absent` where there is none."""
    makers: dict[str, Callable[[], Loss]] = {
        OURS: lambda: losses.LinearLoss(compared.ours()).to(device),
        "materialised": lambda: _after_product(compared.ours().to(device)),
        "eager": lambda: _after_product(compared.textbook),
        "compile": lambda: torch.compile(_after_product(compared.textbook), dynamic=False),
        "liger": lambda: _weight_first(_liger("LigerFusedLinearCrossEntropyLoss", compared, device)),
        "torch": lambda: _torch(compared),
        "cce": lambda: _cut_cross_entropy(compared, dtype, device),
    }
    return Contestant(name, makers[name]())


def _ours(compared: ComparedLoss, given: Tensor | None, device: torch.device, in_place: bool) -> Loss:
    options: dict[str, Any] = {"table": given} if compared.given in ("prior", "matrix") else {}
    loss = compared.ours(**options)
    if in_place:
        if "inplace" not in inspect.signature(type(loss).__init__).parameters:
            raise Absent(f"{type(loss).__name__} cannot overwrite its logits in this version of softtargets")
        loss = compared.ours(**options, inplace=True)
    loss = loss.to(device)
    return _with(loss, given) if compared.given == "teacher" else loss


def _liger(name: str, compared: ComparedLoss, device: torch.device) -> Loss:
    if compared.fused is None:
        raise Absent("Liger has no such loss")
    _needs_gpu("Liger", device)
    module = installed("liger_kernel.transformers", "liger-kernel", "Liger")
    loss: Loss = getattr(module, name)(**compared.fused)
    return loss


def _torch(compared: ComparedLoss) -> Loss:
    """The function of torch 2.13 and later, in chunks: whole it is a product and a cross-entropy, as eager."""
    if compared.fused is None:
        raise Absent("torch has no such loss after a projection")
    if not hasattr(F, "linear_cross_entropy"):
        raise Absent(f"torch {torch.__version__} has no linear_cross_entropy (2.13 has)")
    options = dict(compared.fused, options=torch.nn.LinearCrossEntropyOptions())

    def call(hidden: Tensor, weight: Tensor, target: Tensor) -> Tensor:
        loss: Tensor = F.linear_cross_entropy(hidden, weight, target, **options)
        return loss

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            call(torch.zeros(2, 2), torch.zeros(3, 2), torch.zeros(2, dtype=torch.int64))
        except UserWarning:  # it would do the whole instead, and say so
            raise Absent("torch does not compute this in chunks; whole it is what eager does") from None
    return call


def _cut_cross_entropy(compared: ComparedLoss, dtype: str, device: torch.device) -> Loss:
    """Apple's Cut Cross-Entropy (Wijmans et al. 2024), as it comes: gradients below what bf16 shows are left out."""
    if compared.fused != {}:
        raise Absent("Cut Cross-Entropy has plain cross-entropy only")
    if dtype == "fp32":
        raise Absent("Cut Cross-Entropy takes bf16 and fp16 only")
    _needs_gpu("Cut Cross-Entropy", device)
    loss: Loss = installed("cut_cross_entropy", "cut-cross-entropy", "Cut Cross-Entropy").linear_cross_entropy
    return loss


def _needs_gpu(title: str, device: torch.device) -> None:
    if device.type == "cpu":
        raise Absent(f"{title} needs a GPU")


def _with(function: Loss, given: Tensor | None) -> Loss:
    return lambda logits, target: function(logits, target, given)


def _after_product(function: Loss) -> Loss:
    return lambda hidden, weight, target: function(hidden @ weight.T, target)


def _weight_first(function: Loss) -> Loss:
    return lambda hidden, weight, target: function(weight, hidden, target)
