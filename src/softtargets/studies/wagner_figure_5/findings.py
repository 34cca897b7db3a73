"""What figure 5 comes to: curves over temperature of both computations, and claims."""

from __future__ import annotations

from softtargets.claims import Claim, judge, published
from softtargets.report import Figure, Section, Table
from softtargets.studies.results import Results, Row, over
from softtargets.studies.sizes import size_of
from softtargets.studies.study import Findings
from softtargets.studies.translation.corpora import shown_alpha
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
from softtargets.studies.translation.replication import HOW, deviations
from softtargets.studies.wagner_figure_5.claims import claims
from softtargets.studies.wagner_figure_5.measures import ALPHAS
from softtargets.studies.words import SMALL_DECIDES_NOTHING, answered

_T = "wagner-2023/temperature/multi30k-transformer"
_PROPER = {key: key for key in MEASURES}
_THEIRS = {"bleu": "replicated_bleu", "ece": "replicated.ece", "nll": "replicated.nll"}


def findings(results: Results) -> Findings:
    """Two figures, a table and claims."""
    made = claims(results)
    most = SENTENCES.get(size_of(results))
    sections = (
        Section.of(
            "Over the temperature",
            HOW,
            "Logits are divided by the temperature before the softmax. BLEU is that of a beam of 5, on "
            f"{f'the first {most:,} sentences of the test set' if most else 'the whole test set'}. ECE and NLL are of "
            "next tokens with correct prefixes, without padding.",
            *_figure(results, "proper", "Test set, beam search, padding left out.", _PROPER, MEASURES),
            *_tables(results),
        ),
        Section.of(
            "As the replication's code computes it",
            "Its code counts padding in the ECE. It divides hidden states by the temperature and not logits, and "
            "decodes greedily, so that a temperature reaches BLEU only through the bias of the last layer. Its "
            "likelihood is normalised over the places of a sentence and not over the vocabulary. Here is the same of "
            "our models, on the validation set as there.",
            *_figure(
                results,
                "replicated",
                "Validation set, greedy decoding, padding counted, likelihood over time.",
                _THEIRS,
                ("replicated_bleu",),
            ),
        ),
        Section.of(
            "What differs from the replication",
            *deviations(
                results,
                "BLEU is sacreBLEU in both figures. The replication takes torchtext's, of spaCy's words against words "
                "between spaces.",
            ),
        ),
    )
    return Findings(sections, made, _answer(results, made))


def _answer(results: Results, made: tuple[Claim, ...]) -> str:
    """What does a temperature do?"""
    if results.outcomes and size_of(results) == "small":
        return SMALL_DECIDES_NOTHING
    less, _, bleu, *_ = (one.verdict for one in judge(made))
    first = answered(
        less,
        "With smoothing of 0.3 the best temperature is lower than with hard targets.",
        "With smoothing of 0.3 the best temperature is not lower than with hard targets.",
        whether="smoothing lowers the best temperature",
    )
    if "not run yet" in (less, bleu):
        return first
    second = answered(
        bleu,
        "BLEU does not rise by half a point or more.",
        "BLEU rises by half a point or more, which the replication did not find.",
        whether="BLEU rises with smoothing",
    )
    return f"{first} {second}"


def _figure(
    results: Results, name: str, caption: str, names: dict[str, str], keys: tuple[str, ...]
) -> list[Figure]:
    tried = temperatures_of(size_of(results))
    series = series_of(results, ALPHAS, {alpha: shown_alpha(alpha) for alpha in ALPHAS})
    if not any("curves" in outcome.details for outcome in results.outcomes):
        return []
    theirs = name == "replicated"
    return [
        over_temperature(
            f"temperatures_{name}",
            "As the replication computes it." if theirs else "Translation, calibration and likelihood.",
            panels_over_temperature("Multi30k", series, tried, names),
            rows_over_temperature(results, over(alpha=ALPHAS), tried, keys),
            caption,
        )
    ]


def _tables(results: Results) -> tuple[Table, Table]:
    printed = {
        alpha: published(f"{_T}/{kind}").printed
        for alpha, kind in zip(ALPHAS, ("hard", "smoothed-0.3"), strict=True)
    }
    trained: list[Row] = [
        {"targets": shown_alpha(alpha)}
        | {key: results.sample(at(key, 1.0), alpha=alpha) for key in (*MEASURES, "replicated_bleu")}
        for alpha in ALPHAS
    ]
    best: list[Row] = [
        {"targets": shown_alpha(alpha), "paper": printed[alpha]}
        | {
            key: results.sample(key, alpha=alpha)
            for key in ("replicated_temperature", "temperature", "highest")
        }
        for alpha in ALPHAS
    ]
    return (
        Table.of(
            "trained",
            "As trained: temperature 1.",
            "targets | bleu .1f: BLEU | ece: ECE | nll: NLL | replicated_bleu .1f: BLEU, greedy, validation set",
            trained,
            "Mean ± standard deviation over seeds; the first three are of the test set.",
        ),
        Table.of(
            "best",
            "The temperatures that are best.",
            "targets | paper: least ECE, replication | replicated_temperature .2f: least ECE with padding, ours | "
            "temperature .2f: least ECE, ours | highest .2f: highest BLEU, ours",
            best,
            "Mean ± standard deviation over seeds. ECEs are of the validation set, BLEU is of the test set.",
        ),
    )
