"""Does label smoothing harm selective prediction, and do normalised logits repair it? (Xia et al. 2025)."""

from softtargets.claims import paper
from softtargets.studies.beyond import AXES, SEEDS, SIZES, trials
from softtargets.studies.beyond_selection.findings import claims, findings
from softtargets.studies.beyond_selection.measures import details, measure
from softtargets.studies.study import WAGNER, Study

study = Study(
    name="beyond-selection",
    title="Does label smoothing harm selective prediction, and do normalised logits repair it?",
    lead=(
        "Xia, Laurent, Franchi and Bouganis (2025) find that networks trained with label smoothing are worse at "
        "telling their own mistakes, and that normalising the logits afterwards helps. This page asks the same of the "
        "networks that the papers on label smoothing train."
    ),
    papers=(str(paper("xia-2025")), WAGNER),
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
