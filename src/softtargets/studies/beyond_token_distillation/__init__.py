"""Do students of smoothed teachers translate worse? Distillation between translation models, beyond the papers."""

from softtargets.studies.beyond_token_distillation.findings import claims, findings
from softtargets.studies.beyond_token_distillation.grid import AXES, SEEDS, Agreement, trials
from softtargets.studies.study import MULLER, Study
from softtargets.studies.translation.protocols import KEEP, SIZES

study = Study(
    name="beyond-token-distillation",
    title="Does a smoothed teacher of translation have worse students?",
    lead=(
        "Müller, Kornblith and Hinton (2019) find that label smoothing makes better classifiers and worse teachers of "
        "images. They leave open whether translation models are so too. Here small Transformers learn every next token "
        "from large ones, with hard or smoothed targets."
    ),
    papers=(MULLER,),
    trials=trials,
    keep=KEEP,
    again=Agreement,
    findings=findings,
    claims=claims,
    seeds=SEEDS,
    axes=AXES,
    sizes=SIZES,
)
