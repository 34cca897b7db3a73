"""How fast the losses are, forward + backward, against torch eager, torch.compile and Liger."""

from softtargets.bench.losses.grid import Plan, plan
from softtargets.bench.losses.results import Results

__all__ = ["Plan", "Results", "plan"]
