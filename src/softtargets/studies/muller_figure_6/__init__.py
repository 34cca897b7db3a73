"""Mutual information between an example and a logit difference during training: Müller et al. 2019, figure 6."""

from softtargets.studies.grids import SMOOTHING_AXES
from softtargets.studies.muller_figure_6.findings import SEEDS, claims, findings
from softtargets.studies.muller_figure_6.grid import measure, trials
from softtargets.studies.study import MULLER, Study

study = Study(
    name="muller-figure-6",
    title="Does label smoothing erase what the logits say about an example?",
    lead=(
        "Müller, Kornblith and Hinton (2019) estimate, while ResNet-56 learns CIFAR-10, how many nats the difference "
        "of two logits tells about which of 600 training images it belongs to. They find that the information rises "
        "and then falls, especially with label smoothing, and ends a little above log 2: the label and not much more."
    ),
    papers=(MULLER,),
    trials=trials,
    keep=("validation:scores", "test:scores", "train:scores"),
    measure=measure,
    findings=findings,
    claims=claims,
    axes=("seed", "probes", *SMOOTHING_AXES),
    seeds=SEEDS,
    sizes=("small", "full"),
)
