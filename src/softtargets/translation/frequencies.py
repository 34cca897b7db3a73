"""Frequent and rare: splits of a test set by how common its tokens are, and how sure a model is of those it chooses."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softtargets.exceptions import SofttargetsError

WIDTH = 0.05  # of a bin: twenty from 0 to 1

Places = NDArray[np.int64]
Floats = NDArray[np.float64]


class FrequencySplits(NamedTuple):
    """Places of sentences: the third with the most frequent tokens on average, the middle one, the last."""

    most: Places
    medium: Places
    least: Places


def frequency_scores(sentences: Sequence[Sequence[int]], counts: NDArray[Any]) -> Floats:
    r"""The mean frequency of the tokens of each sentence in the training corpus.

    .. math:: F(x) = \frac1N \sum_{i=1}^N f(x_i)

    LABO (Lu et al. 2023), equation 18, after Raunak et al. 2020. `counts` (V,) says how often each token occurs in
    training; counts or shares order sentences alike. A sentence without tokens has the score 0.

    >>> frequency_scores([[0, 1], [1, 1, 2], []], np.array([10, 4, 1])).tolist()
    [7.0, 3.0, 0.0]
    """
    frequency = np.asarray(counts, dtype=np.float64)
    if frequency.ndim != 1 or not np.isfinite(frequency).all() or (frequency < 0).any():
        raise SofttargetsError(
            "must be one number from 0 for each token of the vocabulary", argument="counts"
        )
    lengths = np.array([len(one) for one in sentences], dtype=np.int64)
    flat = np.fromiter((token for one in sentences for token in one), np.int64, int(lengths.sum()))
    if len(flat) and not 0 <= flat.min() <= flat.max() < len(frequency):
        wrong = int(flat[(flat < 0) | (flat >= len(frequency))][0])
        raise SofttargetsError(
            f"a sentence has the token {wrong}, but counts are of {len(frequency)} tokens, 0 to {len(frequency) - 1}"
        )
    which = np.repeat(np.arange(len(lengths)), lengths)
    sums = np.bincount(which, frequency[flat], minlength=len(lengths))
    return np.asarray(sums / np.maximum(lengths, 1))


def frequency_splits(sentences: Sequence[Sequence[int]], counts: NDArray[Any]) -> FrequencySplits:
    """Cut a set into thirds by `frequency_scores`, highest first; LABO (Lu et al. 2023), section 5 and table 4.

    `sentences` are the tokens of each sentence without symbols such as EOS, which every sentence has. The paper takes
    those of the *source* sentences; pass the references' to split by what is to be generated. The paper's parts have
    2,400 sentences each and leave out a few; here every sentence is in one part, and sizes differ by one at most.
    Sentences of equal scores stay in their order.

    >>> [part.tolist() for part in frequency_splits([[2], [0], [1], [0, 1]], np.array([9, 5, 1]))]
    [[1, 3], [2], [0]]
    """
    if len(sentences) < 3:
        raise SofttargetsError(f"at least three sentences are needed for three groups, not {len(sentences)}")
    order = np.argsort(-frequency_scores(sentences, counts), kind="stable")
    return FrequencySplits(*np.array_split(order, 3))


@dataclass(frozen=True)
class ChosenProbabilities:
    """How often chosen tokens had which probability: `counts` in bins from 0 to 1, of `chosen_token_probabilities`."""

    edges: Floats
    counts: Places

    @property
    def tokens(self) -> int:
        """How many tokens were chosen."""
        return int(self.counts.sum())

    @property
    def shares(self) -> Floats:
        """The share of tokens in each bin."""
        return np.asarray(self.counts / self.tokens)

    @property
    def mode(self) -> float:
        """The middle of the fullest bin, of several the lowest: where probabilities concentrate."""
        fullest = int(self.counts.argmax())
        return float((self.edges[fullest] + self.edges[fullest + 1]) / 2)


def chosen_token_probabilities(
    log_probs: Iterable[Iterable[float]], width: float = WIDTH
) -> ChosenProbabilities:
    """The histogram of the probabilities of tokens that beam search chose; LABO (Lu et al. 2023), figure 2.

    `log_probs` are for each sentence the log-probabilities of the tokens of its best hypothesis, EOS included. Bin b
    holds probabilities from b * `width` to below (b + 1) * `width`, the last one also 1. `width` must divide 1.
    The paper puts the mode near 0.4 for LABO and near 0.9 for uniform label smoothing.

    >>> found = chosen_token_probabilities([[-0.1, -0.9], [-0.95]], width=0.1)
    >>> found.counts.tolist(), round(found.mode, 2)
    ([0, 0, 0, 1, 1, 0, 0, 0, 0, 1], 0.35)
    """
    bins = round(1 / width) if 0 < width <= 1 else 0
    if not bins or not math.isclose(bins * width, 1, rel_tol=1e-9):
        raise SofttargetsError(f"must divide 1 into equal bins, as 0.05 does, not {width}", argument="width")
    values = np.array([value for one in log_probs for value in one], dtype=np.float64)
    if not len(values):
        raise SofttargetsError("there are no chosen tokens: every list of log-probabilities is empty")
    if not (values <= 1e-5).all():  # NaN included
        raise SofttargetsError(
            f"a log-probability is at most 0, not {values[~(values <= 1e-5)][0]:g}; give log-probabilities of tokens"
        )
    which = np.minimum((np.exp(np.minimum(values, 0)) * bins).astype(np.int64), bins - 1)
    return ChosenProbabilities(np.arange(bins + 1) / bins, np.bincount(which, minlength=bins))
