"""Calibration of a stream: update, compute, reset."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from softtargets.arrays import ArrayLike, ProcessState, added_up, several_processes
from softtargets.calibration.measure import Calibration, calibration_of
from softtargets.calibration.scores import Scores, as_scores
from softtargets.calibration.sums import CalibrationSums
from softtargets.calibration.workspace import Workspace


class CalibrationMetric(ProcessState):
    """Every metric of `measure_calibration`, batch by batch, with the interface of torchmetrics.

    `update` adds a batch; `compute` returns a `Calibration` of all batches so far; calling the metric adds a batch
    and returns the `Calibration` of that batch alone (without intervals); `reset` starts over. `merge_state` adds
    what another metric has seen. The state is a handful of sums whose size does not depend on the number of
    examples. `.to(device)` moves them and pickling keeps them. They are not buffers, which DDP would overwrite
    during training, and are in `state_dict` only after `persistent()`, so that a model's checkpoints do not depend
    on its metrics. Where `torch.distributed` is initialised, `compute` adds up the sums of all processes (of
    `process_group`), and every process must call it; each process keeps its own sums.

    `from_logits` is required, because scores between 0 and 1 could be either.

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
        super().__init__(persistent=False)
        self._size = classes, bins
        self.from_logits = from_logits
        self.ignore_index = ignore_index
        self.level = level
        self.resamples = resamples
        self.seed = seed
        self.sync_on_compute = sync_on_compute
        self.process_group = process_group
        self._workspace = Workspace()
        self.begin(torch.device("cpu"))

    def fresh(self, device: torch.device) -> dict[str, Tensor]:
        """The sums over no examples."""
        return CalibrationSums.empty(*self._size, device).tensors()

    @property
    def sums(self) -> CalibrationSums:
        """What has been added up in this process; changing it changes the metric."""
        return CalibrationSums(**{name: getattr(self, name) for name in self._kept})

    def update(self, scores: ArrayLike, labels: ArrayLike) -> None:
        """Add a batch: scores (..., K), labels (...). If anything is wrong with it, nothing is added."""
        rows = self._rows(scores, labels)
        self.sums.add_scores(rows, self._workspace)

    def forward(self, scores: ArrayLike, labels: ArrayLike) -> Calibration:
        """Add a batch, and measure it alone."""
        rows = self._rows(scores, labels)
        own = self.sums
        batch = CalibrationSums.empty(own.classes, own.bins, own.device)
        found = calibration_of(batch.add_scores(rows, self._workspace), level=None)
        own.merge(batch)
        return found

    def compute(self) -> Calibration:
        """Measure all that has been added."""
        sums = self.sums
        if self.sync_on_compute and several_processes():
            sums = CalibrationSums(
                **added_up(sums.tensors(), "CalibrationMetric.compute", "sync_on_compute", self.process_group)
            )
        return calibration_of(sums, level=self.level, resamples=self.resamples, seed=self.seed)

    def reset(self) -> None:
        """Forget everything that has been added."""
        self._workspace = Workspace()
        self.begin()

    def merge_state(self, other: CalibrationMetric | CalibrationSums) -> None:
        """Add what another metric has seen."""
        sums = other if isinstance(other, CalibrationSums) else other.sums
        self.awake(sums.device)
        self.sums.merge(sums)

    def extra_repr(self) -> str:
        """Shown by ``print(metric)``: what it measures, and of how many examples so far."""
        classes, bins = self._size
        ignored = "" if self.ignore_index is None else f", ignore_index={self.ignore_index}"
        told = f"classes={classes}, from_logits={self.from_logits}, bins={bins}{ignored}"
        return f"{told}; {self.sums.examples} examples"

    def _rows(self, scores: ArrayLike, labels: ArrayLike) -> Scores:
        rows = as_scores(scores, labels, from_logits=self.from_logits, ignore_index=self.ignore_index)
        self.awake(rows.device)
        return rows
