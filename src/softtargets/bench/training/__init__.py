"""How fast whole trainings are: our engine, one run or many at a time, against a plain eager PyTorch loop."""

from softtargets.bench.training.grid import Plan, plan
from softtargets.bench.training.results import Results

__all__ = ["Plan", "Results", "plan"]
