"""Figure 7 of Müller et al. 2019, which is figure 1 of their response: the penultimate layer of a Transformer."""

from softtargets.claims import paper
from softtargets.studies.muller_figure_7.claims import claims
from softtargets.studies.muller_figure_7.findings import findings
from softtargets.studies.muller_figure_7.measures import TokenClusters
from softtargets.studies.study import MULLER, Study
from softtargets.studies.translation.corpora import AXES, SEEDS, SIZES, trials
from softtargets.studies.translation.protocols import KEEP

study = Study(
    name="muller-figure-7",
    title="Does label smoothing pull tokens of a translation into tight clusters?",
    lead=(
        "Müller, Kornblith and Hinton (2019) look at the penultimate layer of a Transformer where it is to predict one "
        "of three tokens, on the plane through the templates of these. They see what they saw of images: tighter "
        "clusters with label smoothing. But here a model errs on its training set too."
    ),
    papers=(MULLER, paper("response-2019").citation),
    trials=trials,
    keep=KEEP,
    again=TokenClusters,
    findings=findings,
    claims=claims,
    seeds=SEEDS,
    axes=AXES,
    sizes=SIZES,
)
