"""How fast calibration is measured: all metrics at once by us, against packages that compute the ECE alone."""

from softtargets.bench.calibration.grid import Plan, plan
from softtargets.bench.calibration.results import Results

__all__ = ["Plan", "Results", "plan"]
