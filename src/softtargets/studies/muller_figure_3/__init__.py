"""Figure 3 and the last row of table 3 of Müller et al. 2019: is a Transformer calibrated by label smoothing?"""

from softtargets.studies.muller_figure_3.findings import claims, findings
from softtargets.studies.muller_figure_3.measures import TokenCalibration
from softtargets.studies.study import MULLER, Study
from softtargets.studies.translation.corpora import AXES, SEEDS, SIZES, trials
from softtargets.studies.translation.protocols import KEEP

study = Study(
    name="muller-figure-3",
    title="Does label smoothing calibrate a translation model?",
    lead=(
        "Müller, Kornblith and Hinton (2019) train a Transformer to translate from English to German. With hard "
        "targets its predictions of the next token are overconfident. With a temperature of 1.13, or with label "
        "smoothing of 0.1 and no temperature, they are well calibrated. Here are the three, on corpora at hand."
    ),
    papers=(MULLER,),
    trials=trials,
    keep=KEEP,
    again=TokenCalibration,
    findings=findings,
    claims=claims,
    seeds=SEEDS,
    axes=AXES,
    sizes=SIZES,
)
