"""Calibration of a stream: update, compute, reset."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from softtargets.arrays import ArrayLike
from softtargets.calibration.measure import Calibration, calibration_of
from softtargets.calibration.scores import as_scores
from softtargets.calibration.sums import CalibrationSums
from softtargets.calibration.workspace import Workspace


class CalibrationMetric(nn.Module):
    """Every metric of `measure_calibration` over batches, used as the metrics of torchmetrics are.

    `update` adds a batch, `compute` gives a `Calibration` of all so far, calling the metric adds a batch and gives
    the `Calibration` of that batch alone (without intervals), `reset` forgets. `merge_state` adds what another metric
    has seen. The state is a handful of sums whose size does not depend on the number of examples: buffers, so
    `.to(device)`, `state_dict` and pickling work. Where `torch.distributed` is initialised, `compute` adds up the sums
    of all processes (of `process_group`), and every process must call it; what a process remembers stays its own.

    `from_logits` must be said: scores between 0 and 1 may be either.

    >>> metric = CalibrationMetric(classes=2, from_logits=False)
    >>> _ = metric(torch.tensor([[0.9, 0.1]]), torch.tensor([0]))
    >>> metric.update(torch.tensor([[0.7, 0.3], [0.2, 0.8]]), torch.tensor([1, 1]))
    >>> found = metric.compute()
    >>> found.examples, round(found.expected_calibration_error, 4)
    (3, 0.3333)
    """

    def __init__(
        self,
        classes: int,
        *,
        from_logits: bool,
        bins: int = 15,
        ignore_index: int | None = None,
        level: float | None = None,
        resamples: int = 1000,
        seed: int = 0,
        sync_on_compute: bool = True,
        process_group: Any = None,
    ) -> None:
        super().__init__()
        self.from_logits = from_logits
        self.ignore_index = ignore_index
        self.level = level
        self.resamples = resamples
        self.seed = seed
        self.sync_on_compute = sync_on_compute
        self.process_group = process_group
        self._workspace = Workspace()
        with torch.inference_mode(False):  # sums made in that mode could not be added to outside of it
            sums = CalibrationSums.empty(classes, bins)
        for name, tensor in sums.tensors().items():
            self.register_buffer(name, tensor)

    @property
    def sums(self) -> CalibrationSums:
        """What has been added up in this process; changing it changes the metric."""
        return CalibrationSums(**dict(self.named_buffers()))

    def update(self, scores: ArrayLike, labels: ArrayLike) -> None:
        """Add a batch: scores (..., K), labels (...). If anything is wrong with it, nothing is added."""
        self._add_to(self.sums, scores, labels)

    def forward(self, scores: ArrayLike, labels: ArrayLike) -> Calibration:
        """Add a batch, and measure it alone."""
        own = self.sums
        batch = CalibrationSums.empty(own.classes, own.bins, own.device)
        self._add_to(batch, scores, labels)
        found = calibration_of(batch, level=None)
        own.merge(batch)
        return found

    def compute(self) -> Calibration:
        """Measure all that has been added."""
        sums = self.sums
        if self.sync_on_compute and torch.distributed.is_available() and torch.distributed.is_initialized():
            sums = _added_up(sums, self.process_group)
        return calibration_of(sums, level=self.level, resamples=self.resamples, seed=self.seed)

    def reset(self) -> None:
        """Forget everything that has been added."""
        self._workspace = Workspace()
        for tensor in self.buffers():
            tensor.zero_()

    def merge_state(self, other: CalibrationMetric | CalibrationSums) -> None:
        """Add what another metric has seen."""
        self.sums.merge(other if isinstance(other, CalibrationSums) else other.sums)

    def _add_to(self, sums: CalibrationSums, scores: ArrayLike, labels: ArrayLike) -> None:
        rows = as_scores(scores, labels, from_logits=self.from_logits, ignore_index=self.ignore_index)
        sums.add_scores(rows, self._workspace)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> CalibrationMetric:
        # `.to(device)` moves the sums, `.half()` of the model around this metric must not round them.
        for name, tensor in self.named_buffers():
            device = fn(torch.empty(0, dtype=tensor.dtype, device=tensor.device)).device
            setattr(self, name, tensor.to(device))
        return self


def _added_up(sums: CalibrationSums, group: Any) -> CalibrationSums:
    """The sums of all processes: one exchange for whole numbers, one for the others."""
    tensors = sums.tensors()
    found: dict[str, Tensor] = {}
    for dtype in (torch.int64, torch.float64):
        named = {name: tensor for name, tensor in tensors.items() if tensor.dtype == dtype}
        flat = torch.cat([tensor.flatten() for tensor in named.values()])
        torch.distributed.all_reduce(flat, group=group)
        parts = flat.split([tensor.numel() for tensor in named.values()])
        found |= {
            name: part.view(tensor.shape) for (name, tensor), part in zip(named.items(), parts, strict=True)
        }
    return CalibrationSums(**found)
