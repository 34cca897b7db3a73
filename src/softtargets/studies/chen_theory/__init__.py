"""The theory of Chen et al. 2020: figures 1 to 4 computed, and what the paper says about them checked by search."""

from softtargets.studies.chen_theory.claims import claims as stated
from softtargets.studies.chen_theory.findings import findings
from softtargets.studies.study import CHEN, Study

study = Study(
    name="chen-theory",
    title="How much smoothing is best when some labels are wrong? The theory",
    lead=(
        "Chen, Ziyin, Wang and Liang (2020) compute the test loss of a network that has memorised smoothed and partly "
        "wrong labels, and which smoothing makes that loss lowest. Here are figures 1 to 4 of their paper, and each "
        "statement about them put to the test, by searching the equations as they are printed. Nothing is trained."
    ),
    papers=(CHEN,),
    findings=findings,
    claims=lambda results: stated(),
    seeds=1,
)
