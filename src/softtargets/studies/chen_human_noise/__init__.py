"""The theory of Chen et al. 2020 with labels that people gave (CIFAR-10N), which the paper did not do."""

from softtargets.studies.chen_human_noise.findings import SEEDS, claims, findings
from softtargets.studies.chen_human_noise.grid import AXES, SIZES, trials
from softtargets.studies.chen_human_noise.measures import CleanRate, measure
from softtargets.studies.study import CHEN, WEI, Study

study = Study(
    name="chen-human-noise",
    title="Does the theory of optimal smoothing hold for mistakes that people make?",
    lead=(
        "The theory of Chen, Ziyin, Wang and Liang (2020) is about labels that are wrong at random, and their "
        "experiments have such noise only. Here networks are trained on labels that people gave to CIFAR-10, and "
        "beside them on labels that are wrong as often but at random."
    ),
    papers=(CHEN, WEI),
    trials=trials,
    keep=("test:scores",),
    measure=measure,
    findings=findings,
    claims=claims,
    seeds=SEEDS,
    axes=AXES,
    again=CleanRate,
    sizes=tuple(SIZES),
)
