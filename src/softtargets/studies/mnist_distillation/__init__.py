"""Distillation on MNIST: the table in words and the four curves of Müller et al. 2019, section 4."""

from softtargets.studies.distilling import Smoothness
from softtargets.studies.mnist_distillation.claims import SEEDS
from softtargets.studies.mnist_distillation.claims import claims as stated
from softtargets.studies.mnist_distillation.findings import findings
from softtargets.studies.mnist_distillation.grid import AXES, measure, trials
from softtargets.studies.study import MULLER, WAGNER, Study

study = Study(
    name="mnist-distillation",
    title="Does a smoothed teacher teach worse? Distillation on MNIST",
    lead=(
        "Müller, Kornblith and Hinton (2019) found on MNIST that a teacher trained with label smoothing is better than "
        "one with dropout and yet teaches a worse student; the replication of 2023 found the same, and drew the four "
        "curves of the paper's figure 5 for these networks. Here are both, trained as the paper describes except for "
        "what the section on differences lists, above all clipped gradients."
    ),
    papers=(MULLER, WAGNER),
    trials=trials,
    keep=("test:scores",),
    measure=measure,
    findings=findings,
    claims=stated,
    axes=AXES,
    seeds=SEEDS,
    again=Smoothness,
)
