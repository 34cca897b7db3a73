"""Distillation from ResNet-56 to AlexNet on CIFAR-10: Müller et al. 2019, figure 5; the replication's figure 8."""

from softtargets.studies.distilling import Smoothness
from softtargets.studies.muller_figure_5.claims import SEEDS, claims
from softtargets.studies.muller_figure_5.findings import findings
from softtargets.studies.muller_figure_5.grid import AXES, measure, trials
from softtargets.studies.study import MULLER, WAGNER, Study

study = Study(
    name="muller-figure-5",
    title="Does a smoothed teacher teach worse? From ResNet-56 to AlexNet on CIFAR-10",
    lead=(
        "Müller, Kornblith and Hinton (2019) distil ResNet-56 into AlexNet on CIFAR-10. They find that label smoothing "
        "makes a better teacher and a worse student: students of a teacher with hard targets beat students alone, and "
        "students of smoothed teachers do not. The replication of 2023 finds the same of students, not of teachers."
    ),
    papers=(MULLER, WAGNER),
    trials=trials,
    keep=("validation:scores", "test:scores", "train:scores"),
    measure=measure,
    findings=findings,
    claims=claims,
    axes=AXES,
    seeds=SEEDS,
    sizes=("small", "full"),
    again=Smoothness,
)
