"""What figure 3 comes to: errors of calibration beside the printed ones, diagrams and claims."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from softtargets.claims import Claim, Region, above, below, judge, published, sources, zone
from softtargets.report import Figure, Section, Table
from softtargets.report.drawing import BLUE, ORANGE, RED
from softtargets.studies.muller_figure_3.measures import PRINTED_TEMPERATURE
from softtargets.studies.printed import printed_number
from softtargets.studies.reliabilities import reliability_figure
from softtargets.studies.results import Results, Row
from softtargets.studies.sizes import size_of
from softtargets.studies.study import Findings
from softtargets.studies.translation.corpora import (
    ALPHAS,
    HARD,
    PRINTED,
    SEEDS,
    SMALL,
    SOFT,
    Corpus,
    by_protocol,
    claimed,
    corpora_in,
    deviations,
    how_trained,
    per_corpus,
    shown_alpha,
)
from softtargets.studies.translation.diagrams import curves
from softtargets.studies.words import SMALL_DECIDES_NOTHING

# Differences in ECE too small to count, and how near two must be to be similar.
SAME, SIMILAR = 0.005, 0.01
# Two standard errors of an accuracy of 65 % of 10,000 tokens, which is what the paper measured on; and of temperatures
# what the same leaves open where confidence falls by 0.1 for each 0.1 of them.
ECE_MARGIN, TEMPERATURE_MARGIN = 0.01, 0.1
_ECE = "muller-2019/ece/en-de"


def claims(results: Results) -> tuple[Claim, ...]:
    """Directions on each corpus; printed numbers where the paper's training was done on its corpus."""
    own = by_protocol(results)
    numbers = _numbers(own) if size_of(results) == PRINTED else ()
    return (*numbers, *(claim for corpus in claimed(results) for claim in _directions(own, corpus)))


def _numbers(results: Results) -> tuple[Claim, ...]:
    hard, soft = ({"corpus": "wmt14", "alpha": alpha} for alpha in ALPHAS)

    def ece(statement: str, kind: str, measure: str, cell: Mapping[str, Any], remark: str = "") -> Claim:
        return printed_number(
            statement,
            f"{_ECE}/{kind}",
            results.sample(measure, **cell),
            ECE_MARGIN,
            quantity=f"ECE of next tokens at alpha {cell['alpha']:g} on the held-out pairs"
            + (", with a temperature" if kind == "scaled" else ""),
            seeds=SEEDS,
            remark=remark,
        )

    chosen = "The temperature with the highest likelihood of the held-out pairs; the paper does not say how it chose."
    return (
        ece("With hard targets the calibration error is {}.", "hard", "held_out_ece", hard),
        ece(
            "A temperature brings the calibration error down to {}.",
            "scaled",
            "held_out_scaled_ece",
            hard,
            chosen,
        ),
        ece(
            "Label smoothing of 0.1 brings the calibration error down to {}.",
            "smoothed",
            "held_out_ece",
            soft,
        ),
        printed_number(
            "The temperature that is needed after training with hard targets is {}.",
            "muller-2019/temperature/en-de/hard",
            results.sample("temperature", **hard),
            TEMPERATURE_MARGIN,
            quantity="temperature of the highest likelihood of the held-out pairs, alpha 0",
            seeds=SEEDS,
            digits=2,
        ),
    )


def _directions(results: Results, corpus: Corpus) -> tuple[Claim, ...]:
    hard, soft = ({"corpus": corpus.key, "alpha": alpha} for alpha in ALPHAS)
    on = f"On {corpus.title}"
    scaled = results.shown("scaled_ece", ".3f", hard)
    return (
        Claim(
            f"{on} the model is overconfident after training with hard targets.",
            (*sources(f"{_ECE}/hard"), *sources("muller-2019/reliability/en-de")),
            f"{corpus.title}: mean confidence minus accuracy of next tokens, alpha 0",
            *above(0, results.contrast((("overconfidence", hard), None))),
            results.shown("overconfidence", ".3f", hard),
            "",
            seeds=SEEDS,
            zone=zone(SAME),
        ),
        Claim(
            f"{on} a temperature lowers the calibration error after training with hard targets.",
            sources(_ECE, "hard", "scaled"),
            f"{corpus.title}: ECE with the temperature minus ECE without, alpha 0",
            *below(0, results.contrast((("scaled_ece", hard), ("ece", hard)))),
            f"{results.shown('ece', '.3f', hard)}, then {scaled}",
            "The temperature is chosen on the held-out pairs, by their likelihood.",
            seeds=SEEDS,
            zone=zone(SAME),
        ),
        Claim(
            f"{on} label smoothing of {SOFT:g} lowers the calibration error without a temperature.",
            (*sources(_ECE, "hard", "smoothed"), *sources("muller-2019/reliability/en-de")),
            f"{corpus.title}: ECE at alpha {SOFT:g} minus ECE at alpha 0",
            *below(0, results.difference("ece", soft, hard)),
            results.then("ece", ".3f", hard, soft),
            "",
            seeds=SEEDS,
            zone=zone(SAME),
        ),
        Claim(
            f"{on} label smoothing of {SOFT:g} and a temperature calibrate the model about equally well.",
            sources(_ECE, "scaled", "smoothed"),
            f"{corpus.title}: ECE at alpha {SOFT:g} minus ECE at alpha 0 with its temperature",
            results.contrast((("ece", soft), ("scaled_ece", hard))),
            Region(-SIMILAR, SIMILAR),
            f"{scaled} with the temperature, {results.shown('ece', '.3f', soft)} with smoothing",
            f"“About equally” is a difference of less than {SIMILAR:g}.",
            seeds=SEEDS,
        ),
    )


def findings(results: Results) -> Findings:
    """A table, a diagram for each corpus, claims."""
    made = claims(results)
    sections = (
        Section.of(
            "Expected calibration error",
            how_trained(results),
            "The model predicts each token of a reference translation, given the source and the tokens before it. It "
            "is calibrated if of all predictions with a confidence of 80 % eight in ten are right. The error has 15 "
            "bins of equal width, and padding is left out. Temperatures are chosen on the held-out pairs, by "
            "likelihood and, beside it, by the calibration error itself; no test sentence chooses anything.",
            *(
                table
                for corpus in corpora_in(results)
                for table in (_trained(results, corpus), _scaled(results, corpus))
            ),
            *(figure for corpus in corpora_in(results) for figure in _figures(results, corpus)),
        ),
        Section.of(
            "What differs from the paper",
            *deviations(
                results,
                "The paper measures about 10,000 tokens of its validation set. Here all tokens of the test set are "
                "measured, and the validation set chooses temperatures.",
            ),
        ),
    )
    return Findings(sections, made, _answer(results, made))


def _answer(results: Results, made: tuple[Claim, ...]) -> str:
    """Does label smoothing calibrate?"""
    if results.outcomes and size_of(results) == SMALL:
        return SMALL_DECIDES_NOTHING
    found = {one.claim.statement: one.verdict for one in judge(made)}
    corpora = claimed(results)
    verdicts = [
        next(v for s, v in found.items() if s.startswith(f"On {one.title} ") and "without a temperature" in s)
        for one in corpora
    ]
    told = {
        "reproduced": "label smoothing lowers the calibration error",
        "contradicted": "label smoothing makes calibration worse",
        "no effect": "label smoothing leaves the calibration error as it is",
        "inconclusive": "we cannot tell whether label smoothing lowers the calibration error",
        "not run yet": "it is not known yet whether label smoothing calibrates: not all runs have been made",
    }
    return per_corpus(corpora, [told[verdict] for verdict in verdicts])


def _trained(results: Results, corpus: Corpus) -> Table:
    kinds = {HARD: "hard", SOFT: "smoothed"}
    return Table.of(
        f"calibration_{corpus.key}",
        f"{corpus.title}, as trained.",
        "targets | paper: ECE, paper (WMT'14) | held_out_ece: ECE, held-out pairs | ece: ECE, test set | "
        "overconfidence: confidence minus accuracy | nll: NLL, test set | accuracy .1%: next tokens right",
        _rows(
            results,
            corpus,
            ("held_out_ece", "ece", "overconfidence", "nll", "accuracy"),
            {alpha: published(f"{_ECE}/{kind}").printed for alpha, kind in kinds.items()},
        ),
        "Ours: mean ± standard deviation over seeds.",
    )


def _scaled(results: Results, corpus: Corpus) -> Table:
    return Table.of(
        f"temperatures_{corpus.key}",
        f"{corpus.title}, with a temperature.",
        "targets | paper: ECE, paper (WMT'14) | held_out_scaled_ece: ECE, held-out pairs | scaled_ece: ECE, test set | "
        "temperature .2f: T by likelihood | temperature_by_ece .2f: T by ECE | "
        "ece_at_printed: ECE at the paper's T, held-out pairs",
        _rows(
            results,
            corpus,
            (
                "held_out_scaled_ece",
                "scaled_ece",
                "temperature",
                "temperature_by_ece",
                "ece_at_printed",
            ),
            {HARD: published(f"{_ECE}/scaled").printed},
        ),
        f"The paper's temperature is {PRINTED_TEMPERATURE:g}. ECEs are with the temperature by likelihood.",
    )


def _rows(
    results: Results, corpus: Corpus, measures: tuple[str, ...], printed: Mapping[float, str]
) -> list[Row]:
    return [
        {"targets": shown_alpha(alpha), "paper": printed.get(alpha)}
        | {name: results.sample(name, corpus=corpus.key, alpha=alpha) for name in measures}
        for alpha in ALPHAS
    ]


def _figures(results: Results, corpus: Corpus) -> list[Figure]:
    hard, soft = (results.where(corpus=corpus.key, alpha=alpha) for alpha in ALPHAS)
    drawn = [
        *curves(
            hard,
            [
                ("bins", "nll", "hard targets", RED),
                ("scaled_bins", "scaled_nll", "hard targets with a temperature", ORANGE),
            ],
        ),
        *curves(soft, [("bins", "nll", shown_alpha(SOFT), BLUE)]),
    ]
    if not drawn:
        return []
    return [
        reliability_figure(
            f"reliability_{corpus.key}",
            f"Does confidence mean what it says? The next token on {corpus.title}.",
            drawn,
            "Tokens of the test set, given correct prefixes.",
        )
    ]
