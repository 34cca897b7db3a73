"""A temperature sweep over a stream that never waits for its device: sums go in, one transfer at the end."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from softtargets.calibration.confidence_cells import bin_edges
from softtargets.calibration.sweep import TEMPERATURES, TemperatureSweep, checked_temperatures

LOWEST = -1e5  # of a logit beneath the highest: its exponential is 0 at any temperature anyone would try


class SweepSums:
    """Sums over rows for several temperatures at once: NLL, ECE, accuracy, entropy and mean confidence.

    `add` takes logits (..., K) and labels (...) on any device, the first of them deciding where the sums are, and
    asks the host for nothing, so that it can run behind a model on a GPU. Rows with the label `ignore_index` are
    ignored. `result` waits for the device and returns a `TemperatureSweep` whose metrics are "accuracy" (the same
    at all temperatures), "entropy" in nats and "confidence", the mean probability of the predicted class.

    Exponentials are taken in the precision of the logits, at least single, sums in double. Logits are not checked:
    if they are not finite, neither are the results.

    >>> sums = SweepSums([1.0, 2.0, 4.0])
    >>> sums.add(torch.tensor([[4.0, 0.0]] * 5), torch.tensor([0, 0, 0, 1, -100]))
    >>> found = sums.result()
    >>> found.examples, [round(x, 3) for x in found.nll], [round(x, 3) for x in found.ece]
    (4, [1.018, 0.627, 0.563], [0.232, 0.131, 0.019])
    >>> [round(x, 3) for x in found.metrics["entropy"]]
    [0.09, 0.365, 0.582]
    """

    def __init__(
        self, temperatures: Sequence[float] = TEMPERATURES, *, bins: int = 15, ignore_index: int = -100
    ) -> None:
        self.temperatures = checked_temperatures(temperatures)
        self.ignore_index = ignore_index
        self._edges = bin_edges(bins)[1:-1]
        self._bins = len(self._edges) + 1
        self._sums: Tensor | None = None  # nll, entropy, confidence (3, temperatures)

    @torch.no_grad()
    def add(self, logits: Tensor, labels: Tensor) -> None:
        """Add rows: logits (..., K) and labels (...)."""
        if logits.ndim < 2 or logits.shape[:-1] != labels.shape:
            raise ValueError(
                f"need logits (..., classes) and labels (...), not {tuple(logits.shape)} and {tuple(labels.shape)}"
            )
        z = logits.detach().reshape(-1, logits.shape[-1])
        z = z if z.dtype in (torch.float32, torch.float64) else z.float()
        y = labels.detach().reshape(-1).to(z.device)
        if self._sums is None:
            self._begin(z.device)
        assert self._sums is not None
        counted = y != self.ignore_index
        weight = counted.double()
        top = z.max(1, keepdim=True)
        own = (z.gather(1, y.masked_fill(~counted, 0).unsqueeze(1)) - top.values).squeeze(1).double()
        right = (top.indices.squeeze(1) == y).double() * weight
        apart = (z - top.values).clamp_(min=LOWEST)
        work = torch.empty_like(apart)
        for place, inverse in enumerate(self._inverses):
            power = torch.mul(apart, inverse, out=work).exp_()
            whole = power.sum(1, dtype=torch.float64)
            mean = power.mul_(apart).sum(1, dtype=torch.float64) * inverse / whole
            log, confidence = whole.log(), whole.reciprocal()
            values = torch.stack([log - inverse * own, log - mean, confidence])
            # A row that does not count may hold anything, NaN included.
            self._sums[:, place] += torch.where(counted, values, 0.0).sum(1)
            which = torch.bucketize(confidence, self._edges, right=True)
            gaps = torch.where(counted, confidence - right, 0.0)
            self._gaps[place].index_add_(0, which, gaps)
        self._right += right.sum()
        self._examples += counted.sum()

    def result(self) -> TemperatureSweep:
        """What has been added, at every temperature."""
        examples = 0 if self._sums is None else int(self._examples)
        if self._sums is None or examples == 0:
            raise ValueError(
                f"there is nothing to measure: no row has a label other than {self.ignore_index}"
            )
        nll, entropy, confidence = (tuple(row) for row in (self._sums / examples).tolist())
        errors = (self._gaps.abs().sum(1) / examples).tolist()
        accuracy = float(self._right) / examples
        return TemperatureSweep(
            temperatures=self.temperatures,
            nll=nll,
            ece=tuple(errors),
            examples=examples,
            metrics={
                "accuracy": (accuracy,) * len(self.temperatures),
                "entropy": entropy,
                "confidence": confidence,
            },
        )

    def _begin(self, device: torch.device) -> None:
        count = len(self.temperatures)
        self._inverses = [1 / t for t in self.temperatures]
        self._edges = self._edges.to(device)
        self._sums = torch.zeros(3, count, dtype=torch.float64, device=device)
        self._gaps = torch.zeros(count, self._bins, dtype=torch.float64, device=device)
        self._right = torch.zeros((), dtype=torch.float64, device=device)
        self._examples = torch.zeros((), dtype=torch.int64, device=device)


def perplexity(nll: float) -> float:
    """exp(NLL), where NLL is the mean negative log-likelihood of a token in nats; infinite beyond what a float holds.

    >>> round(perplexity(1.2), 4), perplexity(1e4)
    (3.3201, inf)
    """
    try:
        return math.exp(nll)
    except OverflowError:
        return math.inf
