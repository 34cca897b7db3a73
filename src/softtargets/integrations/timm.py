"""timm: criteria by name, chosen as its training script chooses its own; targets of mixup and cutmix are taken.

::

    train_loss_fn = create_criterion(args, "labo")          # in train.py, in place of its choice of train_loss_fn

Importing this needs no timm: what is read of it are the names of its script's arguments.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from softtargets.exceptions import nearest
from softtargets.losses import REGULARISERS, CrossEntropy, LabelSmoothing, SoftTargetLoss

# Losses that keep a table, and must know for how many classes.
_WITH_TABLE = ("online_label_smoothing", "knowledge_refinery")
_OTHER_LOSSES = ("asl", "poly", "twoway", "zlpr", "db")
SPLITS_ALPHA = 12.0  # of AugMix, and of timm


def create_criterion(args: Any, name: str | None = None, **options: Any) -> nn.Module:
    """The training criterion that timm's script would make of its arguments, from softtargets' losses.

    `args` are those of ``train.py`` (a namespace or a dictionary; what is missing is off). They are read as there:
    ``mixup``, ``cutmix``, ``cutmix_minmax`` (targets are then distributions, already smoothed by ``smoothing``),
    ``smoothing``, ``aug_splits`` with ``jsd_loss`` or ``loss='jsd'``, ``num_classes``. Without a `name` the result
    computes what timm's does: label smoothing, or cross-entropy with soft targets, with the divergence of augmented
    splits if asked for. A `name` is one of ``softtargets.losses.REGULARISERS``; `options` are those of its class.

    Refused are sigmoid losses (``bce_loss``, ``loss='bce'`` and the other multi-label ones, of which there are none
    here), `distillation`, which needs a teacher, and `cs_kd` with mixup, whose examples are of no single class.

    >>> create_criterion({"smoothing": 0.1})
    LabelSmoothing(alpha=0.1, spread='all')
    >>> create_criterion({"smoothing": 0.1, "mixup": 0.8})  # its targets are smoothed already
    CrossEntropy()
    >>> create_criterion({"num_classes": 100}, "online_label_smoothing", alpha=0.3)
    OnlineLabelSmoothing(classes=100, alpha=0.3)
    """
    arguments = _Arguments(args)
    arguments.refuse_sigmoid()
    mixed, smoothing = arguments.mixed, float(arguments.get("smoothing", 0.0) or 0.0)
    loss = _named(name, arguments, mixed, smoothing, options)
    if not arguments.splits:
        return loss
    if mixed:
        raise ValueError(
            "jsd_loss needs class indices, but mixup or cutmix make distributions: leave one of them out"
        )
    return SplitDivergence(loss, arguments.splits)


def _named(
    name: str | None, arguments: _Arguments, mixed: bool, smoothing: float, options: dict[str, Any]
) -> SoftTargetLoss:
    if name is None:
        name = "label_smoothing" if smoothing and not mixed else "cross_entropy"
    if name not in REGULARISERS:
        raise ValueError(
            f"there is no loss {name!r}{nearest(name, REGULARISERS)}; there are {', '.join(REGULARISERS)}"
        )
    if name == "distillation":
        raise ValueError(
            "distillation needs the logits of a teacher, which timm's script does not give to a criterion: call "
            "softtargets.losses.Distillation with them"
        )
    if mixed and name == "cs_kd":
        raise ValueError(
            "cs_kd compares examples of the same class, but mixup and cutmix mix two classes: turn these off"
        )
    if name == "label_smoothing":
        if mixed and smoothing:
            if options:
                raise ValueError(
                    f"timm already smooths the targets of mixup and cutmix (smoothing={smoothing:g}), so "
                    f"label_smoothing cannot use {', '.join(options)}: set smoothing to 0"
                )
            return CrossEntropy()
        options = {"alpha": smoothing, **options} if smoothing else options
        return LabelSmoothing(**options)
    if mixed and smoothing and name != "cross_entropy":
        warnings.warn(
            f"timm already smooths the targets of mixup and cutmix (smoothing={smoothing:g}), and {name} comes on "
            "top of that: set smoothing to 0 unless you want both",
            stacklevel=3,
        )
    if name in _WITH_TABLE and "classes" not in options:
        classes = arguments.get("num_classes")
        if not classes:
            raise ValueError(
                f"{name} keeps a table with a row for each class: give num_classes in args, or classes=..."
            )
        options = {"classes": int(classes), **options}
    if name == "forward_correction" and "matrix" not in options:
        raise ValueError(
            "forward_correction needs the label noise that it corrects: give matrix=..., where row i has the "
            "probabilities of the labels that examples of class i get"
        )
    return REGULARISERS[name](**options)


class SplitDivergence(nn.Module):
    r"""A loss of the first split of a batch, and how far the predictions of all its splits are apart.

    .. math:: \mathrm{loss}(z_1, y) + \frac{\alpha}{S} \sum_s KL\Big(p_s \Big\| \frac1S \sum_r p_r\Big)

    Hendrycks et al., "AugMix", 2020, as timm's ``JsdCrossEntropy`` has it: a batch is S augmentations of the same
    examples, one after the other, and labels are repeated as often. The mean is clamped at 1e-7 as there. Here the loss
    of the first split may be any.

    >>> z = torch.tensor([[2.0, 0.0], [2.0, 0.0]])
    >>> SplitDivergence(CrossEntropy(), splits=2)(z, torch.tensor([0, 0]))  # the same twice: nothing is added
    tensor(0.1269)
    """

    def __init__(self, loss: SoftTargetLoss, splits: int, alpha: float = SPLITS_ALPHA) -> None:
        super().__init__()
        if splits < 2:
            raise ValueError(f"splits must be at least 2, not {splits}")
        self.loss, self.splits, self.alpha = loss, splits, alpha

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        """The loss of a batch (S * N, K) with labels (S * N)."""
        if len(logits) % self.splits:
            raise ValueError(f"a batch of {len(logits)} cannot be divided into {self.splits} splits")
        parts = logits.split(len(logits) // self.splits)
        loss: Tensor = self.loss(parts[0], target[: len(parts[0])])
        p = torch.stack(
            [F.softmax(part, dim=-1, dtype=torch.promote_types(part.dtype, torch.float32)) for part in parts]
        )
        mean = p.mean(0).clamp(1e-7, 1).log()
        apart = sum(F.kl_div(mean, each, reduction="batchmean") for each in p)
        return loss + self.alpha * apart / self.splits

    def extra_repr(self) -> str:
        """Shown by ``print``."""
        return f"splits={self.splits}, alpha={self.alpha:g}"


class _Arguments:
    """The arguments of timm's training script, whatever they are kept in."""

    def __init__(self, args: Any) -> None:
        self._given = args if isinstance(args, Mapping) else vars(args)

    def get(self, name: str, otherwise: Any = None) -> Any:
        return self._given.get(name, otherwise)

    @property
    def mixed(self) -> bool:
        """As in the script: ``mixup_active``."""
        return bool(
            (self.get("mixup", 0) or 0) > 0
            or (self.get("cutmix", 0) or 0) > 0
            or self.get("cutmix_minmax") is not None
        )

    @property
    def splits(self) -> int:
        if not (self.get("jsd_loss") or self.get("loss") == "jsd"):
            return 0
        splits = int(self.get("aug_splits", 0) or 0)
        if splits < 2:
            raise ValueError("jsd_loss compares augmented splits of a batch: set aug_splits to 2 or more")
        return splits

    def refuse_sigmoid(self) -> None:
        loss = self.get("loss")
        if self.get("bce_loss") or loss == "bce" or loss in _OTHER_LOSSES or self.get("multi_label"):
            what = "bce_loss" if self.get("bce_loss") else f"loss={loss!r}" if loss else "multi_label"
            raise ValueError(
                f"{what} needs a loss that softtargets does not have: ours use the softmax over classes and one "
                "label per example. Use timm's own loss instead"
            )
