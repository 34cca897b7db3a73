"""What is trained for figure 2 and table 3, and what is measured of its calibration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from softtargets.calibration import expected_calibration_error, fit_temperature, temperature_by_ece
from softtargets.runs import CompactPredictions, Predictions, Run
from softtargets.studies.examples import pseudo_values
from softtargets.studies.measures import likelihood_and_calibration
from softtargets.studies.muller_images import held_out_split, on_both, trials_of
from softtargets.studies.reliabilities import kept_bins
from softtargets.studies.study import Settings, Trial

# By network: strengths of smoothing, of which the second is the one of table 3.
GRID = {"cifar100": (0.0, 0.05, 0.1), "imagenet": (0.0, 0.1)}
# The temperatures of table 3.
PRINTED_TEMPERATURES = {"cifar100": 1.9, "imagenet": 1.4}


def trials(settings: Settings) -> list[Trial]:
    """Hard targets and smoothing, for each seed."""
    return trials_of(settings, GRID)


def measure(trial: Trial, run: Run) -> dict[str, float]:
    """Calibration on both splits, as trained and with a temperature.

    `temperature` has the highest likelihood of the held-out images, and `scaled_ece` is that of the test images with
    it: no image both chooses and judges. `temperature_by_ece` has the least calibration error of the held-out images.
    `held_out_scaled_ece` is chosen and judged on these, as the paper seems to do, and `ece_at_printed` is theirs at the
    temperature that the paper prints. `overconfidence` is the mean confidence minus the accuracy.
    """
    test, held_out = run.predictions("test"), run.predictions(held_out_split(run))
    temperature = fit_temperature(held_out.logits, held_out.labels)
    scaled = likelihood_and_calibration(test.logits / temperature, test.labels)
    found = on_both(run)
    printed = PRINTED_TEMPERATURES[trial.labels["network"]]
    confidence = float(test.logits.softmax(-1).amax(-1).double().mean())
    return found | {
        "temperature": temperature,
        "temperature_by_ece": temperature_by_ece(held_out.logits, held_out.labels),
        "scaled_ece": scaled["ece"],
        "scaled_nll": scaled["nll"],
        "scaled_change": scaled["ece"] - found["ece"],
        "held_out_scaled_ece": _ece(held_out, temperature),
        "ece_at_printed": _ece(held_out, printed),
        "overconfidence": confidence - found["accuracy"],
    }


def _ece(said: Any, temperature: float) -> float:
    return expected_calibration_error((said.logits / temperature).softmax(-1), said.labels)


def details(trial: Trial, run: Run) -> dict[str, Any]:
    """Bins of the reliability diagrams on the test images, as trained and with the temperature.

    And what groups of test images contribute to the numbers that claims are about, for the chance of these images
    (`studies.examples`).
    """
    test, held_out = run.predictions("test"), run.predictions(held_out_split(run))
    temperature = fit_temperature(held_out.logits, held_out.labels)
    return {
        "bins": kept_bins(test.logits, test.labels),
        "scaled_bins": kept_bins(test.logits, test.labels, temperature),
        "pseudo_values": {
            "scaled_ece": _contributions(test, temperature, lambda part: part.ece),
            "overconfidence": _contributions(
                test, 1.0, lambda part: float(part.confidence.mean() - part.right.mean())
            ),
        },
    }


def _contributions(
    said: Predictions, temperature: float, of: Callable[[CompactPredictions], float]
) -> list[float]:
    whole = CompactPredictions.of((said.logits.double() / temperature).numpy(), said.labels.long().numpy())
    found = pseudo_values(lambda chosen: of(whole.part(chosen)), len(whole))
    return [round(float(value), 10) for value in found]
