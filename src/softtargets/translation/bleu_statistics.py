"""What corpus BLEU needs to know of each sentence: ten small numbers, which can be kept, added up and resampled.

BLEU of a corpus is no mean over sentences, so its uncertainty comes from resampling sentences (Koehn 2004). N-grams are
counted once; each resample only adds up counts. Two systems are compared on the same resamples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softtargets.exceptions import SofttargetsError
from softtargets.translation.scoring import References, checked_texts, sacrebleu_metrics

COLUMNS = ("hypothesis", "reference", *(f"correct_{n}" for n in "1234"), *(f"total_{n}" for n in "1234"))
AT_ONCE = 1 << 22  # places that are drawn at a time

Statistics = NDArray[np.uint16]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class BleuInterval:
    """A BLEU, or a difference of two, and where resampled sentences put it; `share_above_zero` is that of resamples."""

    value: float
    low: float
    high: float
    resamples: int
    share_above_zero: float


def sentence_statistics(
    hypotheses: Sequence[str], references: References, lowercase: bool = False
) -> Statistics:
    """Of each sentence (sentences, 10): length in tokens, that of its reference, correct and all n-grams, n = 1 to 4.

    As sacreBLEU counts them (13a); of several references the length is that of the closest. `bleu_of` makes corpus BLEU
    of any rows of it.

    >>> sentence_statistics(["the cat sat"], ["the cat sits"]).tolist()
    [[3, 3, 2, 1, 0, 0, 3, 2, 1, 0]]
    """
    hyps, refs = checked_texts(hypotheses, references)
    metric = sacrebleu_metrics().BLEU(lowercase=lowercase)
    found = np.asarray(metric._extract_corpus_statistics(hyps, refs), dtype=np.int64)
    if found.shape != (len(hyps), len(COLUMNS)):
        raise SofttargetsError(
            f"this version of sacrebleu counts {found.shape[1:]} numbers for each sentence where "
            f"{len(COLUMNS)} are expected; pip install 'sacrebleu>=2.4,<3'"
        )
    if (most := int(found.max())) >= 1 << 16:
        place = int(found.max(1).argmax())
        raise SofttargetsError(
            f"sentence {place} has {most} tokens, and at most 65535 are counted: is the whole text one line?"
        )
    return found.astype(np.uint16)


def bleu_of(statistics: NDArray[Any]) -> float:
    """Corpus BLEU of the sentences of `sentence_statistics`, exactly as sacreBLEU has it; needs numpy alone.

    >>> bleu_of(sentence_statistics(["the cat sat on the mat"], ["the cat sat on the mat"]))
    100.00000000000004
    """
    return float(_bleu(_checked(statistics).astype(np.int64).sum(0, keepdims=True))[0])


def bleu_interval(
    hypotheses: Sequence[str] | NDArray[Any],
    references: References | None = None,
    resamples: int = 1000,
    seed: int = 0,
    *,
    level: float = 0.95,
    lowercase: bool = False,
) -> BleuInterval:
    """Corpus BLEU and the interval between percentiles of resampled test sets (Koehn 2004).

    It says how BLEU would differ on other sentences of the same kind, not on another training run. Texts, or rows of
    `sentence_statistics` without references.
    """
    found = _as_statistics(hypotheses, references, lowercase)
    return _interval(bleu_of(found), _resampled([found], resamples, seed)[0], level)


def bleu_difference(
    statistics: NDArray[Any],
    others: NDArray[Any],
    resamples: int = 1000,
    seed: int = 0,
    *,
    level: float = 0.95,
) -> BleuInterval:
    """BLEU of the first system less that of the second on the same sentences, both resampled together (Koehn 2004).

    >>> one = sentence_statistics(["a b c d e"] * 9, ["a b c d e"] * 9)
    >>> bleu_difference(one, one).value
    0.0
    """
    first, second = _checked(statistics), _checked(others)
    if len(first) != len(second):
        raise SofttargetsError(
            f"both systems must have translated the same sentences, not {len(first)} and {len(second)}"
        )
    one, two = _resampled([first, second], resamples, seed)
    return _interval(bleu_of(first) - bleu_of(second), one - two, level)


def _resampled(systems: Sequence[NDArray[Any]], resamples: int, seed: int) -> list[Floats]:
    """BLEU of each system on test sets of sentences that were drawn with replacement, the same for all."""
    if resamples < 2:
        raise SofttargetsError(f"must be at least 2, better 1000, not {resamples}", argument="resamples")
    generator = np.random.default_rng(seed)
    count = len(systems[0])
    sums: list[list[NDArray[np.int64]]] = [[] for _ in systems]
    step = max(1, AT_ONCE // count)
    for start in range(0, resamples, step):
        drawn = generator.integers(count, size=(min(step, resamples - start), count))
        weights = np.stack([np.bincount(row, minlength=count) for row in drawn])
        for kept, one in zip(sums, systems, strict=True):
            kept.append(np.rint(weights.astype(np.float64) @ one.astype(np.float64)).astype(np.int64))
    return [_bleu(np.concatenate(kept)) for kept in sums]


def _interval(value: float, resampled: Floats, level: float) -> BleuInterval:
    if not 0 < level < 1:
        raise SofttargetsError(f"must lie between 0 and 1, such as 0.95, not {level}", argument="level")
    low, high = np.quantile(resampled, [(1 - level) / 2, (1 + level) / 2])
    return BleuInterval(value, float(low), float(high), len(resampled), float((resampled > 0).mean()))


def _bleu(sums: NDArray[np.int64]) -> Floats:
    r"""BLEU of rows of sums (n, 10).

    .. math:: \text{BLEU} = 100 \min(1, e^{1 - r/h}) \prod_{n=1}^4 p_n^{1/4}

    where :math:`p_n` = correct / total n-grams. The k-th precision with nothing correct is 1 / (2^k total) ("exp").
    """
    hypothesis, reference = sums[:, 0].astype(np.float64), sums[:, 1].astype(np.float64)
    correct, total = sums[:, 2:6].astype(np.float64), sums[:, 6:].astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        penalty = np.where(hypothesis < reference, np.exp(1 - reference / hypothesis), 1.0)
        missed = np.cumsum(correct == 0, 1)
        precision = np.where(correct > 0, 100 * correct / total, 100 / (2.0**missed * total))
        logs = np.where(total > 0, np.log(precision), -np.inf)
        found = penalty * np.exp(logs.sum(1) / 4)
    return np.where((correct.sum(1) > 0) & (total > 0).all(1), found, 0.0)


def _as_statistics(given: Any, references: References | None, lowercase: bool) -> NDArray[Any]:
    if references is None:
        if not isinstance(given, np.ndarray):
            raise SofttargetsError(
                "references are missing; they can only be left out with the result of sentence_statistics"
            )
        return _checked(given)
    return sentence_statistics(given, references, lowercase)


def _checked(statistics: NDArray[Any]) -> NDArray[Any]:
    found = np.asarray(statistics)
    if found.ndim != 2 or found.shape[1] != len(COLUMNS) or not len(found) or found.dtype.kind not in "ui":
        raise SofttargetsError(
            f"statistics of sentences must be whole numbers (sentences, {len(COLUMNS)}), at least one, as "
            f"sentence_statistics gives them, not {found.shape} {found.dtype}"
        )
    return found
