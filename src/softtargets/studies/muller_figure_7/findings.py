"""What figure 7 comes to: the pictures, numbers beside them, and the claims."""

from __future__ import annotations

from softtargets.claims import Claim, judge
from softtargets.report import Figure, Section, Table
from softtargets.studies.muller_figure_7.claims import claims
from softtargets.studies.muller_figure_7.measures import SPLITS
from softtargets.studies.muller_figure_7.tokens import TRIPLES
from softtargets.studies.planes import planes_figure, shown_view
from softtargets.studies.results import Results
from softtargets.studies.sizes import size_of
from softtargets.studies.study import Findings, Outcome
from softtargets.studies.translation.corpora import (
    ALPHAS,
    SMALL,
    Corpus,
    claimed,
    corpora_in,
    deviations,
    how_trained,
    per_corpus,
    shown_alpha,
)
from softtargets.studies.words import SMALL_DECIDES_NOTHING


def findings(results: Results) -> Findings:
    """Pictures of frequent words and of nouns, and a table for each corpus."""
    made = claims(results)
    corpora = corpora_in(results)
    sections = (
        Section.of(
            "Three tokens on the plane of their templates",
            how_trained(results),
            "A template is the row of the last layer's weights that belongs to a token. Each point is a place in a "
            "reference translation where this token comes next, given the source and the tokens before it. A hundred "
            "places of each token are shown; the numbers are of all of them.",
            *(
                figure
                for corpus in corpora
                for which in TRIPLES
                for figure in _pictures(results, corpus, which)
            ),
            *(_clusters(results, corpus) for corpus in corpora),
        ),
        Section.of(
            "Errors on the training set",
            "Networks for images learn nearly all labels of their training set. The paper's translation model learns "
            "around 80 % of the next tokens, so its pictures show errors on both sets.",
            *(_accuracies(results, corpus) for corpus in corpora),
        ),
        Section.of(
            "What differs from the paper",
            *deviations(
                results,
                "The paper does not say which tokens it shows. Ours are chosen by a rule about the training text: the "
                "three most frequent words, and the three most frequent nouns. German writes nouns with a capital, so "
                "these are capitalised words that do not begin a sentence.",
            ),
        ),
    )
    return Findings(sections, made, _answer(results, made))


def _answer(results: Results, made: tuple[Claim, ...]) -> str:
    """Tight clusters?"""
    if results.outcomes and size_of(results) == SMALL:
        return SMALL_DECIDES_NOTHING
    told = {
        "reproduced": "label smoothing makes the clusters of training tokens tighter",
        "contradicted": "label smoothing does not make the clusters of training tokens tighter",
        "no effect": "label smoothing leaves the clusters of training tokens as they are",
        "inconclusive": "we cannot tell whether label smoothing makes clusters tighter",
        "not run yet": "it is not known yet: not all runs have been made",
    }
    found = {one.claim.statement: one.verdict for one in judge(made)}
    corpora = claimed(results)
    verdicts = [
        next(v for s, v in found.items() if s.startswith(f"On {one.title} ") and "training tokens" in s)
        for one in corpora
    ]
    return per_corpus(corpora, [told[verdict] for verdict in verdicts])


def _pictures(results: Results, corpus: Corpus, which: str) -> list[Figure]:
    """The first seed of each strength that has one."""
    first = {alpha: _first(results, corpus, which, alpha) for alpha in ALPHAS}
    views = [
        shown_view(outcome.details[f"{which}_{split}"], shown_alpha(alpha), name)
        for alpha, outcome in first.items()
        if outcome is not None
        for split, name in SPLITS.items()
    ]
    if not views:
        return []
    seeds = " and ".join(str(seed) for seed in sorted({one.seed for one in first.values() if one}))
    words = ", ".join(f"“{name}”" for name in views[0].names)
    return [
        planes_figure(
            f"planes_{which}_{corpus.key}",
            f"{corpus.title}, {TRIPLES[which]}: {words}.",
            views,
            f"One model of each kind, seed {seeds}. Panels of one model have one scale; look at the axes.",
            alt="Scatter plots of three tokens: training and held-out pairs, with hard targets and with smoothing.",
        )
    ]


def _first(results: Results, corpus: Corpus, which: str, alpha: float) -> Outcome | None:
    needed = {f"{which}_{split}" for split in SPLITS}
    there = [
        one for one in results.where(corpus=corpus.key, alpha=alpha).outcomes if needed <= one.details.keys()
    ]
    return min(there, key=lambda one: one.seed, default=None)


def _clusters(results: Results, corpus: Corpus) -> Table:
    keys = [f"{split}_{key}" for key in ("spread", "triangle", "scale") for split in SPLITS]
    rows = [
        {"tokens": which, "targets": shown_alpha(alpha)}
        | {key: results.sample(f"{key}_{which}", corpus=corpus.key, alpha=alpha) for key in keys}
        for which in TRIPLES
        for alpha in ALPHAS
    ]
    return Table.of(
        f"clusters_{corpus.key}",
        f"{corpus.title}: clusters as numbers.",
        "tokens | targets | train_spread: spread, training | validation_spread: spread, held out | "
        "train_triangle: triangle, training | validation_triangle: triangle, held out | "
        "train_scale .2f: distance of means",
        rows,
        "Mean ± standard deviation over seeds. Spread: deviation from the token's mean over the mean distance of "
        "means; triangle: 1 is equilateral. Distances of means are of the training set.",
    )


def _accuracies(results: Results, corpus: Corpus) -> Table:
    rows = [
        {"targets": shown_alpha(alpha), "paper": "around 80 %" if not alpha else None}
        | {
            key: results.sample(key, corpus=corpus.key, alpha=alpha)
            for key in ("train_accuracy", "validation_accuracy")
        }
        for alpha in ALPHAS
    ]
    return Table.of(
        f"next_tokens_{corpus.key}",
        f"{corpus.title}: next tokens that are right.",
        "targets | paper: paper, training set of WMT'14 | train_accuracy .1%: training set | "
        "validation_accuracy .1%: held-out pairs",
        rows,
        "Given correct prefixes, in evaluation mode. Mean ± standard deviation over seeds. The paper does not say "
        "which of its models it means.",
    )
