"""Instruments that look at a net while it trains."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from softtargets.calibration import reliability
from softtargets.models import Classifier
from softtargets.recipes import Recipe
from softtargets.training.prediction import predict
from softtargets.training.preparation import Prepared


@dataclass(frozen=True)
class Moment:
    """A net in the middle of its training, as an instrument sees it: in evaluation mode, to be looked at only."""

    recipe: Recipe
    step: int
    model: Classifier
    prepared: Prepared

    def predictions(self, split: str) -> dict[str, Tensor]:
        """Logits, labels and penultimate activations on a split, without augmentation."""
        return predict(self.recipe, self.model, self.prepared.splits[split], self.prepared)


def calibration(moment: Moment, split: str, bins: int) -> dict[str, float]:
    """Expected calibration error and mean confidence."""
    said = moment.predictions(split)
    probabilities = said["logits"].softmax(-1)
    found = reliability(probabilities, said["labels"], bins=bins)
    confidence = float(probabilities.amax(-1).double().mean())
    return {f"{split}_ece": found.expected_calibration_error, f"{split}_confidence": confidence}


# The names by which recipes call them. Each takes (moment, **options of the part but `every`) and gives numbers.
PROBES: dict[str, Callable[..., dict[str, float]]] = {"calibration": calibration}


def probed(moment: Moment, at_the_end: bool) -> dict[str, float | None]:
    """What all instruments of a recipe that are due find; None for what is no number."""
    row: dict[str, float | None] = {}
    for part in moment.recipe.probes:
        if at_the_end or moment.step % part.every == 0:
            options: dict[str, Any] = {name: value for name, value in vars(part).items() if name != "every"}
            for key, value in PROBES[part.name](moment, **options).items():
                row[f"{part.name}.{key}"] = value if math.isfinite(value) else None
    return row
