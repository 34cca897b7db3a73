"""Label noise: how labels go wrong."""

from softtargets.noise.corruption import pair, symmetric
from softtargets.noise.transitions import pair_transitions, symmetric_transitions

# The names by which recipes call them. Each takes (labels, rate, classes, seed).
CORRUPTIONS = {"symmetric": symmetric, "pair": pair}
# What each does on average, as a matrix. Each takes (rate, classes).
TRANSITIONS = {"symmetric": symmetric_transitions, "pair": pair_transitions}

__all__ = [
    "CORRUPTIONS",
    "TRANSITIONS",
    "pair",
    "pair_transitions",
    "symmetric",
    "symmetric_transitions",
]
