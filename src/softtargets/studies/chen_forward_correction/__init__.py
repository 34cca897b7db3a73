"""Noise that is not symmetric: smoothing by a matrix against forward correction, which Chen et al. 2020 equate."""

from softtargets.studies.chen_forward_correction.findings import SEEDS, claims, findings
from softtargets.studies.chen_forward_correction.grid import AXES, SIZES, trials
from softtargets.studies.chen_forward_correction.measures import measure
from softtargets.studies.study import CHEN, PATRINI, Study

study = Study(
    name="chen-forward-correction",
    title="Is smoothing by a matrix the same as forward correction?",
    lead=(
        "Chen, Ziyin, Wang and Liang (2020) derive the best smoothing matrix for any label noise and say that forward "
        "correction is equivalent. They train with symmetric noise only, where the best matrix is that of the noise. "
        "Here labels go wrong in one direction: the matrix that they print and the one by Bayes' rule differ. Both are "
        "trained and compared with forward correction."
    ),
    papers=(CHEN, PATRINI),
    trials=trials,
    keep=("test:scores",),
    measure=measure,
    findings=findings,
    claims=claims,
    seeds=SEEDS,
    axes=AXES,
    sizes=tuple(SIZES),
)
