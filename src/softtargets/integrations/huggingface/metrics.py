"""Calibration and selective prediction as what ``Trainer(compute_metrics=...)`` calls."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from softtargets.arrays import as_tensor
from softtargets.calibration import measure_confidences
from softtargets.integrations.huggingface.rows import aligned, rows
from softtargets.selection import less_than_certain, risk_coverage

# What is kept of a position: NLL, Brier score, the predicted class, and what its probability lacks of 1.
KEPT = 4
_ROWS = 4096  # positions at a time: logits of many classes are read in pieces
_UNSAID = (
    "predictions of shape {} have a dimension for positions, but the shape does not show whether labels must be "
    "shifted: use Metrics(shift=True) for causal language models, Metrics(shift=False) for sequence to sequence, "
    "masked language models and token classification"
)


class Metrics:
    """Calibration and selective prediction, as plain numbers, for ``Trainer(compute_metrics=...)``.

    Accuracy, negative log-likelihood, Brier score, the mean confidence, the calibration errors of the top label
    (expected, adaptive, debiased, smooth, maximum) and the areas of risk over coverage (AURC, its excess, AUGRC).
    Labels of -100 are ignored.

    Trainer keeps all evaluation outputs until the end. `preprocess` reduces the logits of a position to four
    numbers, so that logits of a whole vocabulary are never kept::

        metrics = Metrics(shift=True)          # causal; shift=False where labels are aligned with logits
        Trainer(..., compute_metrics=metrics, preprocess_logits_for_metrics=metrics.preprocess)

    With ``batch_eval_metrics=True`` only those numbers are kept, too. `shift` is needed where logits have positions:
    Trainer does not say what kind of model they come from. `compute_metrics` is this class for classification.
    """

    def __init__(self, *, shift: bool | None = None, bins: int = 15) -> None:
        self.shift = shift
        self.bins = bins
        self._so_far: list[tuple[Tensor, Tensor]] = []
        self._preprocesses = False

    def preprocess(self, logits: Any, labels: Any) -> Tensor:
        """Of logits (..., K) what the metrics need, (..., 4); for ``preprocess_logits_for_metrics``.

        Where there are no labels, logits stay as they are.
        """
        scores = as_tensor(first(logits))
        if labels is None:  # Trainer.predict without labels measures nothing, and gives the logits
            return scores
        self._preprocesses = True
        labels = _labels(labels).to(scores.device)
        scores, target = aligned(scores, labels, self._shift(scores))
        flat, wanted = rows(scores, target)
        return kept_of(flat, wanted).reshape(*target.shape[: scores.dim() - 1], KEPT)

    def __call__(self, prediction: Any, compute_result: bool = True) -> dict[str, float]:
        """Metrics by name, of an ``EvalPrediction``; nothing before the last batch where they come one by one."""
        scores = as_tensor(first(prediction.predictions))
        if not scores.is_floating_point():
            raise ValueError(
                "predictions are whole numbers, as tokens that were generated: there are no probabilities to measure. "
                "Leave predict_with_generate out, or measure the text with metrics of your own"
            )
        labels = _labels(prediction.label_ids).to(scores.device)
        if self._preprocesses:
            if self._shift(scores):
                labels = labels[:, 1:]
            kept, labels = scores.reshape(-1, KEPT), labels.reshape(-1)
        else:
            kept, labels = self._kept(scores, labels)
        counted = labels != -100
        self._so_far.append((kept[counted].cpu(), labels[counted].cpu()))
        if not compute_result:
            return {}
        found, self._so_far = self._so_far, []
        kept, labels = (torch.cat(each) for each in zip(*found, strict=True))
        return numbers(kept, labels, self.bins)

    def _kept(self, scores: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        flat, wanted = rows(*aligned(scores, labels, self._shift(scores)))
        pieces = zip(flat.split(_ROWS), wanted.split(_ROWS), strict=True)
        return torch.cat([kept_of(*piece) for piece in pieces]), wanted

    def _shift(self, scores: Tensor) -> bool:
        if self.shift is None and scores.dim() == 3:
            raise ValueError(_UNSAID.format(tuple(scores.shape)))
        return bool(self.shift) and scores.dim() == 3


def compute_metrics(prediction: Any) -> dict[str, float]:
    """`Metrics` of a classifier: ``Trainer(compute_metrics=compute_metrics)``.

    >>> from transformers import EvalPrediction
    >>> import numpy as np
    >>> logits, labels = np.array([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]]), np.array([0, 1, 1])
    >>> found = compute_metrics(EvalPrediction(predictions=logits, label_ids=labels))
    >>> round(found["accuracy"], 3), round(found["expected_calibration_error"], 3), round(found["aurc"], 3)
    (0.667, 0.447, 0.611)
    """
    return Metrics()(prediction)


@torch.no_grad()
def kept_of(logits: Tensor, labels: Tensor) -> Tensor:
    """NLL, Brier score, predicted class and what its probability lacks of 1: (n, 4) in double precision."""
    outside = (labels != -100) & ((labels < 0) | (labels >= logits.shape[-1]))
    if bool(outside.any()):
        raise ValueError(
            f"labels must lie between 0 and {logits.shape[-1] - 1}, or be -100 to be ignored, but one of them is "
            f"{int(labels[outside][0])}"
        )
    log_p = F.log_softmax(logits.float() if logits.dtype != torch.float64 else logits, dim=-1)
    label = labels.clamp(min=0).unsqueeze(-1)
    own = log_p.gather(-1, label)
    p = log_p.exp_()
    brier = p.square().sum(-1) - 2 * p.gather(-1, label).squeeze(-1) + 1
    lacking = less_than_certain(logits, from_logits=True)
    columns = (-own.squeeze(-1), brier, logits.argmax(-1), lacking)
    return torch.stack([column.double() for column in columns], dim=-1)


def numbers(kept: Tensor, labels: Tensor, bins: int = 15) -> dict[str, float]:
    """The metrics of positions that count."""
    if not len(labels):
        raise ValueError("there is nothing to measure: every label is -100")
    if broken := int(kept.isnan().any(-1).sum()):
        raise ValueError(
            f"logits of {broken} of {len(labels)} examples are not all finite, so there is nothing to measure; where "
            "the loss is not finite either, the training has diverged"
        )
    nll, brier, predicted, lacking = kept.double().unbind(-1)
    correct = predicted.long() == labels
    curve = risk_coverage(lacking, correct)
    found = measure_confidences((lacking + 1).clamp(0, 1), correct, bins, level=None).scalars()
    found.pop("squared_error")
    return {
        "accuracy": found.pop("accuracy"),
        "negative_log_likelihood": float(nll.mean()),
        "brier_score": float(brier.mean()),
        **found,
        "aurc": curve.aurc,
        "excess_aurc": curve.excess_aurc,
        "augrc": curve.augrc,
    }


def first(predictions: Any) -> Any:
    """The logits, where a model gives other things after them."""
    if isinstance(predictions, tuple | list) and not len(predictions):
        raise ValueError(
            "there are no predictions: if a model returns a tuple (return_dict=False), Trainer takes its first "
            "element for a loss and drops it; let the model return a dictionary with 'logits' instead"
        )
    return predictions[0] if isinstance(predictions, tuple | list) else predictions


def _labels(labels: Any) -> Tensor:
    if isinstance(labels, tuple | list):
        raise ValueError(f"there must be one array of labels, not {len(labels)}")
    if labels is None:
        raise ValueError("there are no labels to compare predictions with")
    found = as_tensor(labels)
    if found.is_floating_point():
        raise ValueError(
            "labels must be class indices: these are floating-point numbers, as of several labels each"
        )
    return found
