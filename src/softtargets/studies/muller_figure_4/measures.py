"""What is measured of a translation model over temperatures."""

from __future__ import annotations

from softtargets.runs import Measured, Run
from softtargets.studies.study import Place, Trial
from softtargets.studies.translation.curves import measured_curves, temperatures_of
from softtargets.studies.translation.measures import TranslatedRuns
from softtargets.studies.translation.protocols import SENTENCES


class OverTemperatures:
    """BLEU of beam search, and ECE and NLL of next tokens, on the test set at each temperature."""

    def __init__(self, place: Place) -> None:
        self._runs = TranslatedRuns(place)

    def __call__(self, trial: Trial, run: Run) -> Measured:
        """Numbers, and curves for the figure."""
        size = trial.labels["size"]
        return measured_curves(self._runs, run, temperatures_of(size), SENTENCES.get(size))
