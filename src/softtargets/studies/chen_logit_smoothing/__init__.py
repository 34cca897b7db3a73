"""Logit smoothing, which Chen et al. 2020 ask about in section 6.2: does it work?"""

from softtargets.studies.chen_logit_smoothing.findings import SEEDS, claims, findings
from softtargets.studies.chen_logit_smoothing.grid import SIZES, trials
from softtargets.studies.chen_logit_smoothing.measures import measure
from softtargets.studies.chen_plane import AXES
from softtargets.studies.study import CHEN, Study

study = Study(
    name="chen-logit-smoothing",
    title="Does logit smoothing work?",
    lead=(
        "Chen, Ziyin, Wang and Liang (2020) compare label smoothing and forward correction: the same matrix, outside "
        "the logarithm or inside. They call it logit smoothing if the matrix acts on the logits, and ask whether that "
        "works. This page compares all three on MNIST with wrong labels."
    ),
    papers=(CHEN,),
    trials=trials,
    keep=("test:scores",),
    measure=measure,
    findings=findings,
    claims=claims,
    seeds=SEEDS + 1,  # one chooses p, the others judge
    axes=AXES,
    sizes=tuple(SIZES),
)
