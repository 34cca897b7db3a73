"""Matching a teacher's logits, each teacher at its own best rate and clip: Müller et al. 2019, section 4 and A.5."""

from softtargets.studies.muller_logit_matching.findings import SEEDS, claims, findings
from softtargets.studies.muller_logit_matching.grid import AXES, measure, trials
from softtargets.studies.study import MULLER, WAGNER, Study

study = Study(
    name="muller-logit-matching",
    title="Does a smoothed teacher still teach worse when each student trains at its own best rate?",
    lead=(
        "On MNIST, Müller, Kornblith and Hinton (2019) train students to match their teacher's logits, and the "
        "student of a smoothed teacher makes more errors. A hard teacher's logits are larger than a smoothed one's, "
        "so one learning rate and one clip may favour either. Here each student has the rate and the clip that suit it."
    ),
    papers=(MULLER, WAGNER),
    trials=trials,
    keep=("test:scores",),
    measure=measure,
    findings=findings,
    claims=claims,
    axes=AXES,
    seeds=SEEDS,
    sizes=("small", "full"),
)
