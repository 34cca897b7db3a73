"""torchmetrics: calibration and selective prediction as metrics, alone and in a ``MetricCollection``.

As everywhere in torchmetrics, scores are (N, C) or (N, C, ...) with the classes second, and labels (N) or (N, ...).
Calibration errors, NLL and Brier score are computed from the same sums, whose size does not depend on the number of
examples: in a collection they are one compute group, which is updated once. The areas of risk over coverage need the
order of all examples and keep two numbers of each.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from softtargets.arrays import resolution_advice
from softtargets.calibration import Calibration, CalibrationSums, as_scores, calibration_of
from softtargets.integrations.needs import needs
from softtargets.selection import ConfidenceRows, RiskCoverage, risk_coverage

needs("torchmetrics", "torchmetrics", "torchmetrics")

from torchmetrics import Metric, MetricCollection  # noqa: E402
from torchmetrics.utilities import dim_zero_cat  # noqa: E402


class _Scores(Metric):
    """What all have in common: scores and labels of one label per example."""

    is_differentiable = False
    full_state_update = False
    plot_lower_bound: float | None = 0.0

    def __init__(
        self, num_classes: int, *, from_logits: bool, ignore_index: int | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        self.num_classes = num_classes
        self.from_logits = from_logits
        self.ignore_index = ignore_index
        self._given_in = torch.get_default_dtype()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_classes={self.num_classes}, from_logits={self.from_logits})"

    def _rows(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        if preds.dim() < 2 or preds.shape[1] != self.num_classes:
            raise ValueError(
                f"preds must be (N, C) or (N, C, ...) with C = {self.num_classes} classes, as in torchmetrics; their "
                f"shape is {tuple(preds.shape)}"
            )
        if target.shape != preds.shape[:1] + preds.shape[2:]:
            raise ValueError(
                f"target must have the shape {tuple(preds.shape[:1] + preds.shape[2:])} for preds of shape "
                f"{tuple(preds.shape)}, not {tuple(target.shape)}"
                f"{resolution_advice(preds.shape, target.shape, 'preds', 'target')}"
            )
        return preds.movedim(1, -1).reshape(-1, self.num_classes), target.reshape(-1)

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """A figure and its axes: the value, or several of them over steps, as of every metric of torchmetrics."""
        return self._plot(val, ax)

    def set_dtype(self, dst_type: str | torch.dtype) -> Any:
        """The precision of the numbers that are given; what they are computed from stays as exact as it is."""
        self._dtype = self._given_in = torch.empty(0).type(dst_type).dtype
        return self

    def _number(self, value: float) -> Tensor:
        return torch.tensor(value, device=self.device, dtype=self._given_in)


class _Sums(_Scores):
    """Metrics that follow from `CalibrationSums`."""

    def __init__(
        self,
        num_classes: int,
        *,
        from_logits: bool,
        n_bins: int = 15,
        ignore_index: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(num_classes, from_logits=from_logits, ignore_index=ignore_index, **options)
        self.n_bins = n_bins
        for name, tensor in CalibrationSums.empty(num_classes, n_bins).tensors().items():
            self.add_state(name, tensor, dist_reduce_fx="sum")

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Add a batch; one without examples changes nothing."""
        scores, labels = self._rows(preds, target)
        if not len(labels):
            return
        batch = CalibrationSums.of(
            scores, labels, from_logits=self.from_logits, bins=self.n_bins, ignore_index=self.ignore_index
        )
        for name, tensor in batch.tensors().items():
            own = getattr(self, name)
            setattr(self, name, own + tensor.to(own.device))

    def found(self) -> Calibration:
        """Everything that was measured, as `measure_calibration` gives it, without intervals."""
        names = CalibrationSums.__dataclass_fields__
        return calibration_of(CalibrationSums(**{name: getattr(self, name) for name in names}), level=None)


# Of all that `Calibration` has, what is one number.
_NAMES = tuple(one.name for one in fields(Calibration) if one.type == "float")


class _Entry(Metric):
    """One number of a `CalibrationMetric`, which has all the state: updating or resetting one updates or resets all."""

    is_differentiable = False
    full_state_update = False

    def __init__(self, whole: CalibrationMetric, name: str) -> None:
        super().__init__(compute_with_cache=False, sync_on_compute=False)
        self._whole = (whole,)  # in a tuple, since it is not a part of its own part
        self.name = name

    @property
    def higher_is_better(self) -> bool | None:
        """Of accuracies more is better, of errors less; confidence is neither."""
        return None if self.name == "mean_confidence" else self.name.endswith("accuracy")

    def forward(self, preds: Tensor, target: Tensor) -> Tensor:
        """Add a batch to the whole, and give the number of this batch."""
        found: dict[str, Tensor] = self._whole[0](preds, target)
        return found[self.name]

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Add a batch to the whole."""
        self._whole[0].update(preds, target)

    def compute(self) -> Tensor:
        """The number; the whole computes all of them once."""
        return self._whole[0].compute()[self.name]

    def reset(self) -> None:
        """Reset the whole."""
        super().reset()
        self._whole[0].reset()

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """A figure and its axes: the value, or several of them over steps."""
        return self._plot(val, ax)

    def __repr__(self) -> str:
        return f"{self._whole[0]!r}[{self.name!r}]"

    # What torchmetrics and Lightning look at besides: the same as that of the whole.
    @property
    def _update_count(self) -> int:
        whole = self.__dict__.get("_whole")
        return whole[0]._update_count if whole else 0

    @_update_count.setter
    def _update_count(self, value: int) -> None:
        pass

    @property
    def _forward_cache(self) -> Tensor | None:
        whole = self.__dict__.get("_whole")
        last = whole[0]._forward_cache if whole else None
        return None if last is None else last[self.name]

    @_forward_cache.setter
    def _forward_cache(self, value: Any) -> None:
        pass


class CalibrationMetric(_Sums):
    """All metrics of `Calibration` as a dictionary of numbers; `plot` draws the reliability diagram.

    >>> metric = CalibrationMetric(num_classes=2, from_logits=False)
    >>> metric.update(torch.tensor([[0.9, 0.1], [0.7, 0.3], [0.2, 0.8]]), torch.tensor([0, 1, 1]))
    >>> metric.compute()["expected_calibration_error"]
    tensor(0.3333)

    ``self.log`` of Lightning takes metrics of one number. Each entry is one, and ``self.log_dict`` takes them all: they
    have no state of their own, so that one update, one synchronisation and one reset do for all of them. ::

        self.calibration.update(logits, labels)  # an attribute of the LightningModule
        self.log_dict(self.calibration)
        self.log("val_ece", self.calibration["expected_calibration_error"])
    """

    higher_is_better = None

    def __init__(
        self,
        num_classes: int,
        *,
        from_logits: bool,
        n_bins: int = 15,
        ignore_index: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(
            num_classes, from_logits=from_logits, n_bins=n_bins, ignore_index=ignore_index, **options
        )
        self.entries = nn.ModuleDict({name: _Entry(self, name) for name in _NAMES})

    def __getitem__(self, name: Any) -> Any:
        """One of the numbers, as a metric that follows this one."""
        if name not in self.entries:
            raise KeyError(f"there is no {name!r}; there are {', '.join(_NAMES)}")
        return self.entries[name]

    def items(self) -> Iterable[tuple[str, Any]]:
        """The numbers by name, each a metric that follows this one: what ``self.log_dict`` of Lightning asks for."""
        return self.entries.items()

    def compute(self) -> dict[str, Tensor]:
        """The metrics by name."""
        return {name: self._number(value) for name, value in self.found().scalars().items()}

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """The reliability diagram of what has been added; with a `val` of `compute`, or several, these numbers."""
        if val is not None:
            return self._plot(val, ax)
        from matplotlib import pyplot

        from softtargets.calibration.drawing import draw_diagram

        # Of all processes, as compute is.
        with self.sync_context(dist_sync_fn=self.dist_sync_fn, should_sync=self._to_sync):
            curve = self.found().reliability
        figure, axes = pyplot.subplots() if ax is None else (ax.get_figure(), ax)
        draw_diagram(axes, curve)
        return figure, axes


class _Number(_Sums):
    """One of the numbers of `Calibration`."""

    higher_is_better = False
    value: ClassVar[str]

    def compute(self) -> Tensor:
        """The number."""
        return self._number(getattr(self.found(), self.value))


class ExpectedCalibrationError(_Number):
    """`softtargets.calibration.expected_calibration_error`: the top label's, in equal-width bins.

    >>> metric = ExpectedCalibrationError(num_classes=2, from_logits=False)
    >>> metric(torch.tensor([[0.9, 0.1], [0.9, 0.1]]), torch.tensor([0, 0]))
    tensor(0.1000)
    """

    value = "expected_calibration_error"


class AdaptiveCalibrationError(_Number):
    """`softtargets.calibration.adaptive_calibration_error`: in bins of equally many examples."""

    value = "adaptive_calibration_error"


class ClasswiseCalibrationError(_Number):
    """`softtargets.calibration.classwise_calibration_error`: the mean over the probabilities of all classes."""

    value = "classwise_calibration_error"


class DebiasedCalibrationError(_Number):
    """`softtargets.calibration.debiased_calibration_error`: a root mean square without what scatter adds."""

    value = "debiased_calibration_error"


class SmoothCalibrationError(_Number):
    """`softtargets.calibration.smooth_calibration_error`: without bins."""

    value = "smooth_calibration_error"


class MaximumCalibrationError(_Number):
    """`softtargets.calibration.maximum_calibration_error`: the largest gap of a bin."""

    value = "maximum_calibration_error"


class NegativeLogLikelihood(_Number):
    """`softtargets.calibration.negative_log_likelihood`."""

    value = "negative_log_likelihood"


class BrierScore(_Number):
    """`softtargets.calibration.brier_score`: over all classes, from 0 to 2."""

    value = "brier_score"


class Accuracy(_Number):
    """The share of examples whose label is the most probable class, from the same sums."""

    value = "accuracy"
    higher_is_better = True


class _Area(_Scores):
    """An area of risk over coverage, exact with ties."""

    higher_is_better = False
    value: ClassVar[str]
    certainty: list[Tensor]
    correct: list[Tensor]

    def __init__(
        self, num_classes: int, *, from_logits: bool, ignore_index: int | None = None, **options: Any
    ) -> None:
        super().__init__(num_classes, from_logits=from_logits, ignore_index=ignore_index, **options)
        self.add_state("certainty", [], dist_reduce_fx="cat")
        self.add_state("correct", [], dist_reduce_fx="cat")

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Add a batch: of each example its confidence and whether it is right are kept."""
        scores, labels = self._rows(preds, target)
        if not len(labels):
            return
        given = as_scores(scores, labels, from_logits=self.from_logits, ignore_index=self.ignore_index)
        if not given.examples:  # every label is ignore_index
            return
        rows = ConfidenceRows(from_logits=self.from_logits)
        for start in given.starts:
            rows.add(*given.checked_piece(start))
        self.certainty.append(rows.confidence.to(self.device))
        self.correct.append(rows.correct.to(self.device, torch.uint8))

    def curve(self) -> RiskCoverage:
        """Risk over coverage of what has been added."""
        if not len(self.certainty) or not len(rows := dim_zero_cat(self.certainty)):
            raise ValueError(
                "there is nothing to measure: no example has been added, or every label is ignore_index"
            )
        return risk_coverage(rows, dim_zero_cat(self.correct).bool())

    def compute(self) -> Tensor:
        """The number."""
        return self._number(float(getattr(self.curve(), self.value)))

    def _sync_dist(self, *arguments: Any, **options: Any) -> None:
        """Every process sends both lists, also one without an example: the others would wait for it."""
        if not len(self.certainty):
            self.certainty = [torch.empty(0, dtype=torch.float64, device=self.device)]
            self.correct = [torch.empty(0, dtype=torch.uint8, device=self.device)]
        super()._sync_dist(*arguments, **options)


class AURC(_Area):
    """The area under risk over coverage (`softtargets.selection.RiskCoverage.aurc`).

    >>> metric = AURC(num_classes=2, from_logits=False)
    >>> metric(torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.4, 0.6]]), torch.tensor([0, 1, 0]))
    tensor(0.1111)
    """

    value = "aurc"


class ExcessAURC(_Area):
    """The AURC less the least that so many mistakes allow."""

    value = "excess_aurc"


class AUGRC(_Area):
    """The mean share of examples that are used and wrong, over all coverages (Traub et al. 2024)."""

    value = "augrc"


ALL = (
    Accuracy,
    NegativeLogLikelihood,
    BrierScore,
    ExpectedCalibrationError,
    AdaptiveCalibrationError,
    ClasswiseCalibrationError,
    DebiasedCalibrationError,
    SmoothCalibrationError,
    MaximumCalibrationError,
    AURC,
    ExcessAURC,
    AUGRC,
)


def calibration_metrics(
    num_classes: int,
    *,
    from_logits: bool,
    n_bins: int = 15,
    ignore_index: int | None = None,
    prefix: str | None = None,
    **options: Any,
) -> MetricCollection:
    """All of them in one ``MetricCollection``, by the names that Python has for them here.

    >>> metrics = calibration_metrics(num_classes=2, from_logits=False, prefix="val_")
    >>> found = metrics(torch.tensor([[0.9, 0.1], [0.9, 0.1]]), torch.tensor([0, 0]))
    >>> found["val_expected_calibration_error"], found["val_aurc"]
    (tensor(0.1000), tensor(0.))
    """
    made: dict[str, Metric] = {}
    for kind in ALL:
        own: dict[str, Any] = {} if issubclass(kind, _Area) else {"n_bins": n_bins}
        made[kind.value] = kind(
            num_classes, from_logits=from_logits, ignore_index=ignore_index, **own, **options
        )
    # Which metrics share their sums is known, so that torchmetrics need not find out.
    sums = [name for name, metric in made.items() if isinstance(metric, _Sums)]
    areas = [name for name, metric in made.items() if isinstance(metric, _Area)]
    return MetricCollection(made, prefix=prefix, compute_groups=[sums, areas])
