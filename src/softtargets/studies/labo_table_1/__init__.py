"""Table 1 of Lu et al. 2023: methods of label regularisation in translation, by BLEU."""

from __future__ import annotations

from softtargets.studies.labo_table_1.findings import METHODS, claims, findings, trials
from softtargets.studies.labo_translation.measures import OnTest
from softtargets.studies.labo_translation.protocol import SEEDS, SIZES
from softtargets.studies.study import LU, Study
from softtargets.studies.translation.protocols import AXES, KEEP

__all__ = ["METHODS", "study"]

study = Study(
    name="labo-table-1",
    title="Does LABO translate better than label smoothing and other regularisers?",
    lead=(
        "Table 1 of Lu et al. (2023) has BLEU of a Transformer with hard targets, label smoothing (LS), confidence "
        "penalty (CP), focal loss (FL), anti-focal loss (AFL) and LABO, for six translations. All but FL improve on "
        "hard targets, and LABO is the best in every column. Here are the same methods, and LABO in three readings."
    ),
    papers=(LU,),
    trials=trials,
    keep=KEEP,
    again=OnTest,
    findings=findings,
    claims=claims,
    seeds=SEEDS,
    axes=AXES,
    sizes=SIZES,
)
