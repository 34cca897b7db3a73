"""What a table of classes and bins says: the class-wise error, and the parts of the Brier score."""

from __future__ import annotations

from dataclasses import dataclass

from softtargets.calibration.sums import CalibrationSums


@dataclass(frozen=True)
class BrierDecomposition:
    """`score` = `reliability` - `resolution` + `uncertainty` + `within_bins`; see `brier_decomposition`."""

    score: float
    reliability: float
    resolution: float
    uncertainty: float
    within_bins: float


def classwise_error(sums: CalibrationSums) -> float:
    """The mean over classes of the error of each class's probability, in equal-width bins."""
    gaps = (sums.class_probability - sums.class_positives).abs()
    return float(gaps.sum() / sums.classes / sums.examples)


def decompose(sums: CalibrationSums) -> BrierDecomposition:
    """The parts of the Brier score, each added up over classes."""
    examples = sums.examples
    counts, positives = sums.class_counts.double(), sums.class_positives.double()
    n = counts.clamp(min=1)
    share, rate, base = counts / examples, positives / n, positives.sum(1, keepdim=True) / examples
    reliability = float((share * (sums.class_probability / n - rate).square()).sum())
    resolution = float((share * (rate - base).square()).sum())
    uncertainty = float((base * (1 - base)).sum())
    score = float(sums.moments[2] / examples)
    return BrierDecomposition(
        score=score,
        reliability=reliability,
        resolution=resolution,
        uncertainty=uncertainty,
        within_bins=score - (reliability - resolution + uncertainty),
    )
