"""Is temperature scaling after label smoothing ever worth it? Asked of the networks of the replication's tables."""

from softtargets.studies.beyond import AXES, SEEDS, SIZES, trials
from softtargets.studies.beyond_temperature.findings import claims, findings
from softtargets.studies.beyond_temperature.measures import details, measure
from softtargets.studies.study import MULLER, WAGNER, Study

study = Study(
    name="beyond-temperature",
    title="Is temperature scaling after label smoothing ever worth it?",
    lead=(
        "Müller, Kornblith and Hinton (2019) calibrate networks by label smoothing or by temperature scaling, and the "
        "replication by Wagner et al. (2023) does both. This page asks what a temperature still gains after smoothing, "
        "and whether the two together are better than scaling alone, with temperatures fitted to held-out examples."
    ),
    papers=(MULLER, WAGNER),
    trials=trials,
    keep=("test:scores",),
    measure=measure,
    details=details,
    findings=findings,
    claims=claims,
    seeds=SEEDS,
    axes=AXES,
    sizes=tuple(SIZES),
)
