"""Label noise: how labels go wrong."""

from softtargets.noise.corruption import pair, symmetric

# The names by which recipes call them. Each takes (labels, rate, classes, seed).
CORRUPTIONS = {"symmetric": symmetric, "pair": pair}

__all__ = ["CORRUPTIONS", "pair", "symmetric"]
