"""Calibration against temperature: what a figure of it shows, and the temperature with the least calibration error."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from softtargets.arrays import ArrayLike
from softtargets.calibration.chunks import Chunks, Reader, as_chunks
from softtargets.calibration.confidence_cells import bin_edges

Metric = Callable[[Tensor, Tensor], float]

TEMPERATURES = tuple(i / 10 for i in range(1, 51))


@dataclass(frozen=True)
class TemperatureSweep:
    """One value for each temperature: mean negative log-likelihood in nats, ECE, and whatever else was asked for."""

    temperatures: tuple[float, ...]
    nll: tuple[float, ...]
    ece: tuple[float, ...]
    examples: int
    metrics: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def __repr__(self) -> str:
        least, most, best = min(self.temperatures), max(self.temperatures), self.best()
        range_ = f"{len(self.temperatures)} temperatures from {least:g} to {most:g}"
        lowest = f"lowest ECE {100 * min(self.ece):.2f} % at T = {best:g}"
        return f"TemperatureSweep({range_}, {self.examples} examples; {lowest})"

    def values(self, name: str = "ece") -> tuple[float, ...]:
        """Those of "nll", "ece" or a metric of one's own."""
        found = {"nll": self.nll, "ece": self.ece, **self.metrics}
        if name not in found:
            raise ValueError(f"there is no {name!r} in this sweep, only {', '.join(map(repr, found))}")
        return found[name]

    def best(self, name: str = "ece") -> float:
        """The temperature with the lowest value; of equal values the one nearest to 1."""
        return min(
            zip(self.values(name), self.temperatures, strict=True),
            key=lambda at: (at[0], abs(math.log(at[1]))),
        )[1]


def temperature_sweep(
    logits: ArrayLike | Reader | Chunks,
    labels: ArrayLike | None = None,
    temperatures: Sequence[float] = TEMPERATURES,
    metrics: Mapping[str, Metric] | None = None,
    *,
    bins: int = 15,
    ignore_index: int | None = None,
) -> TemperatureSweep:
    """Negative log-likelihood and expected calibration error of softmax(logits / T) for each temperature T.

    Reads the data once and computes all temperatures for each piece; the ECE is that of
    `expected_calibration_error`. As in Müller et al. 2019, figure 4, which also shows BLEU.

    `metrics` are functions of probabilities (N, K) and labels (N,), such as any metric of
    `softtargets.calibration`. They get all examples at once, which needs memory for all of them.

    >>> logits, labels = torch.tensor([[4.0, 0.0]] * 4), torch.tensor([0, 0, 0, 1])
    >>> found = temperature_sweep(logits, labels, temperatures=[1.0, 2.0, 4.0])
    >>> [round(x, 3) for x in found.nll], [round(x, 3) for x in found.ece]
    ([1.018, 0.627, 0.563], [0.232, 0.131, 0.019])
    """
    chosen = checked_temperatures(temperatures)
    chunks = as_chunks(logits, labels, ignore_index=ignore_index)
    nll = torch.zeros(len(chosen), dtype=torch.float64, device="cpu")
    table = BinSums(len(chosen), bins)
    for z, y in chunks:
        losses, confidence, correct = measures_at(z, y, [1 / t for t in chosen])
        nll += losses.sum(1).cpu()
        table.add(confidence, correct)
    return TemperatureSweep(
        temperatures=chosen,
        nll=tuple((nll / table.examples).tolist()),
        ece=tuple(table.errors().tolist()),
        examples=table.examples,
        metrics=_measured(chunks, chosen, metrics or {}),
    )


def temperature_by_ece(
    logits: ArrayLike | Reader | Chunks,
    labels: ArrayLike | None = None,
    temperatures: Sequence[float] = TEMPERATURES,
    *,
    bins: int = 15,
    ignore_index: int | None = None,
) -> float:
    """The temperature with the lowest expected calibration error among the given ones (0.1, 0.2, ... 5).

    The papers on label smoothing choose their temperature like this (Müller et al. 2019, section 3; in the
    replication, Wagner et al. 2023, section 5.1, by evaluating the ECE for every reasonable temperature). The ECE
    jumps where an example changes bins and has many minima, so it is only searched on a grid; `fit_temperature` has
    an optimum and is found exactly.

    >>> temperature_by_ece(torch.tensor([[4.0, 0.0]] * 4), torch.tensor([0, 0, 0, 1]))  # sigmoid(4 / T) = 3/4: 3.64
    3.6
    """
    return temperature_sweep(logits, labels, temperatures, bins=bins, ignore_index=ignore_index).best("ece")


def measures_at(logits: Tensor, labels: Tensor, inverses: Sequence[float]) -> tuple[Tensor, Tensor, Tensor]:
    """Negative log-likelihood and confidence (temperatures, n) at inverse temperatures, and which are right (n,)."""
    apart = logits - (top := logits.max(1, keepdim=True)).values
    own = apart.gather(1, labels.unsqueeze(1)).squeeze(1).double()
    work = torch.empty_like(apart)
    whole = torch.stack([torch.mul(apart, one, out=work).exp_().sum(1) for one in inverses]).double()
    inverse = torch.tensor(inverses, dtype=torch.float64, device=logits.device).unsqueeze(1)
    return whole.log() - inverse * own, whole.reciprocal(), top.indices.squeeze(1) == labels


class BinSums:
    """Sums of confidence and correctness in equal-width bins, several rows of bins at once.

    Bin b holds [b / bins, (b + 1) / bins), the last one also exactly 1, as in `reliability`.
    """

    def __init__(self, rows: int, bins: int) -> None:
        self.edges = bin_edges(bins)[1:-1]
        self.rows, self.bins, self.examples = rows, bins, 0
        self.gaps = torch.zeros(rows * bins, dtype=torch.float64, device="cpu")

    def add(self, confidence: Tensor, correct: Tensor) -> None:
        """Confidences (rows, n) in double precision, and which of the n predictions are right: (n,) or (rows, n)."""
        row = torch.arange(self.rows, device=confidence.device).unsqueeze(1) * self.bins
        which = torch.bucketize(confidence, self.edges.to(confidence.device), right=True) + row
        gaps = torch.bincount(which.flatten(), (confidence - correct.double()).flatten(), len(self.gaps))
        self.gaps += gaps.cpu()
        self.examples += confidence.shape[1]

    def errors(self) -> Tensor:
        """The expected calibration error of each row: the sum over bins of |sum of (confidence - correct)| / N."""
        return self.gaps.view(self.rows, self.bins).abs().sum(1) / self.examples


def _measured(
    chunks: Chunks, temperatures: tuple[float, ...], metrics: Mapping[str, Metric]
) -> dict[str, tuple[float, ...]]:
    if not metrics:
        return {}
    if taken := {"nll", "ece"} & set(metrics):
        raise ValueError(f"a metric may not be called {taken.pop()!r}, which every sweep has")
    pieces = list(chunks)
    logits, labels = torch.cat([z for z, _ in pieces]), torch.cat([y for _, y in pieces])
    found: dict[str, list[float]] = {name: [] for name in metrics}
    for temperature in temperatures:
        probabilities = (logits / temperature).softmax(1)
        for name, metric in metrics.items():
            found[name].append(float(metric(probabilities, labels)))
    return {name: tuple(values) for name, values in found.items()}


def checked_temperatures(temperatures: Sequence[float]) -> tuple[float, ...]:
    """Positive numbers, at least one, or a refusal."""
    found = tuple(float(t) for t in temperatures)
    if not found or not all(0 < t < math.inf for t in found):
        bad = next((t for t in found if not 0 < t < math.inf), "none")
        raise ValueError(f"temperatures must be positive numbers, at least one, not {bad}")
    return found
