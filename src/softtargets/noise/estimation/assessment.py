"""How many labels are wrong: an interval where labels and predictions can tell, and a bound where they cannot."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from softtargets.arrays import ArrayLike
from softtargets.calibration import wilson
from softtargets.noise.estimation.anchors import FEWEST, SHARES, Anchors, find_anchors
from softtargets.noise.estimation.calibrated import calibrated
from softtargets.noise.estimation.counting import confident_joint, naive_joint
from softtargets.noise.estimation.estimate import NoiseEstimate, estimate_sample
from softtargets.noise.estimation.sample import NoisySample, as_sample

# docs/noise.md has what these numbers were chosen on, and what had no say in them.
LEAKED = 0.3  # of the model's mistakes elsewhere, so many may be among its most confident predictions
UNEVEN = 0.5  # of the disagreement of all classes, the best quarter of them must have at least so much
NOTHING = 0.005  # no model is so good that a lower end below this means anything
# Of the agreement of the most confident predictions beyond chance, so much may be lost over all predictions.
WEAKEST = 1 / 3
CLOSEST = 0.5  # how often the second label of a predicted class may occur, for each time that the first does
UNPROVEN = 0.03  # a larger estimate is given only where the interval leaves 0 out
OVERCONFIDENT = 3.0  # a temperature above which confidences are no guide to which predictions are right
TIED = 0.5  # if so many predictions are as confident as the most confident tenth, confidence does not choose among them
NEGLECTED = 1 / 3  # a class is neglected if it is predicted this much more rarely than it is labelled
MEMORISED, MEMORISED_EXAMPLES = 0.999, 200  # so much agreement, with so many examples


@dataclass(frozen=True, eq=False)
class NoiseAssessment:
    """How many labels are wrong, as far as labels and predictions can tell.

    - `error_rate`: the estimated share of wrong labels; None where it is not identified.
    - `low`, `high`: the interval that holds the share of wrong labels in `level` of cases. Where it is not identified,
      `low` is 0 and `high` is an upper bound: "at most ...".
    - `is_identified`: whether the mistakes of the labels can be told from those of the model.
    - `reason`: why not, in one sentence; empty where they can.
    - `estimates`: the share of wrong labels by each estimator: ``anchors``, ``confident`` and ``disagreement``.
    - `estimate`: T by ``anchors``. Its intervals are for the choice of examples alone.
    - `temperature`: what the logits of the model were divided by so that its probabilities fit the given labels.
    - `level`: that of the intervals.
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
    r"""The share of labels (N,) that are wrong, by out-of-fold probabilities (N, K) of any model (see `out_of_fold`).

    Probabilities are calibrated to the given labels first (`calibrated`). Then the truth is enclosed by two estimates
    that err in opposite directions:

    - **anchors** A (`find_anchors`): how often labels differ from the most confident predictions. Too low where wrong
      labels sit on difficult examples, as those of people do.
    - **disagreement** D (`naive_joint`): how often labels differ from predictions at all. Too high by the mistakes of
      the model. For r the share of wrong labels and e that of wrong predictions, :math:`D \ge r + (1 - 2 r) e \ge r` if
      a prediction does not depend on the label once the true class is known and at most half of the labels of each
      class are wrong. A class whose examples mostly have the label of another class cannot be recognised.

    `error_rate` is A. The interval goes from A of the best quarter of the classes, since a model may be unable to tell
    the others apart, less what chance may have added and less the mistakes of the model that may be among its most
    confident predictions, to D, plus what chance may have taken away (Wilson's intervals). Those mistakes are taken to
    be at most 0.3 (D - A) or, if that is more, as much as the curve of anchors rises from a tenth to half of the
    predictions: the more the two estimates disagree, and the less the curve is a plateau, the wider the interval.

    That anchors say something about labels rather than about the model cannot be proved from labels and predictions,
    but it can often be refuted. The share is *not identified*, and only the bound "at most D" is given, if

    - there are fewer than 500 examples, or labels of one class only;
    - the model agrees with 99.9 % of 200 labels or more: it was trained on them, and even the bound is 1;
    - more than half of the labels differ from the anchors;
    - the model is weak: its predictions agree with labels beyond chance (Cohen's kappa) less than two thirds as much as
      its anchors do, (D - A) / (C - A) > 1/3 for C the disagreement of labels with predictions of other examples;
    - the model is overconfident: a temperature above 3 fits it to the labels. Naive Bayes is as certain of its mistakes
      as of the rest, and they look like wrong labels;
    - A is above 3 %, and more than half of the predictions are as confident as the most confident tenth of their
      class. A decision tree, a nearest neighbour or predicted classes in the place of probabilities have no most
      confident predictions, and A is D;
    - most of A is labels of classes that the model rarely predicts;
    - in an average class, the second label of the anchors is more than half as frequent as the first;
    - A is above 3 %, but less than half as large in the best quarter of the classes, or the interval reaches 0.

    What nothing here can find out: classes that the inputs do not determine look like wrong labels to every model, and
    a model that has seen a part of the labels it predicts finds too few of them wrong. docs/noise.md has how often
    intervals and bounds held on real data.

    >>> generator = torch.Generator().manual_seed(1)
    >>> clean = torch.arange(3000) % 3
    >>> noisy = torch.where(torch.rand(3000, generator=generator) < 0.2, (clean + 1) % 3, clean)
    >>> logits = 4 * torch.eye(3)[clean] + torch.randn(3000, 3, generator=generator)
    >>> found = assess_noise(noisy, logits.softmax(1), resamples=0)
    >>> print(f"{found.error_rate:.1%}, between {found.low:.1%} and {found.high:.1%}")
    19.5%, between 12.8% and 22.4%
    >>> weak = assess_noise(noisy, (logits / 4 + torch.randn(3000, 3, generator=generator)).softmax(1), resamples=0)
    >>> print(f"at most {weak.high:.0%}. {weak.reason}")  # doctest: +NORMALIZE_WHITESPACE
    at most 49%. The model is too weak: 27 % of its most confident predictions and 47 % of all differ from the labels,
    and its mistakes are indistinguishable from wrong labels.
    """
    given = as_sample(labels, probabilities, every_class=False)
    data, temperature = calibrated(given)
    estimate = estimate_sample(data, "anchors", level=level, resamples=resamples, seed=seed)
    anchors = find_anchors(data)
    disagreement = 1 - float(naive_joint(data).trace())
    least = anchors.disagreement
    low = _wilson(anchors.lowest, anchors.examples, level)[0] - _leaked(anchors, disagreement)
    high = _wilson(disagreement, len(data.labels), level)[1]
    reason = _reason(data, anchors, disagreement, low, temperature, _tied(given))
    return NoiseAssessment(
        error_rate=None if reason else least,
        low=0.0 if reason or low < NOTHING else low,
        high=1.0 if _is_memorised(data, disagreement) else high,
        is_identified=not reason,
        reason=reason,
        estimates={
            "anchors": least,
            "confident": 1 - float(confident_joint(data).trace()),
            "disagreement": disagreement,
        },
        estimate=estimate,
        temperature=temperature,
        level=level,
    )


def _percent(share: float) -> str:
    """With a decimal where it means something.

    >>> _percent(0.27), _percent(0.009)
    ('27 %', '0.9 %')
    """
    return f"{100 * share:.{int(share < 0.095)}f} %"


def _reason(
    data: NoisySample, anchors: Anchors, disagreement: float, low: float, temperature: float, tied: float
) -> str:
    """Why the share of wrong labels is not identified; empty where it is."""
    examples, least = len(data.labels), anchors.disagreement
    mistakes = "its mistakes are indistinguishable from wrong labels"
    checks = (
        (
            int(torch.bincount(data.labels).count_nonzero()) < 2,
            "All labels are the same, so nothing shows which of them are wrong.",
        ),
        (
            SHARES[0] * examples < FEWEST,
            f"{examples:,} examples are too few to tell wrong labels from mistakes of the model.",
        ),
        (
            _is_memorised(data, disagreement),
            f"The model agrees with {100 * (1 - disagreement):.2f} % of the labels, which is typical of labels that "
            "a model was trained on; give predictions for held-out examples.",
        ),
        (
            least > 0.5,
            f"The model is too weak: even of its most confident predictions, {100 * least:.0f} % differ from the "
            "labels.",
        ),
        (
            _neglected(data, anchors) > max(least / 2, 0.01),
            f"The model rarely predicts the classes of most labels that differ from its predictions, and {mistakes}.",
        ),
        (
            disagreement - least > WEAKEST * (_by_chance(data) - least),
            f"The model is too weak: {_percent(least)} of its most confident predictions and "
            f"{_percent(disagreement)} of all differ from the labels, and {mistakes}.",
        ),
        (
            temperature > OVERCONFIDENT,
            f"The model is overconfident (temperature scaling divides its logits by {temperature:.1f}), so that its "
            "most confident predictions may be wrong.",
        ),
        (
            tied > TIED and least > UNPROVEN,
            f"The model is equally confident of {100 * tied:.0f} % of its predictions, so that none show how many of "
            f"the others are right, and {mistakes}.",
        ),
        (
            _contest(anchors) > CLOSEST,
            "In at least one class, the two most frequent labels are too close to show which of them is right.",
        ),
        (
            anchors.lowest < UNEVEN * least and least > UNPROVEN,
            f"Labels differ from {100 * least:.0f} % of the most confident predictions, but in the best classes from "
            "less than half as many, so the model may confuse the other classes.",
        ),
        (
            low < NOTHING and least > UNPROVEN,
            f"Labels differ from {100 * least:.0f} % of the most confident predictions, which mistakes of the model "
            "can explain.",
        ),
    )
    return next((sentence for fails, sentence in checks if fails), "")


def _frequencies(data: NoisySample) -> tuple[Tensor, Tensor]:
    """The share of each class among labels and among predictions, (K,)."""
    found = (data.labels, data.probabilities.argmax(1))
    labelled, predicted = (torch.bincount(one, minlength=data.classes).double() / len(one) for one in found)
    return labelled, predicted


def _by_chance(data: NoisySample) -> float:
    """How often labels differ from predictions of other examples."""
    labelled, predicted = _frequencies(data)
    return 1 - float(labelled @ predicted)


def _tied(data: NoisySample) -> float:
    """The share of predictions that are as confident as the most confident tenth of their class.

    It is a tenth where all confidences differ. They are compared before the calibration, which scales the two halves of
    the examples apart.
    """
    top, predicted = data.probabilities.max(1)
    order = torch.argsort(top, stable=True)
    order = order[torch.argsort(predicted[order], stable=True)]
    sizes = torch.bincount(predicted, minlength=data.classes)
    tenth = ((sizes.cumsum(0) - (SHARES[0] * sizes).ceil().long()).clamp(0, len(top) - 1))[predicted]
    return float((top >= top[order][tenth]).double().mean())


def _leaked(anchors: Anchors, disagreement: float) -> float:
    """How many of the disagreements of anchors may be mistakes of the model."""
    first, half = anchors.curve[min(anchors.curve)], anchors.curve.get(0.5, disagreement)
    return max(LEAKED * (disagreement - anchors.disagreement), half - first)


def _is_memorised(data: NoisySample, disagreement: float) -> bool:
    return len(data.labels) >= MEMORISED_EXAMPLES and 1 - disagreement >= MEMORISED


def _neglected(data: NoisySample, anchors: Anchors) -> float:
    """How much of the disagreement of anchors is labels of neglected classes."""
    labelled, predicted = _frequencies(data)
    missed = anchors.joint.sum(0) - anchors.joint.diagonal()
    return float(missed[predicted < NEGLECTED * labelled].sum())


def _contest(anchors: Anchors) -> float:
    """How often the second label of a predicted class occurs for each time that the first does, on average."""
    first, second = anchors.joint.topk(2, dim=1).values.unbind(1)
    return float((second / first.clamp(min=1e-300) * anchors.joint.sum(1)).sum())


def _wilson(share: float, examples: int, level: float) -> tuple[float, float]:
    low, high = wilson(
        torch.tensor(share, dtype=torch.float64, device="cpu"), torch.tensor(examples, device="cpu"), level
    )
    return float(low), float(high)
