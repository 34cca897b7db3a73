"""The theory of Chen et al. 2020: figures 1 to 4 computed, and what the paper says about them checked by search."""

from softtargets.studies.chen_theory.claims import claims
from softtargets.studies.chen_theory.findings import findings
from softtargets.studies.study import CHEN, Study

study = Study(
    name="chen-theory",
    title="How much smoothing is best when some labels are wrong? The theory",
    lead=(
        "Chen, Ziyin, Wang and Liang (2020) compute what a net loses that has learned smoothed and partly wrong labels "
        "by heart, and how much smoothing loses least. Here are figures 1 to 4 of their paper, and each statement "
        "about them put to the test: by searching the equations as they are printed. No net is trained."
    ),
    papers=(CHEN,),
    findings=findings,
    claims=lambda results: claims(),
    seeds=1,
)
