"""Calibrated probabilities as `torch.nn.Module`: what a fit says, in buffers that are saved, moved and exported.

Each module takes scores (..., K) of the kind it was fitted to and gives probabilities (..., K). There is nothing to
train in it and no choice that depends on values, so that ``torch.export``, ``torch.compile`` and ONNX take it as it is:
``torch.nn.Sequential(model, module)`` is the calibrated model.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

from softtargets.arrays import ArrayLike, as_tensor
from softtargets.calibration.bias import BiasCorrectedTemperature
from softtargets.calibration.correction import Correction, Kind
from softtargets.calibration.temperature import TemperatureFit
from softtargets.calibration.vector import VectorScaling


class CalibrationModule(nn.Module):
    """What all of them share: which kind of scores, and what a probability of 0 counts as (`floor`, see `zero_floor`).

    `state_dict` has all numbers of a fit, whatever the shape of those that were there before it is loaded; kind and
    floor are among them.
    """

    from_logits: Tensor  # 1 for logits, 0 for probabilities
    lowest: Tensor  # the logarithm of the floor

    def __init__(self, kind: Kind = "logits", floor: float | None = None) -> None:
        super().__init__()
        if kind not in ("logits", "probabilities"):
            raise ValueError(f"kind must be 'logits' or 'probabilities', not {kind!r}")
        if floor is not None and not 0 < floor < 1:
            raise ValueError(f"floor must lie between 0 and 1, not {floor}")
        self.kind: Kind = kind
        smallest = math.log(torch.finfo(torch.float32).tiny)
        self._keep("lowest", smallest if floor is None else math.log(floor))
        self._keep("from_logits", float(kind == "logits"))
        self.training = False  # there is nothing to train, and exporters ask

    def logits_of(self, scores: Tensor) -> Tensor:
        """Scores as logits: those of probabilities are their logarithms."""
        if self.kind == "logits":
            return scores
        lowest = self.lowest.to(scores.dtype)
        return torch.where(scores > 0, scores.clamp_min(torch.finfo(scores.dtype).tiny).log(), lowest)

    def probabilities_of(self, scores: Tensor) -> Tensor:
        """Scores as probabilities."""
        return scores.softmax(-1) if self.kind == "logits" else scores

    def _refuse_other_columns(self, scores: Tensor, numbers: Tensor) -> None:
        """Scores of one column, or of other classes, would be spread over all classes without a word."""
        tracing: bool = torch.jit.is_tracing()  # type: ignore[attr-defined, no-untyped-call]
        if tracing:  # which would warn of every question about a shape
            return
        columns = scores.shape[-1] if scores.ndim else 0
        classes = len(numbers) if numbers.ndim else None
        if columns < 2 or (classes is not None and columns != classes):
            wanted = "of the classes, at least 2" if classes is None else f"of the {classes} classes"
            raise ValueError(
                f"scores must have a column for each {wanted}, not the shape {tuple(scores.shape)}"
                + ("; two classes need two columns" if columns < 2 else "")
            )

    def _keep(self, name: str, value: Any) -> None:
        numbers = value if isinstance(value, Tensor) else torch.as_tensor(value, dtype=torch.float64)
        self.register_buffer(name, numbers.detach().double().clone())

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        for name, own in list(self.named_buffers(recurse=False)):
            given = state_dict.get(prefix + name)
            if (
                isinstance(given, Tensor) and given.shape != own.shape
            ):  # tables have as many knots as their data
                self.register_buffer(name, own.new_zeros(given.shape))
        super()._load_from_state_dict(state_dict, prefix, *rest)
        self.kind = "logits" if bool(self.from_logits) else "probabilities"

    def extra_repr(self) -> str:
        """Shown by ``print(module)``."""
        return f"kind={self.kind!r}"


class LogitScaling(CalibrationModule):
    """softmax(scale * logits + bias): temperature, bias-corrected temperature and vector scaling.

    >>> from softtargets.calibration import temperature_scaling
    >>> logits, labels = torch.tensor([[4.0, 0.0]] * 4), torch.tensor([0, 0, 0, 1])
    >>> module = LogitScaling.of(temperature_scaling(logits, labels))
    >>> module, module(logits[:1])
    (LogitScaling(temperature=3.641, kind='logits'), tensor([[0.7500, 0.2500]]))
    """

    scale: Tensor
    bias: Tensor

    def __init__(
        self,
        scale: ArrayLike | float = 1.0,
        bias: ArrayLike | float = 0.0,
        *,
        kind: Kind = "logits",
        floor: float | None = None,
    ) -> None:
        super().__init__(kind, floor)
        self._keep("scale", scale if isinstance(scale, float) else as_tensor(scale))
        self._keep("bias", bias if isinstance(bias, float) else as_tensor(bias))

    @classmethod
    def of(
        cls,
        fit: TemperatureFit | BiasCorrectedTemperature | VectorScaling | Correction,
        *,
        kind: Kind = "logits",
        floor: float | None = None,
    ) -> LogitScaling:
        """The module of a fit; a `Correction` says itself which kind of scores it is for."""
        if isinstance(fit, Correction):
            return cls(fit.scale, 0.0 if fit.bias is None else fit.bias, kind=fit.kind, floor=fit.floor)
        if isinstance(fit, VectorScaling):
            return cls(fit.scale, fit.bias, kind=kind, floor=floor)
        bias = fit.bias if isinstance(fit, BiasCorrectedTemperature) else 0.0
        return cls(1 / fit.temperature, bias, kind=kind, floor=floor)

    def logits(self, scores: Tensor) -> Tensor:
        """The scaled logits, for a loss or a search that wants them."""
        self._refuse_other_columns(scores, self.scale if self.scale.ndim else self.bias)
        z = self.logits_of(scores)
        return z * self.scale.to(z.dtype) + self.bias.to(z.dtype)

    def forward(self, scores: Tensor) -> Tensor:
        """Probabilities (..., K)."""
        return self.logits(scores).softmax(-1)

    def extra_repr(self) -> str:
        """The temperature, or how many classes have numbers of their own."""
        if self.scale.ndim:
            return f"classes={len(self.scale)}, {super().extra_repr()}"
        biased = f", biases of {len(self.bias)} classes" if self.bias.ndim else ""
        return f"temperature={1 / float(self.scale):.4g}{biased}, {super().extra_repr()}"


class PerClass(CalibrationModule):
    """Each class against the rest, then divided by the sum over classes (Zadrozny & Elkan 2002).

    Of two classes the second is calibrated, and the first is what is left to 1. Where every class comes out 0, all are
    equally likely.
    """

    def each(self, scores: Tensor) -> Tensor:
        """A probability for each class by itself."""
        raise NotImplementedError("abstract: each method defines its own")

    def forward(self, scores: Tensor) -> Tensor:
        """Probabilities (..., K)."""
        found = self.each(scores)
        if scores.shape[-1] == 2:
            second = found[..., 1:]
            return torch.cat([1 - second, second], -1)
        total = found.sum(-1, keepdim=True)
        return torch.where(total > 0, found / torch.where(total > 0, total, 1.0), 1.0 / scores.shape[-1])


class PlattScaling(PerClass):
    """sigmoid(slope * log-odds + intercept) of each class; see `platt_scaling`."""

    slope: Tensor
    intercept: Tensor

    def __init__(
        self, slope: ArrayLike, intercept: ArrayLike, *, kind: Kind = "logits", floor: float | None = None
    ) -> None:
        super().__init__(kind, floor)
        self._keep("slope", as_tensor(slope))
        self._keep("intercept", as_tensor(intercept))

    def each(self, scores: Tensor) -> Tensor:
        """The sigmoids."""
        self._refuse_other_columns(scores, self.slope)
        odds = log_odds(self.logits_of(scores))
        return (odds * self.slope.to(odds.dtype) + self.intercept.to(odds.dtype)).sigmoid()

    def extra_repr(self) -> str:
        """How many classes."""
        return f"classes={len(self.slope)}, {super().extra_repr()}"


class Piecewise(PerClass):
    """A function of each class's probability, from a table with a row for each class.

    Between `places` (K, M), which rise along a row, the function has `values`: (K, M) joined by straight lines and
    constant beyond the ends, or (K, M + 1) as steps, each of which has its lower end. Rows are filled up with infinity.
    """

    places: Tensor
    values: Tensor

    def __init__(
        self, places: ArrayLike, values: ArrayLike, *, kind: Kind = "logits", floor: float | None = None
    ) -> None:
        super().__init__(kind, floor)
        self._keep("places", as_tensor(places))
        self._keep("values", as_tensor(values))

    def each(self, scores: Tensor) -> Tensor:
        """The value of each class's function."""
        self._refuse_other_columns(scores, self.places)
        p = self.probabilities_of(scores)
        places, values = self.places.to(p.dtype), self.values.to(p.dtype)
        # Counted, not searched for: every exporter knows comparisons and sums.
        after = (p.unsqueeze(-1) >= places).sum(-1)
        if self.values.shape[-1] > self.places.shape[-1]:
            return _looked_up(values, after)
        high = after.clamp(1, places.shape[-1] - 1) if places.shape[-1] > 1 else after * 0
        low = (high - 1).clamp_min(0)
        x0, x1 = _looked_up(places, low), _looked_up(places, high)
        y0, y1 = _looked_up(values, low), _looked_up(values, high)
        flat = (x1 <= x0) | torch.isinf(x1)
        share = torch.where(flat, 0.0, (p - x0) / torch.where(flat, 1.0, x1 - x0)).clamp(0, 1)
        return y0 + share * (y1 - y0)

    def extra_repr(self) -> str:
        """How many classes, and how large the table is."""
        return f"classes={len(self.places)}, places={self.places.shape[-1]}, {super().extra_repr()}"


class IsotonicScaling(Piecewise):
    """Rising straight lines for each class; see `isotonic_regression`."""


class HistogramBinning(Piecewise):
    """A number for each bin of each class; see `histogram_binning`."""


def log_odds(logits: Tensor) -> Tensor:
    r"""The logit of each class against all others together, :math:`\log p_k - \log(1 - p_k)`, (..., K).

    With two classes the difference of their logits. Exact also where probabilities are rounded to 1, and the same for
    logits plus a constant.

    >>> log_odds(torch.tensor([[3.0, 1.0], [100.0, 0.0]]))
    tensor([[   2.,   -2.],
            [ 100., -100.]])
    """
    highest = logits.amax(-1, keepdim=True)
    apart = logits - highest
    first = torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1]).bool()
    weights = apart.exp()
    # The rest of the likeliest class is added up by itself; of the others 1 - p is no less than a half, or nearly.
    rest = torch.where(first, torch.zeros_like(weights), weights).sum(-1, keepdim=True)
    others = 1 + rest - weights
    tiny = torch.finfo(logits.dtype).tiny
    far = torch.where(first, -torch.inf, apart).amax(-1, keepdim=True)
    sure = torch.where(first, torch.zeros_like(apart), (apart - far).exp()).sum(-1, keepdim=True).log() + far
    return torch.where(first, apart - sure, apart - others.clamp_min(tiny).log())


def _looked_up(table: Tensor, which: Tensor) -> Tensor:
    """table[k, which[..., k]]."""
    classes = torch.arange(table.shape[0], device=which.device)
    return table[classes, which]
