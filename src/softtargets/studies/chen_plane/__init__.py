"""The plane of clean rates a and smoothings p of Chen et al. 2020, trained and measured: figures 5 to 11.

The studies of MNIST and of CIFAR-10 differ in nets, data and grids only; the rest is here.
"""

from softtargets.studies.chen_plane.findings import findings
from softtargets.studies.chen_plane.grid import AXES, KEEP, Plane, Scope, noise, smoothing, trials
from softtargets.studies.chen_plane.measuring import Trained, measure

__all__ = ["AXES", "KEEP", "Plane", "Scope", "Trained", "findings", "measure", "noise", "smoothing", "trials"]
