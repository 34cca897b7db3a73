"""Table 3 of Lu et al. 2023: methods of label regularisation on CIFAR, by accuracy and by time."""

from softtargets.studies.labo.measures import RelativeTime, measure
from softtargets.studies.labo.protocol import AXES, KEEP, SIZES
from softtargets.studies.labo_table_3.findings import SEEDS, claims, findings
from softtargets.studies.labo_table_3.grid import trials
from softtargets.studies.study import LU, Study

study = Study(
    name="labo-table-3",
    title="Is LABO more accurate than other label regularisers, for no more time?",
    lead=(
        "Table 3 of Lu et al. (2023) compares LABO with hard targets, distillation and five other regularisers of "
        "labels, for two networks on CIFAR-10 and CIFAR-100. LABO is the best without a teacher in every column, and "
        "takes as long as hard targets. Here are all of them, and three that the table leaves out: online label "
        "smoothing, the confidence penalty and MaxSup."
    ),
    papers=(LU,),
    trials=trials,
    keep=KEEP,
    measure=measure,
    again=RelativeTime,
    timed=True,
    findings=findings,
    claims=claims,
    seeds=SEEDS,
    axes=AXES,
    sizes=SIZES,
)
