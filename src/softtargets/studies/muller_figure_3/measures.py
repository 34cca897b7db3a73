"""What is measured of the calibration of a translation model, as trained and with a temperature."""

from __future__ import annotations

from softtargets.runs import Measured, Run
from softtargets.studies.study import Place, Trial
from softtargets.studies.translation.diagrams import token_bins
from softtargets.studies.translation.measures import TranslatedRuns, ece_shares, shares_of
from softtargets.translation import TokenPredictions

# The temperature of table 3.
PRINTED_TEMPERATURE = 1.13


class TokenCalibration:
    """Predictions of the next token, given a correct prefix and without padding.

    `temperature` has the highest likelihood of the held-out pairs and `temperature_by_ece` the least ECE of them;
    `scaled_ece` is that of the test set with the former: no sentence both chooses and judges. `held_out_scaled_ece` is
    chosen and judged on the held-out pairs, as the paper seems to do, and `ece_at_printed` is theirs at the paper's
    temperature. `overconfidence` is the mean confidence minus the accuracy.
    """

    def __init__(self, place: Place) -> None:
        self._runs = TranslatedRuns(place)

    def __call__(self, trial: Trial, run: Run) -> Measured:
        """Numbers, and bins of the diagrams."""
        runs = self._runs
        temperature = runs.best_temperature(run, by="nll")
        test, scaled = runs.tokens(run), runs.tokens(run, temperature=temperature)
        held_out = runs.tokens(run, "validation")
        numbers = {
            "accuracy": test.accuracy,
            "nll": test.nll,
            "ece": test.ece(),
            "overconfidence": _overconfidence(test),
            "temperature": temperature,
            "temperature_by_ece": runs.best_temperature(run, by="ece"),
            "scaled_ece": scaled.ece(),
            "scaled_nll": scaled.nll,
            "held_out_ece": held_out.ece(),
            "held_out_scaled_ece": runs.tokens(run, "validation", temperature).ece(),
            "ece_at_printed": runs.tokens(run, "validation", PRINTED_TEMPERATURE).ece(),
        }
        shares = {
            "ece": ece_shares(test),
            "scaled_ece": ece_shares(scaled),
            "overconfidence": shares_of(lambda chosen: _overconfidence(test.part(chosen)), len(test.lengths)),
        }
        bins = {"bins": token_bins(test), "scaled_bins": token_bins(scaled)}
        return Measured(numbers, {**bins, "pseudo_values": shares})


def _overconfidence(tokens: TokenPredictions) -> float:
    return float(tokens.confidence.mean()) - tokens.accuracy
