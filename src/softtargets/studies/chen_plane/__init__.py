"""The plane of clean rates a and smoothings p of Chen et al. 2020, trained and measured: figures 5 to 11.

The studies of MNIST and of CIFAR-10 differ in models, data and grids only; the rest is here.
"""

from functools import partial

from softtargets.studies.chen_plane.claims import SEEDS
from softtargets.studies.chen_plane.claims import claims as stated
from softtargets.studies.chen_plane.findings import findings
from softtargets.studies.chen_plane.grid import AXES, Plane, Scope, trials
from softtargets.studies.chen_plane.measures import TrainingLoss, measure
from softtargets.studies.study import CHEN, Study

CLASSES = 10  # of MNIST and of CIFAR-10

__all__ = ["AXES", "Plane", "Scope", "plane_study"]


def plane_study(scope: Scope, name: str, title: str, lead: str) -> Study:
    """The study of one plane."""
    return Study(
        name=name,
        title=title,
        lead=lead,
        papers=(CHEN,),
        trials=partial(trials, scope),
        keep=("test:scores",),
        measure=measure,
        again=TrainingLoss,
        findings=partial(findings, scope),
        claims=partial(stated, classes=CLASSES, losses_only=scope.losses_only, scope=scope),
        axes=AXES,
        # One more chooses cells; claims about losses choose none.
        seeds=SEEDS if scope.losses_only else SEEDS + 1,
        sizes=tuple(scope.grids),
    )
