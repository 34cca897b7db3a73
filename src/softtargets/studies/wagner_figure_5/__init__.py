"""Figure 5 of the replication: calibration, BLEU and likelihood of a Transformer on Multi30k against temperature."""

from softtargets.studies.study import WAGNER, Settings, Study, Trial
from softtargets.studies.translation.protocols import KEEP
from softtargets.studies.translation.replication import AXES, SEEDS, SIZES, trials_over
from softtargets.studies.wagner_figure_5.claims import claims
from softtargets.studies.wagner_figure_5.findings import findings
from softtargets.studies.wagner_figure_5.measures import ALPHAS, BothWays


def _trials(settings: Settings) -> list[Trial]:
    return trials_over(settings, ALPHAS)


study = Study(
    name="wagner-figure-5",
    title="What does a temperature do to the replication's Transformer?",
    lead=(
        "The replication of 2023 varies the temperature of its Transformer on Multi30k, with hard targets and with "
        "smoothing of 0.3. Smoothing needs less of a temperature, as in the original. But BLEU does not rise with it, "
        "and likelihoods cross. Here are the same curves, computed properly and as the replication's code does."
    ),
    papers=(WAGNER,),
    trials=_trials,
    keep=KEEP,
    again=BothWays,
    findings=findings,
    claims=claims,
    seeds=SEEDS,
    axes=AXES,
    sizes=SIZES,
)
