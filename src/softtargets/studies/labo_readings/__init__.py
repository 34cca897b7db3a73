"""The readings of LABO (Lu et al. 2023) side by side, and the theory of where training with each comes to rest."""

from softtargets.studies.labo.claiming import SEEDS
from softtargets.studies.labo.measures import OnTrainingImages, details, measure
from softtargets.studies.labo.protocol import AXES, KEEP, SIZES
from softtargets.studies.labo_readings.findings import claims, findings
from softtargets.studies.labo_readings.grid import trials
from softtargets.studies.study import LU, Study

study = Study(
    name="labo-readings",
    title="Which reading of LABO was trained in its paper, and which one helps?",
    lead=(
        "Lu et al. (2023) let each example move its own share of the label's mass to the model's own prediction. "
        "Equation 16, read literally, moves most where the model is confident. Other readings are possible, and the "
        "paper's figure 2 tells them apart: theory says at which probability of the label training with each of them "
        "rests. Here are five readings beside hard targets and label smoothing."
    ),
    papers=(LU,),
    trials=trials,
    keep=KEEP,
    measure=measure,
    details=details,
    again=OnTrainingImages,
    findings=findings,
    claims=claims,
    seeds=SEEDS,
    axes=AXES,
    sizes=SIZES,
)
