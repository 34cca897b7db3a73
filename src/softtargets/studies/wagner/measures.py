"""What is measured on each run: accuracy and calibration on every split that was kept, with temperatures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from softtargets.calibration import Chunks, cross_fit, reliability, temperature_by_ece
from softtargets.runs import Predictions, Run
from softtargets.studies.measures import accuracy, likelihood_and_calibration
from softtargets.studies.study import Trial

# The replication prints temperatures such as 1.06 and 3.1, and tries "every reasonable" one.
TEMPERATURES: tuple[float, ...] = tuple(round(0.02 * step, 2) for step in range(10, 251))
FOLDS = 2
BINS = 15
# Bins with fewer predictions say too little about a network to be held against it.
FEWEST = 50

KEEP = ("test:scores", "validation:scores")


def on_each_split(of: Callable[[Predictions], dict[str, float]], run: Run) -> dict[str, float]:
    """The same measures on the test set and, under names that end in ``_validation``, on images held out."""
    found = of(run.predictions("test"))
    if run.has_predictions("validation"):
        found |= {f"{key}_validation": value for key, value in of(run.predictions("validation")).items()}
    return found


def accuracies(trial: Trial, run: Run) -> dict[str, float]:
    """Accuracy, likelihood and calibration as the model is trained."""
    return on_each_split(_as_trained, run)


def calibrations(trial: Trial, run: Run) -> dict[str, float]:
    """The same, and calibration with a temperature that is chosen in two ways."""
    return on_each_split(lambda split: _as_trained(split) | _scaled(split), run)


def _as_trained(split: Predictions) -> dict[str, float]:
    return {"accuracy": accuracy(split), **likelihood_and_calibration(split.logits, split.labels)}


def _scaled(split: Predictions) -> dict[str, float]:
    """ECE with the temperature of least ECE: of the same examples, or of the other half of them."""
    chosen = temperature_by_ece(split.logits, split.labels, TEMPERATURES, bins=BINS)
    scaled = likelihood_and_calibration(split.logits / chosen, split.labels)
    measured = {"temperature": chosen, "ece_scaled": scaled["ece"], "nll_scaled": scaled["nll"]}
    if len(split.labels) >= 2 * FEWEST:
        held_out = cross_fit(_Divided.fit, split.logits, split.labels, folds=FOLDS, bins=BINS)
        heats = [fit.temperature for fit in held_out.fits]
        measured |= {
            "temperature_held_out": sum(heats) / len(heats),
            "ece_scaled_held_out": held_out.ece_after,
        }
    return measured


@dataclass(frozen=True)
class _Divided:
    """Logits divided by a temperature."""

    temperature: float

    def __call__(self, logits: Tensor, /) -> Tensor:
        """Scaled logits."""
        return logits / self.temperature

    @classmethod
    def fit(cls, chunks: Chunks) -> _Divided:
        """The temperature of least ECE."""
        return cls(temperature_by_ece(chunks, temperatures=TEMPERATURES, bins=BINS))


def gaps(split: Predictions) -> dict[str, float]:
    """Accuracy minus confidence: on the whole, and in the bins with enough examples where it is highest and lowest."""
    found = reliability(split.logits.softmax(-1), split.labels, bins=BINS)
    enough = found.counts >= min(FEWEST, int(found.counts.max()))
    apart = (found.accuracy - found.confidence)[enough]
    return {
        "gap": accuracy(split) - found.mean_confidence,
        "highest_gap": float(apart.max()),
        "lowest_gap": float(apart.min()),
    }
