"""Figure 4 of Müller et al. 2019: BLEU, calibration and likelihood of a Transformer against temperature."""

from softtargets.studies.muller_figure_4.claims import claims
from softtargets.studies.muller_figure_4.findings import findings
from softtargets.studies.muller_figure_4.measures import OverTemperatures
from softtargets.studies.study import MULLER, Study
from softtargets.studies.translation.corpora import AXES, SEEDS, SIZES, trials
from softtargets.studies.translation.protocols import KEEP

study = Study(
    name="muller-figure-4",
    title="Does a temperature raise BLEU as much as label smoothing does?",
    lead=(
        "Beam search relies on a model's probabilities, so a better calibrated model should translate better. Müller, "
        "Kornblith and Hinton (2019) vary calibration by a temperature: with hard targets a higher one helps a little, "
        "with label smoothing none does, and label smoothing stays ahead although its likelihood is worse."
    ),
    papers=(MULLER,),
    trials=trials,
    keep=KEEP,
    again=OverTemperatures,
    findings=findings,
    claims=claims,
    seeds=SEEDS,
    axes=AXES,
    sizes=SIZES,
)
