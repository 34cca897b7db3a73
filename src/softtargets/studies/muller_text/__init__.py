"""Statements of Müller et al. 2019 without a table or figure: learning speed and transfer."""

from softtargets.studies.muller_images import SEEDS, SIZES
from softtargets.studies.muller_text.findings import claims, findings
from softtargets.studies.muller_text.grid import AXES, measure, trials
from softtargets.studies.muller_text.transfer import Transfer
from softtargets.studies.study import MULLER, Study

study = Study(
    name="muller-text",
    title="Does label smoothing make training faster, and what is learnt harder to reuse?",
    lead=(
        "Müller, Kornblith and Hinton (2019) say in passing that a smoothed teacher trains much faster than one with "
        "dropout, and recall earlier work in which smoothing impaired transfer learning. No table shows either. Here "
        "both are measured."
    ),
    papers=(MULLER,),
    trials=trials,
    keep=("test:scores",),
    measure=measure,
    findings=findings,
    claims=claims,
    again=Transfer,
    seeds=SEEDS,
    axes=AXES,
    sizes=SIZES[:2],
)
