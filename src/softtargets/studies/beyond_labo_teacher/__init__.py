"""Does a teacher that was trained with LABO teach well? Beyond the papers."""

from softtargets.claims import paper
from softtargets.studies.beyond_labo_teacher.findings import claims, findings
from softtargets.studies.beyond_labo_teacher.grid import AXES, SEEDS, measure, trials
from softtargets.studies.distilling import Smoothness
from softtargets.studies.study import MULLER, Study

study = Study(
    name="beyond-labo-teacher",
    title="Does a teacher that was trained with LABO teach well?",
    lead=(
        "Lu et al. (2023) smooth each label towards what the model itself predicts (LABO). Müller, Kornblith and "
        "Hinton (2019) find that uniform smoothing makes poor teachers, since it erases how examples resemble other "
        "classes. Neither paper says whether LABO erases it too. Here students learn from teachers of both kinds."
    ),
    papers=(str(paper("lu-2023")), MULLER),
    trials=trials,
    keep=("test:scores", "train:scores"),
    measure=measure,
    findings=findings,
    claims=claims,
    axes=AXES,
    seeds=SEEDS,
    sizes=("small", "full"),
    again=Smoothness,
)
