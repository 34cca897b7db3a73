"""What figure 4 comes to: curves over temperature, the temperatures that are best, and claims."""

from __future__ import annotations

from softtargets.claims import Claim, judge
from softtargets.report import Figure, Section, Table
from softtargets.studies.muller_figure_4.claims import claims
from softtargets.studies.results import Results, over
from softtargets.studies.sizes import size_of
from softtargets.studies.study import Findings
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
from softtargets.studies.translation.curves import (
    MEASURES,
    at,
    over_temperature,
    panels_over_temperature,
    rows_over_temperature,
    series_of,
    temperatures_of,
)
from softtargets.studies.translation.protocols import SENTENCES
from softtargets.studies.words import SMALL_DECIDES_NOTHING

_NAMES = {key: key for key in MEASURES}


def findings(results: Results) -> Findings:
    """Curves, a table and claims."""
    made = claims(results)
    corpora = corpora_in(results)
    most = SENTENCES.get(size_of(results))
    sections = (
        Section.of(
            "Over the temperature",
            how_trained(results),
            "Logits are divided by the temperature before the softmax, in beam search and in the prediction of each "
            "token of the reference alike. BLEU is that of a beam of 5, on "
            f"{f'the first {most:,} sentences of the test set' if most else 'the whole test set'}. ECE and NLL are of "
            "next tokens with correct prefixes, without padding.",
            *(figure for corpus in corpora for figure in _figures(results, corpus)),
        ),
        Section.of(
            "Which temperature is best?",
            "The temperatures with the least ECE and the least NLL are chosen on the held-out pairs, among those at "
            "which sentences were translated. The one with the highest BLEU is that of the test set itself, and "
            "judges nothing.",
            *(table for corpus in corpora for table in _best(results, corpus)),
        ),
        Section.of(
            "What differs from the paper",
            *deviations(
                results,
                "The paper's BLEU is uncased and of its validation set, by tensor2tensor's script, with a beam of 4. "
                "Ours is sacreBLEU, cased, of the test set, with a beam of 5 and scores divided by length.",
            ),
        ),
    )
    return Findings(sections, made, _answer(results, made))


def _answer(results: Results, made: tuple[Claim, ...]) -> str:
    """Does a temperature do as much?"""
    if results.outcomes and size_of(results) == SMALL:
        return SMALL_DECIDES_NOTHING
    told = {
        "reproduced": "no temperature does: label smoothing has the higher BLEU at all of them",
        "contradicted": "label smoothing has no higher BLEU than hard targets with some temperature",
        "no effect": "label smoothing and hard targets have the same BLEU, whatever the temperature",
        "inconclusive": "we cannot tell whether a temperature raises BLEU as much as label smoothing does",
        "not run yet": "it is not known yet: not all runs have been made",
    }
    found = {one.claim.statement: one.verdict for one in judge(made)}
    corpora = claimed(results)
    verdicts = [
        next(v for s, v in found.items() if s.startswith(f"On {one.title} label smoothing has a higher BLEU"))
        for one in corpora
    ]
    return per_corpus(corpora, [told[verdict] for verdict in verdicts])


def _figures(results: Results, corpus: Corpus) -> list[Figure]:
    own, tried = results.where(corpus=corpus.key), temperatures_of(size_of(results))
    series = series_of(own, ALPHAS, {alpha: shown_alpha(alpha) for alpha in ALPHAS})
    if not any("curves" in outcome.details for outcome in own.outcomes):
        return []
    return [
        over_temperature(
            f"temperatures_{corpus.key}",
            f"{corpus.title}: translation, calibration and likelihood over the temperature.",
            panels_over_temperature(corpus.title, series, tried, _NAMES),
            rows_over_temperature(own, over(alpha=ALPHAS), tried, MEASURES),
            "Is BLEU highest where ECE is least? Test set.",
        )
    ]


def _best(results: Results, corpus: Corpus) -> tuple[Table, Table]:
    own = results.where(corpus=corpus.key)
    trained = [
        {"targets": shown_alpha(alpha)} | {key: own.sample(at(key, 1.0), alpha=alpha) for key in MEASURES}
        for alpha in ALPHAS
    ]
    chosen = ("by_ece", "bleu_by_ece", "by_nll", "bleu_by_nll", "highest")
    best = [
        {"targets": shown_alpha(alpha)} | {name: own.sample(name, alpha=alpha) for name in chosen}
        for alpha in ALPHAS
    ]
    return (
        Table.of(
            f"trained_{corpus.key}",
            f"{corpus.title}, as trained: temperature 1.",
            "targets | bleu .1f: BLEU | ece: ECE | nll: NLL",
            trained,
            "Mean ± standard deviation over seeds; test set.",
        ),
        Table.of(
            f"best_{corpus.key}",
            f"{corpus.title}, at the best temperatures.",
            "targets | by_ece .2f: T of least ECE | bleu_by_ece .1f: BLEU at it | by_nll .2f: T of least NLL | "
            "bleu_by_nll .1f: BLEU at it | highest .2f: T of highest BLEU",
            best,
            "Mean ± standard deviation over seeds; BLEU is of the test set.",
        ),
    )
