"""Figure 2 and table 3 of Müller et al. 2019: does label smoothing calibrate a network?"""

from softtargets.studies.muller_figure_2.findings import claims, findings
from softtargets.studies.muller_figure_2.measures import details, measure, trials
from softtargets.studies.muller_images import AXES, KEEP, SEEDS, SIZES
from softtargets.studies.study import MULLER, Study

study = Study(
    name="muller-figure-2",
    title="Does label smoothing calibrate a network as well as a temperature does?",
    lead=(
        "Müller, Kornblith and Hinton (2019) find a ResNet-56 on CIFAR-100 overconfident after training with hard "
        "targets, and well calibrated both with a temperature of 1.9 and, without any, after label smoothing of 0.05. "
        "Here are the three, beside a smoothing of 0.1."
    ),
    papers=(MULLER,),
    trials=trials,
    keep=KEEP,
    measure=measure,
    details=details,
    findings=findings,
    claims=claims,
    seeds=SEEDS,
    axes=AXES,
    sizes=SIZES,
)
