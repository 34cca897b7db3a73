"""What can be found out from the confidence of predictions and whether each is right, such as of tokens."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from softtargets.calibration import (
    ConfidenceCalibration,
    ConfidenceSums,
    confidence_calibration_of,
    fold_of,
)
from softtargets.inspection.shared.measured import numbers_of, overconfidence
from softtargets.inspection.shared.numbers import LEVEL, Estimate
from softtargets.inspection.shared.reading import Told, check_bins, quiet
from softtargets.inspection.shared.two_passes import MOST_ORDERED
from softtargets.predictions import Confidences
from softtargets.selection import Selection, risk_coverage, selection_of


@dataclass(frozen=True)
class ConfidenceDiagnosis:
    """Calibration of one file of confidences; `sequences` is how many rows of positions it has, if it has such."""

    path: Path
    examples: int
    sequences: int | None
    reason: str
    source: str
    bins: int
    calibration: ConfidenceCalibration
    overconfidence: Estimate
    selection: Selection

    def numbers(self) -> dict[str, Any]:
        """All of it as plain data, for scripts; what cannot be known is null."""
        return {
            "file": str(self.path),
            "examples": self.examples,
            "classes": None,
            "kind": "confidences",
            "reason": self.reason,
            "source": self.source,
            "bins": self.bins,
            "before": numbers_of(self.calibration),
            "overconfidence": vars(self.overconfidence),
            "temperature": None,
            "after": None,
            "selection": self.selection.numbers(),
        }


def inspect(confidences: Confidences, bins: int = 15, told: Told = quiet) -> ConfidenceDiagnosis:
    """Read confidences once and find out all there is to say about them."""
    check_bins(bins)
    sums = ConfidenceSums.empty(bins)
    every = -(-confidences.examples // MOST_ORDERED)
    kept: list[tuple[Tensor, Tensor]] = []
    seen = 0
    told("measuring", 0, confidences.examples)
    for p, right in confidences.chunks():
        sums.add(p, right)
        some = fold_of(seen, len(p), every, seed=3) == 0 if every > 1 else slice(None)
        kept.append((p[some], right[some]))
        seen += len(p)
        told("measuring", seen, confidences.examples)
    told("computing intervals", 0, 0)
    curve = risk_coverage(torch.cat([p for p, _ in kept]), torch.cat([right for _, right in kept]))
    return ConfidenceDiagnosis(
        path=Path(confidences.path),
        examples=seen,
        sequences=confidences.sequences,
        reason=confidences.reason,
        source=confidences.source,
        bins=bins,
        calibration=confidence_calibration_of(sums, level=LEVEL),
        overconfidence=overconfidence(sums),
        selection=selection_of(curve, level=LEVEL),
    )
