"""Label regularisers: one loss, one file, one class. Nothing here knows of recipes or runs."""

from torch.nn import CrossEntropyLoss, Module

from softtargets.losses.distillation import Distillation
from softtargets.losses.label_smoothing import LabelSmoothing

# The names by which recipes call them.
REGULARISERS: dict[str, type[Module]] = {
    "cross_entropy": CrossEntropyLoss,
    "label_smoothing": LabelSmoothing,
    "distillation": Distillation,
}

__all__ = ["REGULARISERS", "Distillation", "LabelSmoothing"]
