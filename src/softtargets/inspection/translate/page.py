"""The page of `softtargets translate score`: translations, tokens, whole translations, temperature."""

from __future__ import annotations

from typing import Any

from softtargets.inspection.shared.measured import metric_rows
from softtargets.inspection.shared.numbers import between, count, number, percent
from softtargets.inspection.translate import words
from softtargets.inspection.translate.figures import reliability_figure, temperature_figure
from softtargets.inspection.translate.finding import Assessment, TextScore
from softtargets.report import Page, Section, Table

EXAMPLES = 8  # sentences that are shown


def translate_page(found: Assessment, run: str) -> Page:
    """All of an assessment as a page."""
    temperature = (
        (Section.of("Over temperature", *words.temperature_words(found), temperature_figure(found)),)
        if found.optima is not None
        else ()
    )
    return Page(
        name=run,
        title=f"Translations of run {run}",
        lead=(
            "How good are the translations, and can the probabilities of tokens be trusted? "
            f"{count(found.text.sentences, 'sentence')}, beam {found.beam}, length penalty {found.length_penalty:g}. "
            "All intervals are 95 % intervals."
        ),
        sections=(
            Section.of("Translations", words.SAMPLE_NOTE, _scores(found.text)),
            Section.of(
                "Probabilities of tokens",
                words.TOKENS,
                words.likelihood_words(found),
                words.DEPENDENT,
                reliability_figure(found),
                _metrics(found),
            ),
            Section.of("Probabilities of whole translations", words.SEQUENCES, _sequences(found)),
            *temperature,
            Section.of("Some sentences", _examples(found)),
        ),
        warnings=words.warnings_on(found),
        kind="translate",
        verdict=words.verdict_on(found),
    )


def score_rows(found: TextScore) -> list[tuple[str, str, str]]:
    """For a terminal: score, value with its interval, signature."""
    return [(row["score"], row["shown"], row["signature"]) for row in _score_cells(found)]


def summary_rows(found: Assessment) -> list[tuple[str, str]]:
    """For a terminal: metric and value."""
    whole = found.sequences
    return [
        *((name, f"{shown}  {signature}") for name, shown, signature in score_rows(found.text)),
        ("NLL (nats per token)", number(found.tokens.nll, 3)),
        ("perplexity", number(found.tokens.perplexity, 2)),
        *((row["metric"], row["before_shown"]) for row in _metric_cells(found)),
        ("exact matches", f"{whole.observed_exact:,} (promised: {number(whole.expected_exact, 1)})"),
        ("rank correlation", number(whole.rank_correlation, 2)),
    ]


def _score_cells(found: TextScore) -> list[dict[str, Any]]:
    return [
        {
            "score": name,
            "value": score.value,
            **ends.cells("interval"),
            "shown": f"{number(score.value, 1)} ({between(ends.low, ends.high, share=False)})",
            "signature": score.signature,
        }
        for name, score, ends in (
            ("BLEU", found.bleu, found.bleu_interval),
            ("chrF2", found.chrf, found.chrf_interval),
        )
    ]


def _scores(found: TextScore) -> Table:
    return Table.of(
        "scores",
        "BLEU and chrF",
        "score | shown: value | signature: signature of sacreBLEU",
        _score_cells(found),
        "from 0 to 100, higher is better, with 95 % intervals in brackets. Compare scores only if they have the "
        "same signature.",
    )


def _metric_cells(found: Assessment) -> list[dict[str, Any]]:
    bins = len(found.calibration.reliability.counts)
    return metric_rows({"before": found.calibration}, bins, classes=2)


def _metrics(found: Assessment) -> Table:
    return Table.of(
        "metrics",
        "Calibration of tokens",
        "metric | before_shown: value | meaning: what it is",
        _metric_cells(found),
        "with 95 % intervals in brackets. Scatter makes calibration errors larger than they are: they are corrected "
        "for that, and the uncorrected number stands beneath where it differs.",
    )


def _sequences(found: Assessment) -> Table:
    whole = found.sequences
    rows = [
        (
            "exact matches",
            whole.observed_exact,
            f"{whole.observed_exact:,}",
            "translations equal to the reference",
        ),
        (
            "exact matches promised",
            whole.expected_exact,
            number(whole.expected_exact, 1),
            "the sum of the probabilities of all translations",
        ),
        (
            "mean probability of a token",
            whole.mean_token_probability,
            percent(whole.mean_token_probability),
            "exp(log-probability / tokens), on average over translations",
        ),
        ("mean chrF of a sentence", whole.mean_score, percent(whole.mean_score), "how good translations are"),
        (
            "rank correlation",
            whole.rank_correlation,
            number(whole.rank_correlation, 2),
            "Spearman's, between log-probability per token and chrF; 1 means the same order",
        ),
    ]
    keys = ("quantity", "value", "shown", "meaning")
    return Table.of(
        "sequences",
        "Whole translations",
        "quantity | shown: value | meaning: what it is",
        [dict(zip(keys, row, strict=True)) for row in rows],
    )


def _examples(found: Assessment) -> Table:
    shown = list(zip(found.sources, found.references, found.translations, strict=True))[:EXAMPLES]
    return Table.of(
        "examples",
        "Sentences.",
        "source | reference | translation",
        [dict(zip(("source", "reference", "translation"), row, strict=True)) for row in shown],
        f"The first {len(shown)} of the test set.",
    )
