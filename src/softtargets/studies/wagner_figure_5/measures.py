"""What is measured of the replication's Transformer over temperatures, properly and by the replication's code."""

from __future__ import annotations

from softtargets.runs import Measured, Run
from softtargets.studies.study import Place, Trial
from softtargets.studies.translation.curves import (
    SMOOTH,
    at,
    kept_sweep,
    measured_curves,
    temperatures_of,
)
from softtargets.studies.translation.measures import TranslatedRuns
from softtargets.studies.translation.protocols import SENTENCES
from softtargets.studies.translation.replication import TEMPERATURES, AsReplicated

ALPHAS = (0.0, 0.3)
HARD, SOFT = ALPHAS
# The ends of the replication's axis that its text calls low and high.
LOW, HIGH = 0.5, 2.0


class BothWays:
    """BLEU, ECE and NLL on the test set; and, as `replicated_...`, what the replication's code gives of validation."""

    def __init__(self, place: Place) -> None:
        self._runs = TranslatedRuns(place)

    def __call__(self, trial: Trial, run: Run) -> Measured:
        """Numbers, and curves of both kinds."""
        size = trial.labels["size"]
        tried, most = temperatures_of(size), SENTENCES.get(size)
        proper = measured_curves(self._runs, run, tried, most)
        theirs = AsReplicated(self._runs, run)
        over_time = dict(zip(SMOOTH, theirs.likelihood_over_time(SMOOTH), strict=True))
        numbers = {
            "temperature": self._runs.sweep(run, TEMPERATURES, "validation").best("ece"),
            "replicated_temperature": theirs.sweep().best("ece"),
            **{at("replicated_bleu", one): theirs.bleu(one, most) for one in tried},
            **{at("replicated_nll", end): over_time[end] for end in (LOW, HIGH)},
        }
        curves = kept_sweep(theirs.sweep(SMOOTH)) | {"nll": [round(one, 6) for one in over_time.values()]}
        return Measured({**proper.measures, **numbers}, {**proper.details, "replicated": curves})
