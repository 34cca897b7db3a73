"""How many labels are wrong, as an interval that knows what it does not know."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from softtargets.arrays import ArrayLike
from softtargets.noise.estimation.anchors import Anchors, find_anchors
from softtargets.noise.estimation.calibrated import calibrated
from softtargets.noise.estimation.counting import confident_joint, naive_joint
from softtargets.noise.estimation.estimate import NoiseEstimate, estimate_noise
from softtargets.noise.estimation.sample import NoisySample, as_sample

WEAKEST = 0.3  # the share of predictions that may be worse than the most confident ones
LEAKED = 0.2  # the share of the model's other mistakes that may be among the most confident predictions
CLOSEST = 0.5  # how near the second class may come to the first where the model is most confident
MOST = 0.5  # share of labels that may differ from the most confident predictions
FEWEST = 100  # anchors
MEMORISED, MEMORISED_EXAMPLES = 0.999, 200


@dataclass(frozen=True, eq=False)
class NoiseAssessment:
    """How many labels are wrong, as far as labels and predictions can tell.

    - `error_rate`: the estimated share of wrong labels, None where it is not identified.
    - `low`, `high`: the interval that holds the share of wrong labels. Where it is not identified, `low` is 0 and `high`
      an upper bound: "at most ...".
    - `is_identified`: whether label errors can be told from model errors here.
    - `reason`: one sentence that says why not; empty where they can.
    - `estimates`: the share of wrong labels by estimator: ``anchors``, ``confident``, ``disagreement``.
    - `estimate`: T by ``anchors`` with bootstrap intervals, for the choice of examples alone.
    - `temperature`: by which the model's logits were divided so that they fit the given labels.
    - `level`: the share of cases in which the interval is meant to hold the truth.
    """

    error_rate: float | None
    low: float
    high: float
    is_identified: bool
    reason: str
    estimates: dict[str, float]
    estimate: NoiseEstimate
    temperature: float
    level: float


def assess_noise(
    labels: ArrayLike,
    probabilities: ArrayLike,
    *,
    level: float = 0.95,
    resamples: int = 100,
    seed: int = 0,
) -> NoiseAssessment:
    """The share of wrong labels (N,) by out-of-fold probabilities (N, K) of any model, or why it cannot be told."""
    data, temperature = calibrated(as_sample(labels, probabilities))
    estimate = estimate_noise(
        data.labels, data.probabilities, "anchors", level=level, resamples=resamples, seed=seed
    )
    anchors = find_anchors(data)
    disagreement = 1 - float(naive_joint(data).trace())
    examples = len(data.labels)
    low, high = (
        wilson_low(anchors.disagreement, anchors.examples, level),
        1 - wilson_low(1 - disagreement, examples, level),
    )
    low = max(low - LEAKED * (disagreement - anchors.disagreement), 0.0)
    reason = _reason(data, anchors, disagreement)
    if examples >= MEMORISED_EXAMPLES and 1 - disagreement >= MEMORISED:
        high = 1.0
    return NoiseAssessment(
        error_rate=None if reason else anchors.disagreement,
        low=0.0 if reason else low,
        high=high,
        is_identified=not reason,
        reason=reason,
        estimates={
            "anchors": anchors.disagreement,
            "confident": 1 - float(confident_joint(data).trace()),
            "disagreement": disagreement,
        },
        estimate=estimate,
        temperature=temperature,
        level=level,
    )


def _reason(data: NoisySample, anchors: Anchors, disagreement: float) -> str:
    least = anchors.disagreement
    if len(data.labels) >= MEMORISED_EXAMPLES and 1 - disagreement >= MEMORISED:
        return (
            f"The model agrees with {1 - disagreement:.2%} of the labels, as models do that were trained on them: give "
            "predictions for examples that the model was not trained on."
        )
    if anchors.examples < FEWEST:
        return (
            f"There are too few examples: the model's most confident predictions are only {anchors.examples}."
        )
    if least > MOST:
        return (
            f"Even where the model is most confident, {least:.0%} of the labels differ from its predictions."
        )
    worse = (disagreement - least) / (1 - least)
    if worse > WEAKEST:
        return (
            f"The model is too weak: labels differ from {least:.0%} of its most confident predictions and from "
            f"{disagreement:.0%} of all, and its own mistakes cannot be told from those of the labels."
        )
    if anchors.runner_up > CLOSEST:
        return (
            "Even where the model is most confident, it finds a second class nearly as likely as the first."
        )
    return ""


def wilson_low(share: float, examples: int, level: float) -> float:
    """The lower end of Wilson's interval for a share."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    square = z * z / examples
    middle = share + square / 2
    return max(
        (middle - z * math.sqrt(share * (1 - share) / examples + square / (4 * examples))) / (1 + square), 0.0
    )
