"""A fitted correction of scores that can be kept: a small JSON file that people can read and any version can check."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from softtargets.arrays import ArrayLike, as_floating, refuse_fault, single_or_double
from softtargets.calibration.bias import BiasCorrectedTemperature
from softtargets.calibration.chunks import logits_from_probabilities
from softtargets.calibration.scores import name_of
from softtargets.calibration.temperature import TemperatureFit
from softtargets.calibration.vector import VectorScaling
from softtargets.exceptions import SofttargetsError
from softtargets.storage import read_json, write_json

FORMAT, VERSION = "softtargets correction", 1
MOST_BYTES = 1 << 28

Method = Literal["temperature", "bias_corrected_temperature", "vector_scaling"]
Kind = Literal["logits", "probabilities"]
Fit = TemperatureFit | BiasCorrectedTemperature | VectorScaling


@dataclass(frozen=True, eq=False, kw_only=True)
class Correction:
    """softmax(scale * logits + bias), with one `scale` for all classes (1/T) or one for each, and perhaps biases (K,).

    Called with scores (..., K) of its `kind` it gives scores of the same kind: logits for logits, probabilities for
    probabilities. Of probabilities the logarithms are scaled, with that of `floor` for 0 (see `zero_floor`).
    `about` tells a reader of the file what the correction was fitted to and what it did to held-out examples.

    >>> from softtargets.calibration import temperature_scaling
    >>> fit = temperature_scaling(torch.tensor([[4.0, 0.0]] * 4), torch.tensor([0, 0, 0, 1]))
    >>> correction = Correction.of(fit, kind="logits", classes=2)
    >>> correction(torch.tensor([[4.0, 0.0]])).softmax(-1)
    tensor([[0.7500, 0.2500]])
    """

    method: Method
    kind: Kind
    classes: int
    scale: Tensor
    bias: Tensor | None = None
    floor: float | None = None
    class_names: tuple[str, ...] | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        fit: Fit,
        *,
        kind: Kind,
        classes: int,
        floor: float | None = None,
        class_names: Sequence[str] | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> Correction:
        """The correction that a fit to scores of this kind makes."""
        method: Method
        scale: Tensor
        bias: Tensor | None
        if isinstance(fit, VectorScaling):
            method, scale, bias = "vector_scaling", fit.scale, fit.bias
        else:
            scale = torch.tensor(1 / fit.temperature, dtype=torch.float64)
            bias = fit.bias if isinstance(fit, BiasCorrectedTemperature) else None
            method = "temperature" if bias is None else "bias_corrected_temperature"
        return cls(
            method=method,
            kind=kind,
            classes=classes,
            scale=scale,
            bias=bias,
            floor=floor,
            class_names=None if class_names is None else tuple(class_names),
            about=dict(about or {}),
        )

    def __repr__(self) -> str:
        what = "" if self.temperature is None else f", T = {self.temperature:.4g}"
        return f"Correction({self.method} of {self.kind}, {self.classes} classes{what})"

    @property
    def temperature(self) -> float | None:
        """The temperature, of methods that have one."""
        return None if self.scale.ndim else 1 / float(self.scale)

    def __call__(self, scores: ArrayLike, *, checked: bool = False) -> Tensor:
        """Corrected scores (..., K), on their device, in at least single precision; `checked` were looked at before."""
        name = name_of(self.kind == "logits")
        found = as_floating(scores, name).detach()
        if found.ndim == 0 or found.shape[-1] != self.classes:
            raise ValueError(
                f"{name} must be (..., {self.classes}), one column for each class that this correction was fitted to, "
                f"not {tuple(found.shape)}"
            )
        if found.numel() == 0:
            return single_or_double(found)
        if self.kind == "logits":
            if not checked:
                refuse_fault(found.reshape(-1, self.classes), None, name)
            return self.scaled(single_or_double(found))
        logits = logits_from_probabilities(found, floor=self.floor, checked=checked)
        return self.scaled(logits).softmax(-1)

    def scaled(self, logits: Tensor) -> Tensor:
        """scale * logits + bias."""
        scaled = logits * self.scale.to(logits)
        return scaled if self.bias is None else scaled + self.bias.to(logits)

    def numbers(self) -> dict[str, Any]:
        """All of it as plain data: the content of its file."""
        fitted: dict[str, Any] = {"temperature": self.temperature}
        if self.scale.ndim:
            fitted = {"scale": self.scale.tolist()}
        if self.bias is not None:
            fitted["bias"] = self.bias.tolist()
        return {
            "format": FORMAT,
            "version": VERSION,
            "method": self.method,
            "kind": self.kind,
            "classes": self.classes,
            "class_names": None if self.class_names is None else list(self.class_names),
            **fitted,
            "zero_counts_as": self.floor,
            "about": dict(self.about),
        }

    def save(self, path: str | Path) -> None:
        """Write it to a JSON file, replacing one that is there."""
        write_json(Path(path), self.numbers())


def load_correction(path: str | Path) -> Correction:
    """Read a correction that `softtargets calibrate` or `Correction.save` wrote.

    >>> import tempfile
    >>> scale, bias = torch.tensor([0.5, 1.0]), torch.tensor([0.1, -0.1])
    >>> saved = Correction(method="vector_scaling", kind="logits", classes=2, scale=scale, bias=bias)
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     saved.save(f"{directory}/correction.json")
    ...     correction = load_correction(f"{directory}/correction.json")
    >>> correction(torch.tensor([[2.0, 1.0]]))
    tensor([[1.1000, 0.9000]])
    """
    try:
        found = read_json(Path(path), MOST_BYTES)
    except FileNotFoundError:
        raise SofttargetsError(f"{path} does not exist; check the path of the correction") from None
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or problem
        raise SofttargetsError(f"{path} is not a correction: it cannot be read as JSON ({reason})") from None
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise SofttargetsError(
            f"{path} is not a correction; softtargets calibrate writes one with --save-calibrated"
        )
    if found.get("version") != VERSION:
        raise SofttargetsError(
            f"{path} has version {found.get('version')!r}, and this program reads version {VERSION}; update "
            "softtargets, or fit the correction again"
        )
    try:
        return _built(found)
    except (KeyError, TypeError, ValueError) as problem:
        told = f"it has no {problem}" if isinstance(problem, KeyError) else str(problem)
        raise SofttargetsError(f"{path} is damaged: {told}; fit the correction again") from None


def _built(found: Mapping[str, Any]) -> Correction:
    method, kind, classes = found["method"], found["kind"], found["classes"]
    if method not in get_args(Method) or kind not in get_args(Kind):
        raise ValueError(f"unknown method {method!r} or kind {kind!r}")
    if type(classes) is not int or classes < 1:
        raise ValueError(f"classes is {classes!r}, not a number of classes")
    names, floor = found.get("class_names"), found.get("zero_counts_as")
    if names is not None and (not isinstance(names, list) or len(names) != classes):
        raise ValueError(f"class_names must be {classes} names")
    if floor is not None and not (isinstance(floor, float) and 0 < floor < 1):
        raise ValueError(f"zero_counts_as is {floor!r}, not a number between 0 and 1")
    if method == "vector_scaling":
        scale = _vector(found["scale"], classes, "scale")
    else:
        temperature = found["temperature"]
        if type(temperature) not in (int, float) or not 0 < temperature < math.inf:
            raise ValueError(f"temperature is {temperature!r}, not a positive number")
        scale = torch.tensor(1 / temperature, dtype=torch.float64)
    bias = None if method == "temperature" else _vector(found["bias"], classes, "bias")
    return Correction(
        method=method,
        kind=kind,
        classes=classes,
        scale=scale,
        bias=bias,
        floor=floor,
        class_names=None if names is None else tuple(map(str, names)),
        about=dict(found.get("about") or {}),
    )


def _vector(values: Any, classes: int, name: str) -> Tensor:
    whole = isinstance(values, list) and all(type(one) in (int, float) for one in values)
    if not whole or len(values) != classes or not all(map(math.isfinite, values)):
        raise ValueError(f"{name} must be {classes} finite numbers")
    return torch.tensor(values, dtype=torch.float64)
