"""What instruments are given: arrays of any model, from torch or numpy, checked before anything is computed."""

from softtargets.arrays.checking import ArrayLike, as_labels, as_logits, as_probabilities
from softtargets.arrays.seeds import over_seeds

__all__ = ["ArrayLike", "as_labels", "as_logits", "as_probabilities", "over_seeds"]
