"""Calibration of whole translations: does the probability of a translation say how good it is?

Token calibration, with a correct prefix (`softtargets.translation.tokens`), is what Müller et al. 2019 measure; Kumar
and Sarawagi 2019 study it for encoder-decoder models, and Ott et al. 2018 the calibration of sequences (as Müller et
al. describe both, section 5). A translation is one outcome among very many, so that its probability is small and an
exact match with one reference is rare even for a good model. Three views are therefore given, each for what it is:

- exact match: p(y|x) = exp(log-probability) as the confidence of "this is the reference, word for word";
- graded: the mean probability of a token, exp(log-probability / tokens), against a score of the sentence from 0 to 1.
  The two need not agree even for a perfect model: gaps compare models, they are no error of one;
- order: the rank correlation of log-probability per token and score, which needs no agreement of scales.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from softtargets.calibration import ConfidenceCalibration, Reliability, bin_edges, measure_confidences
from softtargets.exceptions import SofttargetsError

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SequenceCalibration:
    """The calibration of whole translations; made by `sequence_calibration`.

    `exact` is the calibration of the probability of a translation as that of an exact match; `expected_exact` is how
    many exact matches the probabilities add up to, `observed_exact` how many there are. `graded` has the mean score in
    the place of accuracy, in bins of the probability of a token on average, and `graded_gap` is the mean gap of both,
    weighted as the ECE is. `rank_correlation` is Spearman's of log-probability per token and score.
    """

    sentences: int
    exact: ConfidenceCalibration
    expected_exact: float
    observed_exact: int
    graded: Reliability
    graded_gap: float
    mean_token_probability: float
    mean_score: float
    rank_correlation: float


def sequence_calibration(
    log_probs: Sequence[float] | NDArray[Any],
    lengths: Sequence[int] | NDArray[Any],
    exact: Sequence[bool] | NDArray[Any],
    scores: Sequence[float] | NDArray[Any],
    bins: int = 15,
) -> SequenceCalibration:
    r"""Compare the probabilities of translations with their quality.

    `log_probs` are :math:`\log p(y|x) = \sum_t \log p(y_t | x, y_{<t})` of the chosen translations, before any length
    penalty; `lengths` how many tokens each has, EOS included; `exact` whether each is its reference; `scores` their
    quality from 0 to 1, such as sentence chrF / 100.

    >>> found = sequence_calibration([-0.1, -2.0, -6.0], [2, 4, 6], [True, False, False], [1.0, 0.6, 0.5])
    >>> found.observed_exact, round(found.expected_exact, 3), found.rank_correlation
    (1, 1.043, 1.0)
    """
    log_p = np.asarray(log_probs, dtype=np.float64)
    tokens = np.asarray(lengths, dtype=np.float64)
    right, worth = np.asarray(exact), np.asarray(scores, dtype=np.float64)
    shapes = {one.shape for one in (log_p, tokens, right, worth)}
    if shapes != {(len(log_p),)} or not len(log_p):
        raise SofttargetsError(
            "there must be one log-probability, length, exact match and score for each translation, at least one, not "
            f"{log_p.shape}, {tokens.shape}, {right.shape} and {worth.shape}"
        )
    if not (log_p <= 1e-4).all():  # NaN included
        raise SofttargetsError(
            f"a log-probability is at most 0, not {log_p[~(log_p <= 1e-4)][0]:g}; give the sum over tokens before any "
            "length penalty"
        )
    if not (tokens >= 1).all():
        raise SofttargetsError(
            f"a translation has at least one token, EOS, not {tokens[~(tokens >= 1)][0]:g}"
        )
    if not ((worth >= 0) & (worth <= 1)).all():
        wrong = worth[~((worth >= 0) & (worth <= 1))][0]
        raise SofttargetsError(f"a score lies between 0 and 1, not {wrong:g}; divide chrF and BLEU by 100")
    p = np.exp(np.minimum(log_p, 0))
    per_token = np.exp(np.minimum(log_p / tokens, 0))
    graded = _graded(per_token, worth, bins)
    return SequenceCalibration(
        sentences=len(log_p),
        exact=measure_confidences(p, right, bins),
        expected_exact=float(p.sum()),
        observed_exact=int(right.sum()),
        graded=graded,
        graded_gap=graded.expected_calibration_error,
        mean_token_probability=float(per_token.mean()),
        mean_score=float(worth.mean()),
        rank_correlation=spearman(log_p / tokens, worth),
    )


def exact_matches(hypotheses: Sequence[str], references: Sequence[str]) -> NDArray[np.bool_]:
    """Of each translation whether it is its reference, apart from white space.

    >>> exact_matches(["a  cat ", "a dog"], ["a cat", "A dog"]).tolist()
    [True, False]
    """
    if len(hypotheses) != len(references):
        raise SofttargetsError(
            f"there must be one reference for each of the {len(hypotheses)} translations, not {len(references)}"
        )
    return np.array([a.split() == b.split() for a, b in zip(hypotheses, references, strict=True)], dtype=bool)


def spearman(x: NDArray[Any], y: NDArray[Any]) -> float:
    """Spearman's rank correlation; equal values share the mean of their ranks. NaN where one side is constant.

    >>> spearman(np.array([1.0, 2.0, 3.0]), np.array([2.0, 9.0, 4.0]))
    0.5
    """
    a, b = (_ranks(np.asarray(one, dtype=np.float64)) for one in (x, y))
    a, b = a - a.mean(), b - b.mean()
    size = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / size if size else float("nan")


def _ranks(values: Floats) -> Floats:
    kinds, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts).astype(np.float64)
    means: Floats = last - (counts - 1) / 2
    assert len(means) == len(kinds)
    return means[which]


def _graded(probability: Floats, scores: Floats, bins: int) -> Reliability:
    """Bins of probability with the mean score of each, bin b from b / bins to below (b + 1) / bins, the last with 1."""
    edges = bin_edges(bins)
    which = np.minimum((probability * bins).astype(np.int64), bins - 1)
    counts = np.bincount(which, minlength=bins)
    with np.errstate(invalid="ignore"):
        means = [np.bincount(which, one, minlength=bins) / counts for one in (probability, scores)]
    confidence, worth = (torch.from_numpy(one) for one in means)
    return Reliability(edges, torch.from_numpy(counts), confidence, worth)
