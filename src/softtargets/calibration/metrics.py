"""Metrics of calibration, one function each, for examples that are all at hand.

Scores are (..., K), labels (...), torch or numpy. For a stream, or all of them in one pass, see `measure_calibration`
and `CalibrationMetric`.
"""

from __future__ import annotations

import operator

import torch
from torch import Tensor

from softtargets.arrays import ArrayLike
from softtargets.calibration.binning import reliability
from softtargets.calibration.confidence_cells import bin_edges
from softtargets.calibration.groups import Groups, adaptive_error, frequencies, smooth_error
from softtargets.calibration.rows import RowStatistics, rows_of
from softtargets.calibration.scores import as_scores
from softtargets.calibration.sums import BrierDecomposition, CalibrationSums, classwise_error, decompose


def expected_calibration_error(probabilities: ArrayLike, labels: ArrayLike, bins: int = 15) -> float:
    r"""Expected calibration error of the top label, equal-width bins.

    .. math:: \mathrm{ECE} = \sum_b \frac{n_b}{N} |\mathrm{conf}(b) - \mathrm{acc}(b)|

    Guo et al. 2017; 15 bins as in Müller et al. 2019, section 3. Scatter alone makes it positive; `measure_calibration`
    gives intervals that take this into account.

    >>> round(expected_calibration_error(torch.tensor([[0.9, 0.1], [0.9, 0.1]]), torch.tensor([0, 0])), 6)
    0.1
    """
    return reliability(probabilities, labels, bins).expected_calibration_error


def maximum_calibration_error(probabilities: ArrayLike, labels: ArrayLike, bins: int = 15) -> float:
    r"""Maximum calibration error of the top label, equal-width bins: the largest gap of a bin that is not empty.

    .. math:: \mathrm{MCE} = \max_b |\mathrm{conf}(b) - \mathrm{acc}(b)|

    Guo et al. 2017. It is often decided by a bin of very few examples: look at their number.

    >>> p = torch.tensor([[0.9, 0.1], [0.9, 0.1], [0.6, 0.4]])
    >>> round(maximum_calibration_error(p, torch.tensor([0, 0, 1])), 6)
    0.6
    """
    return reliability(probabilities, labels, bins).maximum_calibration_error


def debiased_calibration_error(probabilities: ArrayLike, labels: ArrayLike, bins: int = 15) -> float:
    r"""Debiased root mean square calibration error of the top label, equal-width bins.

    .. math:: \sqrt{\max\Big(0, \sum_b \frac{n_b}{N} \Big[ (\mathrm{conf}(b) - \mathrm{acc}(b))^2
              - \frac{\mathrm{acc}(b) (1 - \mathrm{acc}(b))}{n_b - 1} \Big] \Big)}

    The estimator of Kumar et al. 2019 ("Verified uncertainty calibration"): what scatter adds to a squared gap is known
    on average and is taken off. It is a root mean square, so it is not below the ECE of many examples. The scatter of a
    single example cannot be estimated: bins with one do not contribute.

    >>> p, y = torch.tensor([[0.75, 0.25]] * 4), torch.tensor([0, 0, 1, 1])
    >>> debiased_calibration_error(p, y)  # a gap of 1/4, less than what scatter explains: 1/16 - 1/12
    0.0
    """
    return reliability(probabilities, labels, bins).debiased_calibration_error


def adaptive_calibration_error(probabilities: ArrayLike, labels: ArrayLike, bins: int = 15) -> float:
    r"""Calibration error of the top label in bins that hold equally many examples ("equal mass").

    .. math:: \frac{1}{B} \sum_b |\mathrm{conf}(b) - \mathrm{acc}(b)|

    Examples in the order of their confidence are cut into B bins of N / B; where a cut falls among examples of equal
    confidence, or through an example, both bins get their share of it. (Nixon et al. 2019 call the mean of this over
    all classes ACE; here it is the top label.)

    >>> p = torch.tensor([[0.6, 0.4], [0.7, 0.3], [0.8, 0.2], [0.9, 0.1]])
    >>> round(adaptive_calibration_error(p, torch.tensor([1, 0, 0, 0]), bins=2), 6)  # |0.65 - 0.5|, |0.85 - 1|
    0.15
    """
    bins = len(bin_edges(bins)) - 1
    return adaptive_error(Groups.of_examples(*top_label(probabilities, labels)), bins)


def smooth_calibration_error(probabilities: ArrayLike, labels: ArrayLike) -> float:
    r"""Smooth calibration error of the top label, without bins.

    The residual confidence - correctness, smoothed over confidence with a Gaussian of bandwidth s that is reflected at
    0 and 1, has a mean absolute value that falls with s; the error is where it equals s:

    .. math:: \mathrm{smECE}_s = \int_0^1 \Big| \frac{1}{N} \sum_i K_s(t, c_i) (c_i - y_i) \Big| \, dt, \qquad
              \mathrm{smECE} = \mathrm{smECE}_{s^*} \text{ with } \mathrm{smECE}_{s^*} = s^*

    Błasiok and Nakkiran 2023. Bandwidths below 0.001 are not tried, as in their package, relplot, which rounds s to
    1/1024 and takes 200 points for the integral: it agrees to about 1e-3, except where confidences crowd at 1 and those
    points are too few for the peak (0.088 for 0.080, which the integral with 4,000 points gives too).

    >>> p = torch.tensor([[0.8, 0.2]] * 10)
    >>> round(smooth_calibration_error(p, torch.tensor([0] * 5 + [1] * 5)), 3)
    0.3
    """
    groups = Groups.of_examples(*top_label(probabilities, labels))
    return float(smooth_error(frequencies(groups.places, groups.residuals)))


def classwise_calibration_error(probabilities: ArrayLike, labels: ArrayLike, bins: int = 15) -> float:
    r"""Calibration error of each class's probability, equal-width bins, averaged over classes.

    .. math:: \frac{1}{K} \sum_k \sum_b \frac{n_{kb}}{N} |\bar p_{kb} - \bar y_{kb}|

    where :math:`\bar y_{kb}` is how often examples whose probability of class k lies in bin b are of class k. Kull et
    al. 2019 ("Beyond temperature scaling"); the static calibration error of Nixon et al. 2019.

    >>> round(classwise_calibration_error(torch.tensor([[0.9, 0.1], [0.9, 0.1]]), torch.tensor([0, 0])), 6)
    0.1
    """
    return classwise_error(_sums(probabilities, labels, bins))


def brier_score(probabilities: ArrayLike, labels: ArrayLike) -> float:
    r"""The mean squared distance of probabilities and label, over all classes: from 0 to 2.

    .. math:: \frac{1}{N} \sum_i \sum_k (p_{ik} - [y_i = k])^2

    Brier 1950. With two classes this is twice the mean of :math:`(p - y)^2` that is common for binary problems.

    >>> round(brier_score(torch.tensor([[0.8, 0.2]]), torch.tensor([0])), 6)  # 0.2^2 + 0.2^2
    0.08
    """
    return float(_rows(probabilities, labels, from_logits=False, what="brier").mean())


def brier_decomposition(probabilities: ArrayLike, labels: ArrayLike, bins: int = 15) -> BrierDecomposition:
    r"""The Brier score as reliability - resolution + uncertainty + within_bins, over all classes.

    Each class against the rest is decomposed after Murphy 1973, in equal-width bins of its probability, and all are
    added up. With share :math:`w_{kb} = n_{kb} / N`, frequency :math:`\bar y_{kb}` in the bin and :math:`\bar y_k`
    overall:

    .. math:: \sum_{kb} w_{kb} (\bar p_{kb} - \bar y_{kb})^2 - \sum_{kb} w_{kb} (\bar y_{kb} - \bar y_k)^2
              + \sum_k \bar y_k (1 - \bar y_k) + \text{within bins}

    Murphy's three parts add up only if all probabilities in a bin are equal. What is left is the variance of
    probabilities within bins, less twice their covariance with the outcome (Stephenson et al. 2008).

    >>> found = brier_decomposition(torch.tensor([[0.8, 0.2], [0.8, 0.2]]), torch.tensor([0, 1]))
    >>> round(found.score, 4), round(found.reliability, 4), found.resolution, found.uncertainty
    (0.68, 0.18, 0.0, 0.5)
    """
    return decompose(_sums(probabilities, labels, bins))


def negative_log_likelihood(logits: ArrayLike, labels: ArrayLike) -> float:
    """The mean of -log softmax(logits) at the label, in nats. Pass logits: logarithms of rounded probabilities are
    inexact.

    >>> round(negative_log_likelihood(torch.tensor([[0.0, 0.0]]), torch.tensor([1])), 4)
    0.6931
    """
    return float(_rows(logits, labels, from_logits=True, what="nll").mean())


def top_k_accuracy(scores: ArrayLike, labels: ArrayLike, k: int = 1) -> float:
    """How often the label is among the k highest scores, logits or probabilities; of equals the first is higher.

    >>> top_k_accuracy(torch.tensor([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]]), torch.tensor([1, 2]), k=2)
    0.5
    """
    if operator.index(k) < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    return float((_rows(scores, labels, from_logits=True, what="rank") < k).double().mean())


def top_label(probabilities: ArrayLike, labels: ArrayLike) -> tuple[Tensor, Tensor]:
    """The confidence of each example, in float64, and whether its top label is right.

    >>> top_label(torch.tensor([[0.5, 0.5], [0.25, 0.75]]), torch.tensor([1, 1]))
    (tensor([0.5000, 0.7500], dtype=torch.float64), tensor([False,  True]))
    """
    found = RowStatistics.joined(list(rows_of(as_scores(probabilities, labels, from_logits=False))))
    return found.confidence, found.rank == 0


def _rows(scores: ArrayLike, labels: ArrayLike, *, from_logits: bool, what: str) -> Tensor:
    of = as_scores(scores, labels, from_logits=from_logits)
    return torch.cat([getattr(rows, what) for rows in rows_of(of)])


def _sums(probabilities: ArrayLike, labels: ArrayLike, bins: int) -> CalibrationSums:
    return CalibrationSums.of(probabilities, labels, from_logits=False, bins=bins).to("cpu")
