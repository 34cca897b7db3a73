"""What is measured of the calibration of the replication's Transformer, without padding and with it."""

from __future__ import annotations

from softtargets.runs import Measured, Run
from softtargets.studies.study import Place, Trial
from softtargets.studies.translation.diagrams import token_bins
from softtargets.studies.translation.measures import TranslatedRuns, ece_shares
from softtargets.studies.translation.replication import TEMPERATURES, AsReplicated
from softtargets.translation import PAD

# The strengths of table 3.
ALPHAS = (0.0, 0.05, 0.1, 0.15, 0.3)
SMALL_ALPHAS = (0.0, 0.1, 0.3)


class TransformerCalibration:
    """Calibration of next tokens; names that begin with `padded` are of the replication's computation.

    Temperatures, in tenths, are those with the least ECE of the validation set: `scaled_ece` is that of the test set
    with such a temperature, `held_out_scaled_ece` and `padded_scaled_ece` are of the validation set itself, as in the
    replication. `padding` is the share of places that hold none of the sentences' tokens, `padding_confidence` how
    confident the model is there on average, and `padding_accuracy` how often it predicts the symbol for padding.
    """

    def __init__(self, place: Place) -> None:
        self._runs = TranslatedRuns(place)

    def __call__(self, trial: Trial, run: Run) -> Measured:
        """Numbers, and bins of the diagrams."""
        runs, theirs = self._runs, AsReplicated(self._runs, run)
        temperature = runs.sweep(run, TEMPERATURES, "validation").best("ece")
        hot = theirs.sweep().best("ece")
        test, scaled = runs.tokens(run), runs.tokens(run, temperature=temperature)
        held_out, held_out_scaled = (
            runs.tokens(run, "validation"),
            runs.tokens(run, "validation", temperature),
        )
        padded, padded_scaled = theirs.tokens(), theirs.tokens(hot)
        empty = padded.labels == PAD
        numbers = {
            "accuracy": test.accuracy,
            "ece": test.ece(),
            "temperature": temperature,
            "scaled_ece": scaled.ece(),
            "held_out_ece": held_out.ece(),
            "held_out_nll": held_out.nll,
            "held_out_scaled_ece": held_out_scaled.ece(),
            "held_out_scaled_nll": held_out_scaled.nll,
            "padded_ece": padded.ece(),
            "padded_nll": padded.nll,
            "padded_temperature": hot,
            "padded_scaled_ece": padded_scaled.ece(),
            "padded_scaled_nll": padded_scaled.nll,
            "padding": float(empty.mean()),
            "padding_confidence": float(padded.confidence[empty].mean()),
            "padding_accuracy": float(padded.right[empty].mean()),
        }
        shares = {"ece": ece_shares(test), "scaled_ece": ece_shares(scaled)}
        bins = {
            "bins": held_out,
            "scaled_bins": held_out_scaled,
            "padded_bins": padded,
            "padded_scaled_bins": padded_scaled,
        }
        return Measured(
            numbers, {**{key: token_bins(one) for key, one in bins.items()}, "pseudo_values": shares}
        )
