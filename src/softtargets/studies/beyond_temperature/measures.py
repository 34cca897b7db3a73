"""What is read from each model: likelihood and calibration as trained, and scaled by a held-out temperature."""

from __future__ import annotations

from typing import Any

from softtargets.calibration import cross_fit, temperature_scaling, temperature_sweep
from softtargets.runs import Run
from softtargets.studies.measures import accuracy
from softtargets.studies.study import Trial

# Each fifth of the test set is scaled by the temperature of the other four.
FOLDS = 5
BINS = 15
# For the figure over temperatures.
TEMPERATURES = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.35, 1.5, 1.75, 2.0, 2.5, 3.0, 4.0)


def measure(trial: Trial, run: Run) -> dict[str, float]:
    """On the test images, as the model stands after the last epoch.

    nll, ece:               as they are: nats, and 15 bins.
    nll_scaled, ece_scaled: after temperature scaling, by a temperature fitted to examples that are not measured.
    temperature:            the mean over these fits, that of the lowest likelihood loss.
    nll_gained, ece_gained: before minus after: above 0 scaling is worth it.
    """
    test = run.predictions("test")
    found = cross_fit(temperature_scaling, test.logits, test.labels, folds=FOLDS, bins=BINS)
    return {
        "accuracy": accuracy(test),
        "nll": found.nll_before,
        "ece": found.ece_before,
        "nll_scaled": found.nll_after,
        "ece_scaled": found.ece_after,
        "nll_gained": found.nll_before - found.nll_after,
        "ece_gained": found.ece_before - found.ece_after,
        "temperature": sum(fit.temperature for fit in found.fits) / len(found.fits),
    }


def details(trial: Trial, run: Run) -> dict[str, Any]:
    """Both over temperatures, for the figure."""
    test = run.predictions("test")
    swept = temperature_sweep(test.logits, test.labels, TEMPERATURES, bins=BINS)
    return {
        "temperatures": list(swept.temperatures),
        "ece": [round(value, 5) for value in swept.ece],
        "nll": [round(value, 5) for value in swept.nll],
    }
