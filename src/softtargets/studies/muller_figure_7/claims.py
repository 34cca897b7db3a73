"""What appendix B of the paper, and the response to its reviewers, say of the penultimate layer of a Transformer."""

from __future__ import annotations

from softtargets.claims import Claim, Region, Sample, sources, zone
from softtargets.studies.muller_figure_7.tokens import TRIPLES
from softtargets.studies.printed import printed_number
from softtargets.studies.results import Results
from softtargets.studies.sizes import size_of
from softtargets.studies.translation.corpora import (
    ALPHAS,
    PRINTED,
    SEEDS,
    Corpus,
    by_protocol,
    claimed,
    shown_alpha,
)

# Differences of spreads too small to count; an accuracy that is near-perfect, as the paper says of images; and what
# “around 80 %” leaves open.
SAME_SPREAD, PERFECT, AROUND = 0.02, 0.99, 0.05


def claims(results: Results) -> tuple[Claim, ...]:
    """Three statements on each corpus, and a printed accuracy where the paper's training was done."""
    own = by_protocol(results)
    numbers = _numbers(own) if size_of(results) == PRINTED else ()
    return (*numbers, *(claim for corpus in claimed(results) for claim in _claims(own, corpus)))


def _numbers(results: Results) -> tuple[Claim, ...]:
    return tuple(
        printed_number(
            f"With {shown_alpha(alpha)} a share of {{}} of the next tokens of the training set is right.",
            "muller-2019/next-token-accuracy/en-de",
            results.sample("train_accuracy", corpus="wmt14", alpha=alpha),
            AROUND,
            quantity=f"share of next tokens of the training set that are right, alpha {alpha:g}",
            seeds=SEEDS,
            remark=f"“Around” means within {AROUND:g}.",
            digits=2,
        )
        for alpha in ALPHAS
    )


def _claims(results: Results, corpus: Corpus) -> tuple[Claim, ...]:
    printed = (*sources("muller-2019/clusters/en-de"), *sources("response-2019/clusters/en-de"))
    errors = (*sources("muller-2019/wrong-tokens/en-de"), *sources("response-2019/wrong-tokens/en-de"))
    spreads = {split: _tighter(results, corpus, split) for split in ("train", "validation")}
    right = {
        f"{shown_alpha(alpha)}, {name}": results.sample(f"{split}_accuracy", corpus=corpus.key, alpha=alpha)
        for alpha in ALPHAS
        for split, name in (("train", "training"), ("validation", "held out"))
    }
    remark = "A spread is the deviation of tokens from their mean over the mean distance of the three means."
    on = f"On {corpus.title}"
    return (
        Claim.every(
            f"{on} label smoothing makes the clusters of training tokens tighter.",
            printed,
            f"{corpus.title}: spread on the plane of three tokens, training set, alpha 0.1 minus alpha 0",
            spreads["train"],
            Region(high=0),
            _means(spreads["train"]),
            remark,
            seeds=SEEDS,
            zone=zone(SAME_SPREAD),
        ),
        Claim.every(
            f"{on} label smoothing makes the clusters of held-out tokens tighter.",
            printed,
            f"{corpus.title}: the same on held-out pairs",
            spreads["validation"],
            Region(high=0),
            _means(spreads["validation"]),
            remark,
            seeds=SEEDS,
            zone=zone(SAME_SPREAD),
        ),
        Claim.every(
            f"{on} the model errs on next tokens of both the training set and held-out pairs, smoothed or not.",
            errors,
            f"{corpus.title}: share of next tokens that are right",
            right,
            Region(high=PERFECT),
            _means(right),
            f"“Errs” means that less than {100 * PERFECT:g} % are right.",
            seeds=SEEDS,
        ),
    )


def _tighter(results: Results, corpus: Corpus, split: str) -> dict[str, Sample]:
    hard, soft = ({"corpus": corpus.key, "alpha": alpha} for alpha in ALPHAS)
    return {told: results.difference(f"{split}_spread_{name}", soft, hard) for name, told in TRIPLES.items()}


def _means(cells: dict[str, Sample]) -> str:
    known = {name: sample.first(SEEDS).mean for name, sample in cells.items() if sample.n}
    return "; ".join(f"{name} {value:.3f}".replace("-", "−") for name, value in known.items()) or "–"
