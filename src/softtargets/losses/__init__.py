"""Label regularisers: one loss, one file, one class. Nothing here knows of recipes or runs.

All of them are cross-entropy against :math:`(1 - a)\\,onehot(y) + a\\,q`; they differ in where a and q come from,
plus at most one extra term. All are called as ``loss(logits, target)`` and drop in for
``torch.nn.CrossEntropyLoss``.
"""

from softtargets.losses.anti_focal import AntiFocalLoss
from softtargets.losses.base import SoftTargetLoss
from softtargets.losses.confidence_penalty import ConfidencePenalty
from softtargets.losses.converting import alpha_from_p, convert_alpha, p_from_alpha
from softtargets.losses.cross_entropy import CrossEntropy
from softtargets.losses.distillation import Distillation, TopLogits, top_logits
from softtargets.losses.focal import FocalLoss
from softtargets.losses.label_smoothing import LabelSmoothing
from softtargets.losses.labo import LABO

# The names by which recipes call them.
REGULARISERS: dict[str, type[SoftTargetLoss]] = {
    "cross_entropy": CrossEntropy,
    "label_smoothing": LabelSmoothing,
    "distillation": Distillation,
}

__all__ = [
    "LABO",
    "REGULARISERS",
    "AntiFocalLoss",
    "ConfidencePenalty",
    "CrossEntropy",
    "Distillation",
    "FocalLoss",
    "LabelSmoothing",
    "SoftTargetLoss",
    "TopLogits",
    "alpha_from_p",
    "convert_alpha",
    "p_from_alpha",
    "top_logits",
]
