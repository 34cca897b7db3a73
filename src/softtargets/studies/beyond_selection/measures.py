"""What is read from each model: how well its confidence tells mistakes from correct predictions, in two ways."""

from __future__ import annotations

from typing import Any

import numpy as np

from softtargets.runs import Run
from softtargets.selection import RiskCoverage, fit_normalisation, measure_selection
from softtargets.studies.study import Trial

# Accuracy is looked at for these shares of the test set, the most confident ones.
COVERAGES = (0.8, 0.9)
# For the figure over coverages.
PLACES = tuple(round(0.05 * step, 2) for step in range(2, 21))


def measure(trial: Trial, run: Run) -> dict[str, float]:
    """On the test images, as the model stands after the last epoch.

    aurc, excess_aurc:  mean risk over all coverages by the maximum probability, and its excess over the best order.
    accuracy_at_*:      of the most confident share.
    *_normalised:       the same by normalised logits (Cattelan & Silva 2024). Their power p is chosen for each fifth of
                        the test set by the other four; where none is better, the maximum probability stays.
    recovered:          excess AURC less that of normalised logits: above 0 normalising helps.
    """
    test = run.predictions("test")
    plain = measure_selection(test.logits, test.labels, from_logits=True).curve
    normalised = fit_normalisation(test.logits, test.labels).curve or plain
    return {
        "accuracy": plain.accuracy,
        "aurc": plain.aurc,
        **_of(plain, ""),
        **_of(normalised, "_normalised"),
        "recovered": plain.excess_aurc - normalised.excess_aurc,
    }


def _of(curve: RiskCoverage, ending: str) -> dict[str, float]:
    return {
        f"excess_aurc{ending}": curve.excess_aurc,
        **{f"accuracy_at_{100 * share:.0f}{ending}": curve.accuracy_at(share) for share in COVERAGES},
    }


def details(trial: Trial, run: Run) -> dict[str, Any]:
    """Risk at some coverages, by either order, for the figure."""
    test = run.predictions("test")
    plain = measure_selection(test.logits, test.labels, from_logits=True).curve
    found = fit_normalisation(test.logits, test.labels)
    return {
        "coverages": list(PLACES),
        "risk": _risk(plain),
        "risk_normalised": _risk(found.curve or plain),
        "powers": list(found.held_out),
    }


def _risk(curve: RiskCoverage) -> list[float]:
    shares = np.array(PLACES)
    return [round(float(value), 6) for value in curve.errors_at(shares) / (shares * curve.examples)]
