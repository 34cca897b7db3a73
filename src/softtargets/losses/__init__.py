"""Label regularisers: losses that replace the hard target. They depend on neither recipes nor runs.

All of them are cross-entropy against :math:`(1 - a)\\,onehot(y) + a\\,q`; they differ in where a and q come from,
plus at most one extra term. All are called as ``loss(logits, target)`` and are drop-in replacements for
``torch.nn.CrossEntropyLoss``.
"""

from typing import TYPE_CHECKING, Any

from softtargets.losses.anti_focal import AntiFocalLoss
from softtargets.losses.autograd import use_kernels
from softtargets.losses.base import SoftTargetLoss, WholeBatch
from softtargets.losses.beta_smoothing import BetaSmoothing
from softtargets.losses.confidence_penalty import ConfidencePenalty
from softtargets.losses.conventions import alpha_from_p, convert_alpha, p_from_alpha
from softtargets.losses.cross_entropy import CrossEntropy
from softtargets.losses.cs_kd import CSKD, same_class_partners
from softtargets.losses.distillation import Distillation, TopLogits, top_logits
from softtargets.losses.disturb_label import DisturbLabel
from softtargets.losses.focal import FocalLoss
from softtargets.losses.forward_correction import ForwardCorrection
from softtargets.losses.knowledge_refinery import KnowledgeRefinery
from softtargets.losses.label_smoothing import LabelSmoothing
from softtargets.losses.labo import LABO
from softtargets.losses.logit_smoothing import LogitSmoothing
from softtargets.losses.max_sup import MaxSup
from softtargets.losses.online_label_smoothing import OnlineLabelSmoothing
from softtargets.losses.tf_reg import TFReg

if TYPE_CHECKING:
    from softtargets.losses.linear import LinearLoss, LinearTeacher

# What loads torch's compiler, which takes longer than all else here: only for who asks for it.
_LATER = {"LinearLoss", "LinearTeacher"}


def __getattr__(name: str) -> Any:
    if name in _LATER:
        from softtargets.losses import linear

        return getattr(linear, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


# The names by which recipes call them.
REGULARISERS: dict[str, type[SoftTargetLoss]] = {
    "cross_entropy": CrossEntropy,
    "label_smoothing": LabelSmoothing,
    "distillation": Distillation,
    "confidence_penalty": ConfidencePenalty,
    "focal": FocalLoss,
    "anti_focal": AntiFocalLoss,
    "labo": LABO,
    "tf_reg": TFReg,
    "cs_kd": CSKD,
    "beta_smoothing": BetaSmoothing,
    "online_label_smoothing": OnlineLabelSmoothing,
    "knowledge_refinery": KnowledgeRefinery,
    "forward_correction": ForwardCorrection,
    "logit_smoothing": LogitSmoothing,
    "disturb_label": DisturbLabel,
    "max_sup": MaxSup,
}

__all__ = [
    "CSKD",
    "LABO",
    "REGULARISERS",
    "AntiFocalLoss",
    "BetaSmoothing",
    "ConfidencePenalty",
    "CrossEntropy",
    "Distillation",
    "DisturbLabel",
    "FocalLoss",
    "ForwardCorrection",
    "KnowledgeRefinery",
    "LabelSmoothing",
    "LinearLoss",
    "LinearTeacher",
    "LogitSmoothing",
    "MaxSup",
    "OnlineLabelSmoothing",
    "SoftTargetLoss",
    "TFReg",
    "TopLogits",
    "WholeBatch",
    "alpha_from_p",
    "convert_alpha",
    "p_from_alpha",
    "same_class_partners",
    "top_logits",
    "use_kernels",
]
