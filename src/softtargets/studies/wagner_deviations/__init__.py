"""What the replication's deviations from Müller et al. do."""

from softtargets.studies.grids import SMOOTHING_AXES
from softtargets.studies.study import MULLER, WAGNER, Study
from softtargets.studies.wagner.measures import accuracies
from softtargets.studies.wagner.networks import SEEDS
from softtargets.studies.wagner_deviations.findings import claims, findings
from softtargets.studies.wagner_deviations.grid import trials

study = Study(
    name="wagner-deviations",
    title="Do the replication's deviations matter?",
    lead=(
        "The replication of 2023 trains its networks a little differently from Müller, Kornblith and Hinton (2019): by "
        "choice, where the paper is silent, and by mistakes in its code. Here each difference is made alone, and all "
        "of them together."
    ),
    papers=(WAGNER, MULLER),
    trials=trials,
    measure=accuracies,
    keep=("test:scores",),
    findings=findings,
    claims=claims,
    seeds=SEEDS,
    axes=(
        "seed",
        "data",
        "data.name",
        "data.standardise",
        "data.validation",
        "model",
        "model.name",
        "augmentation",
        "batch",
        "optimiser.decay_form",
        *SMOOTHING_AXES,
    ),
    sizes=("small", "full"),
)
