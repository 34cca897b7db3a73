"""What Lu et al. 2023 did not ask of LABO: whether it calibrates, and whether it survives wrong labels."""

from softtargets.studies.beyond_labo.findings import claims, findings
from softtargets.studies.beyond_labo.grid import trials
from softtargets.studies.grids import NOISE_AXES
from softtargets.studies.labo.claiming import SEEDS
from softtargets.studies.labo.measures import measure
from softtargets.studies.labo.protocol import AXES, KEEP, SIZES
from softtargets.studies.study import LU, Study

study = Study(
    name="beyond-labo",
    title="Does LABO calibrate, and does it survive wrong labels?",
    lead=(
        "Lu et al. (2023) motivate LABO with overconfidence and measure accuracy alone. Here is its calibration error, "
        "with and without a temperature, beside hard targets and label smoothing, and its accuracy when 20 or 40 % of "
        "the training labels are wrong. LABO is read in three ways: as equation 16 is printed, with a fixed alpha, and "
        "reversed."
    ),
    papers=(LU,),
    trials=trials,
    keep=KEEP,
    measure=measure,
    findings=findings,
    claims=claims,
    seeds=SEEDS,
    axes=(*AXES, *NOISE_AXES),
    sizes=SIZES,
)
