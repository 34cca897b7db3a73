"""Benchmarks: ours against what people use today, as ratios measured in one run. Torch is imported late."""

from softtargets.bench.losses.grid import Plan, plan
from softtargets.bench.losses.results import Results

__all__ = ["Plan", "Results", "plan"]
