"""The quickstart: the story of Müller et al. 2019 on real digits, in under a minute on a CPU."""

from softtargets.studies.grids import SMOOTHING_AXES
from softtargets.studies.quickstart.findings import SEEDS, claims, findings
from softtargets.studies.quickstart.grid import measure, trials
from softtargets.studies.study import MULLER, Study

study = Study(
    name="quickstart",
    title="When does label smoothing help? The short story, on handwritten digits",
    lead=(
        "Müller, Kornblith and Hinton (2019) found that label smoothing calibrates a network, pulls its classes "
        "into tight clusters, and makes it a worse teacher. This page tests each of these effects on a small, real "
        "dataset, trained and measured on your own machine."
    ),
    papers=(MULLER,),
    trials=trials,
    keep=("train", "validation", "test"),
    measure=measure,
    findings=findings,
    claims=claims,
    seeds=SEEDS,
    axes=("seed", "data", "data.name", *SMOOTHING_AXES),
)
