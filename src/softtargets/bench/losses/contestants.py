"""Who takes part: ours, ours overwriting the logits, and the rivals, each as a function of logits and target."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from softtargets import losses
from softtargets.bench.failing import Absent
from softtargets.bench.losses.rivals import Subject


@dataclass(frozen=True)
class Contestant:
    """A name and its loss. One that overwrites its first argument gets a fresh copy each time, not timed."""

    name: str
    call: Callable[..., Tensor]
    overwrites: bool = False


def contestant(name: str, subject: Subject, given: Tensor | None, device: torch.device) -> Contestant:
    """One contestant for ``call(logits, target)``; `Absent` where there is none."""
    if name in ("ours", "ours in place"):
        in_place = name == "ours in place"
        return Contestant(name, _ours(subject, given, device, in_place), overwrites=in_place)
    if name == "liger":
        return Contestant(name, _liger("LigerCrossEntropyLoss", subject, device), overwrites=True)
    function = subject.textbook if name == "eager" else torch.compile(subject.textbook, dynamic=False)
    return Contestant(name, function if given is None else _with(function, given))


def linear_contestant(name: str, subject: Subject, device: torch.device) -> Contestant:
    """One contestant for ``call(hidden, weight, target)``; `Absent` where there is none."""
    if name == "ours":
        return Contestant(name, losses.LinearLoss(subject.ours()).to(device))
    if name == "materialised":
        return Contestant(name, _after_product(subject.ours().to(device)))
    if name == "liger":
        loss = _liger("LigerFusedLinearCrossEntropyLoss", subject, device)
        return Contestant(name, lambda hidden, weight, target: loss(weight, hidden, target))
    function = _after_product(subject.textbook)
    return Contestant(name, function if name == "eager" else torch.compile(function, dynamic=False))


def _ours(
    subject: Subject, given: Tensor | None, device: torch.device, in_place: bool
) -> Callable[..., Tensor]:
    options: dict[str, Any] = {"table": given} if subject.given in ("prior", "matrix") else {}
    loss = subject.ours(**options)
    if in_place:
        if "inplace" not in inspect.signature(type(loss).__init__).parameters:
            raise Absent(f"{type(loss).__name__} cannot overwrite its logits in this version of softtargets")
        loss = subject.ours(**options, inplace=True)
    loss = loss.to(device)
    return _with(loss, given) if subject.given == "teacher" else loss


def _liger(name: str, subject: Subject, device: torch.device) -> Callable[..., Tensor]:
    if subject.liger is None:
        raise Absent("Liger has no such loss")
    if importlib.util.find_spec("liger_kernel") is None:
        raise Absent("Liger is not installed (pip install liger-kernel)")
    if device.type == "cpu":
        raise Absent("Liger needs a GPU")
    loss: Callable[..., Tensor] = getattr(importlib.import_module("liger_kernel.transformers"), name)(
        **subject.liger
    )
    return loss


def _with(function: Callable[..., Tensor], given: Tensor | None) -> Callable[..., Tensor]:
    return lambda logits, target: function(logits, target, given)


def _after_product(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    return lambda hidden, weight, target: function(hidden @ weight.T, target)
