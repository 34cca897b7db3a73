"""How chrF would differ on other sentences of the same kind: counts of n-grams once, resampled many times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from softtargets.exceptions import SofttargetsError
from softtargets.translation.bleu_statistics import BleuInterval
from softtargets.translation.scoring import References, checked_texts, sacrebleu_metrics


def chrf_interval(
    hypotheses: Sequence[str],
    references: References,
    resamples: int = 1000,
    seed: int = 0,
    *,
    level: float = 0.95,
    lowercase: bool = False,
) -> BleuInterval:
    """Corpus chrF and the interval between percentiles of resampled test sets, as `bleu_interval` has it for BLEU.

    The resamples are those of `bleu_interval` for as many sentences and the same seed.

    >>> found = chrf_interval(["a cat", "a dog", "birds"], ["a cat", "the dog", "a bird"], resamples=100)
    >>> found.low <= found.value <= found.high
    True
    """
    if resamples < 2:
        raise SofttargetsError(f"must be at least 2, better 1000, not {resamples}", argument="resamples")
    if not 0 < level < 1:
        raise SofttargetsError(f"must lie between 0 and 1, such as 0.95, not {level}", argument="level")
    hyps, refs = checked_texts(hypotheses, references)
    metric = sacrebleu_metrics().CHRF(lowercase=lowercase)
    counts = np.asarray(metric._extract_corpus_statistics(hyps, refs), dtype=np.float64)
    generator = np.random.default_rng(seed)
    found = np.empty(resamples)
    for place in range(resamples):
        drawn = np.bincount(generator.integers(len(counts), size=len(counts)), minlength=len(counts))
        found[place] = metric._compute_f_score(np.rint(drawn @ counts).astype(np.int64).tolist())
    value = float(metric._compute_f_score(counts.sum(0).astype(np.int64).tolist()))
    low, high = np.quantile(found, [(1 - level) / 2, (1 + level) / 2])
    return BleuInterval(value, float(low), float(high), resamples, float((found > 0).mean()))
