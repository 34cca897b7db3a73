"""The four curves of the figure, as the points that lie on them."""

from __future__ import annotations

from softtargets.studies.distilling import Scenario
from softtargets.studies.mnist_distillation.grid import ALPHAS, TEMPERATURES
from softtargets.studies.results import over

TEACHERS = Scenario("M1", "teacher, label smoothing", over(role=["teacher"], alpha=ALPHAS))
BASELINES = Scenario("M2", "student alone, label smoothing", over(role=["baseline"], alpha=ALPHAS))
OF_HARD = Scenario(
    "M3",
    "student of the hard teacher, T = 1 to 16",
    over(role=["student"], alpha=[0.0], temperature=TEMPERATURES),
)
OF_SMOOTHED = Scenario(
    "M4",
    "student of a smoothed teacher, T = 1",
    over(role=["student"], alpha=ALPHAS, temperature=[1.0]),
)
CURVES = (TEACHERS, BASELINES, OF_HARD, OF_SMOOTHED)
