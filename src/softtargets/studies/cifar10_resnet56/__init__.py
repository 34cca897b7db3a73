"""ResNet-56 on CIFAR-10 with and without label smoothing: a row of the replication's table 2."""

from softtargets.studies.cifar10_resnet56.findings import SEEDS, claims, findings
from softtargets.studies.cifar10_resnet56.grid import measure, trials
from softtargets.studies.grids import SMOOTHING_AXES
from softtargets.studies.study import MULLER, WAGNER, Study

study = Study(
    name="cifar10-resnet56",
    title="What does label smoothing do for ResNet-56 on CIFAR-10?",
    lead=(
        "The replication of 2023 adds ResNet-56 on CIFAR-10 to the accuracies of Müller, Kornblith and Hinton (2019): "
        "smoothing of 0.1 changes them by a quarter of a point. Here are both models, trained on all 50,000 training "
        "images and tested on the test set, as the replication does."
    ),
    papers=(MULLER, WAGNER),
    trials=trials,
    measure=measure,
    findings=findings,
    claims=claims,
    seeds=SEEDS,
    axes=("seed", *SMOOTHING_AXES),
)
