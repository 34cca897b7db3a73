"""LABO (Lu et al. 2023) over its two hyper-parameters, tau and rho."""

from softtargets.studies.labo.claiming import SEEDS
from softtargets.studies.labo.measures import OnTrainingImages, measure
from softtargets.studies.labo.protocol import AXES, KEEP, SIZES
from softtargets.studies.labo_sweeps.findings import claims, findings
from softtargets.studies.labo_sweeps.grid import trials
from softtargets.studies.study import LU, Study

study = Study(
    name="labo-sweeps",
    title="How much do LABO's tau and rho matter?",
    lead=(
        "LABO has a temperature tau, for which Lu et al. (2023) try 1.15 and 1.25, and rho, which lies between 0.5 and "
        "1 and is always 0.5 there. The paper shows no sweep of either. Here are both, one at a time, with what theory "
        "says about the probability of the label at which training rests."
    ),
    papers=(LU,),
    trials=trials,
    keep=KEEP,
    measure=measure,
    again=OnTrainingImages,
    findings=findings,
    claims=claims,
    seeds=SEEDS,
    axes=AXES,
    sizes=SIZES,
)
