"""Optimisers as updates in place of plain tensors: of one net, or of a stack of nets that are trained together.

An `Update` holds what stays the same from step to step. The learning rate and the number of the step are tensors, and
nothing here asks the device for a value, so a step can be compiled, or recorded once and replayed.
"""

from softtargets.training.optimisers.adam import AdamUpdate
from softtargets.training.optimisers.averaging import average_
from softtargets.training.optimisers.clipping import clip_by_norm_
from softtargets.training.optimisers.making import make_update
from softtargets.training.optimisers.sgd import SGDUpdate
from softtargets.training.optimisers.update import Update

__all__ = ["AdamUpdate", "SGDUpdate", "Update", "average_", "clip_by_norm_", "make_update"]
