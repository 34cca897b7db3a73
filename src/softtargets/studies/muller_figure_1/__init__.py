"""Figure 1 of Müller et al. 2019: what does label smoothing do to the penultimate layer?"""

from softtargets.studies.muller_figure_1.claims import claims
from softtargets.studies.muller_figure_1.findings import findings
from softtargets.studies.muller_figure_1.measures import details, measure, trials
from softtargets.studies.muller_images import AXES, SEEDS, SIZES
from softtargets.studies.study import MULLER, Study

study = Study(
    name="muller-figure-1",
    title="Does label smoothing pull classes into tight, equally distant clusters?",
    lead=(
        "Müller, Kornblith and Hinton (2019) look at the penultimate layer on the plane through three class templates. "
        "Without smoothing they see broad clusters, with smoothing tight ones in a regular triangle, and two similar "
        "classes in an arc. Here are their pictures, and each of these statements as a number."
    ),
    papers=(MULLER,),
    trials=trials,
    # With penultimate activations: 30 to 40 MB a run. ImageNet's would be 13 GB, so that size is not offered.
    keep=("train", "validation"),
    measure=measure,
    details=details,
    findings=findings,
    claims=claims,
    seeds=SEEDS,
    axes=AXES,
    sizes=SIZES[:2],
)
