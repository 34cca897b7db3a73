"""Are next tokens calibrated with LABO, and what temperature repairs them? Beyond the papers."""

from __future__ import annotations

from typing import Any

from softtargets.claims import Claim, Region, Sample, above, below, judge, zone
from softtargets.report import Curve, Figure, Panel, Section, Table, lines
from softtargets.report.drawing import GREY
from softtargets.studies.labo_translation.measures import Trusted
from softtargets.studies.labo_translation.protocol import HARD, LITERAL, LS, READINGS, SEEDS, cell, trials_of
from softtargets.studies.labo_translation.telling import LOOKS, NAMES, how_trained, which_labo
from softtargets.studies.results import Results, Row
from softtargets.studies.sizes import by_protocol, size_of
from softtargets.studies.study import LU, MULLER, Findings, Settings, Study, Trial
from softtargets.studies.translation.protocols import AXES, KEEP, SIZES
from softtargets.studies.words import answered

METHODS = (HARD, LS, *READINGS)
# Too small to count: of calibration, of confidence less accuracy, and of a rank correlation.
SMALL_ECE, SMALL_GAP, SMALL_RANK = 0.005, 0.01, 0.02


def trials(settings: Settings) -> list[Trial]:
    """German to English with hard targets, label smoothing and LABO; these are runs of table 1."""
    return trials_of(settings, METHODS)


def findings(results: Results) -> Findings:
    """Figure, tables and claims."""
    made = claims(results)
    return Findings(_sections(results), made, _answer(made))


def _answer(made: tuple[Claim, ...]) -> str:
    """Are next tokens calibrated, and does a temperature repair them?"""
    worse, _, _, repaired, *_ = (one.verdict for one in judge(made))
    first = answered(
        worse,
        "No: with LABO as printed next tokens are worse calibrated than with label smoothing.",
        "With LABO as printed next tokens are better calibrated than with label smoothing.",
        nothing="With LABO as printed next tokens are as well calibrated as with label smoothing.",
        whether="LABO as printed calibrates next tokens worse than label smoothing",
    )
    second = {
        "reproduced": " A temperature removes more than half of its calibration error.",
        "contradicted": " A temperature does not remove half of its calibration error.",
    }
    return first + second.get(repaired, "")


def _sections(results: Results) -> tuple[Section, ...]:
    size = size_of(results)
    return (
        Section.of(
            "Tokens",
            "A model is calibrated if next tokens that it gives a probability of 0.7 are right in seven of ten cases. "
            "LABO as printed trains towards a probability of about 0.4 even where the next token is certain, so it "
            "must be underconfident there.",
            "The temperature is the one with the best likelihood on the validation set. Below 1 it makes a model more "
            "confident.",
            _figure(results),
            _tokens(results),
        ),
        Section.of(
            "Whole translations",
            "The probability of a translation is the product of those of its tokens. As that of an exact match it "
            "should add up to the number of translations that are their reference word for word. Per token, on a "
            "geometric average, it should at least order translations by quality: the rank correlation with chrF "
            "of the sentence says how well it does.",
            _sequences(results),
        ),
        Section.of("How it was trained", *how_trained(size), which_labo(size)),
    )


def _figure(results: Results) -> Figure | str:
    rows: list[Row] = []
    panels = []
    for key, title in (("reliability", "As trained"), ("reliability_scaled", "At the fitted temperature")):
        curves = [Curve("perfect", GREY, [0.0, 1.0], [0.0, 1.0], line="dotted")]
        for method in METHODS:
            kept = [o.details[key] for o in results.where(**cell(method)).outcomes if key in o.details]
            if not kept:
                continue
            # Bins of several seeds differ; those of the first are drawn, all are in the numbers.
            first = kept[0]
            colour, line = LOOKS[method]
            curves.append(
                Curve(
                    NAMES[method], colour, first["confidence"], first["accuracy"], line=line, marker="circle"
                )
            )
            rows += [
                {"when": key, "method": method, "seed": seed, "confidence": c, "accuracy": a, "tokens": n}
                for seed, one in enumerate(kept)
                for c, a, n in zip(one["confidence"], one["accuracy"], one["tokens"], strict=True)
            ]
        panels.append(
            Panel(title, "confidence in the next token", "accuracy", curves, xlimits=(0, 1), limits=(0, 1))
        )
    if not rows:
        return "Reliability of next tokens: not run yet."
    return lines(
        "reliability",
        "Confidence in next tokens against how often they are right.",
        panels,
        rows,
        "Tokens of the test set after a correct prefix, in 15 bins of confidence, of the first seed. Above the dotted "
        "line a model is underconfident, below it overconfident.",
        "Reliability of next tokens for hard targets, label smoothing and three readings of LABO, before and after a "
        "temperature.",
    )


def _tokens(results: Results) -> Table:
    keys = ("gap", "ece", "nll", "temperature", "ece_scaled", "nll_scaled")
    rows = [
        {"name": NAMES[method], **{key: results.sample(key, **cell(method)) for key in keys}}
        for method in METHODS
    ]
    return Table.of(
        "tokens",
        "Calibration of next tokens, test set.",
        "name: trained with | gap .3f: confidence less accuracy | ece .3f: ECE | nll .3f: NLL | temperature .2f: "
        "fitted T | ece_scaled .3f: ECE at fitted T | nll_scaled .3f: NLL at fitted T",
        rows,
        "Mean ± standard deviation over seeds. Confidence less accuracy is below 0 where a model is underconfident.",
    )


def _sequences(results: Results) -> Table:
    keys = ("observed_exact", "expected_exact", "score", "token_probability", "rank_correlation")
    scaled = ("expected_exact", "token_probability", "rank_correlation")
    rows = [
        {
            "name": NAMES[method],
            **{key: results.sample(key, **cell(method)) for key in keys},
            **{f"{key}_scaled": results.sample(f"{key}_scaled", **cell(method)) for key in scaled},
        }
        for method in METHODS
    ]
    return Table.of(
        "translations",
        "Probabilities of whole translations, test set.",
        "name: trained with | observed_exact .1%: exact matches | expected_exact .1%: expected | expected_exact_scaled "
        ".1%: at fitted T | score .2f: chrF of a sentence | token_probability .2f: probability of a token | "
        "token_probability_scaled .2f: at fitted T | rank_correlation .3f: rank correlation | "
        "rank_correlation_scaled .3f: at fitted T",
        rows,
        "Mean ± standard deviation over seeds, beam 5, translations found without a temperature. Expected: what the "
        "probabilities of the translations add up to. chrF is from 0 to 1.",
    )


def claims(results: Results) -> tuple[Claim, ...]:
    """LABO as printed against label smoothing, as trained and at fitted temperatures; none is a paper's."""
    followed = by_protocol(results, trials)
    labo, smoothed = cell(LITERAL), cell(LS)
    pair = [(labo, smoothed)]
    fixed: dict[str, Any] = {"seeds": SEEDS}
    ours = "Our own statement."

    def left(own: Results) -> float:
        found = own.where(**labo).cells("method")[LITERAL,]
        return found["ece_scaled"] - found["ece"] / 2

    gap: Sample = followed.contrast((("gap", labo), None))
    return (
        Claim(
            "With LABO as printed next tokens are worse calibrated than with LS.",
            (),
            "ECE of tokens with LABO minus that with LS",
            *above(0, followed.gain("ece", pair)),
            followed.then("ece", ".3f", smoothed, labo),
            f"{ours} Theory says that LABO as printed rests at a probability of about 0.4.",
            zone=zone(SMALL_ECE),
            **fixed,
        ),
        Claim(
            "A model that was trained with LABO as printed is underconfident of next tokens.",
            (),
            "average confidence in next tokens minus their accuracy",
            *below(0, gap),
            followed.shown("gap", ".3f", labo),
            ours,
            zone=zone(SMALL_GAP),
            **fixed,
        ),
        Claim(
            "The temperature that repairs LABO as printed is below 1.",
            (),
            "temperature with the best likelihood on the validation set",
            *below(1, followed.sample("temperature", **labo)),
            followed.shown("temperature", ".2f", labo),
            f"{ours} Below 1 it makes the model more confident.",
            digits=2,
            **fixed,
        ),
        Claim(
            "A temperature removes more than half of the calibration error of LABO as printed.",
            (),
            "ECE of tokens at the fitted temperature minus half of that as trained",
            *below(0, followed.each_seed(left)),
            f"{followed.shown('ece', '.3f', labo)} as trained, {followed.shown('ece_scaled', '.3f', labo)} repaired",
            f"{ours} The chance of the test sentences is not counted here.",
            **fixed,
        ),
        Claim(
            "At fitted temperatures LABO as printed is as well calibrated as LS.",
            (),
            "ECE of tokens at the fitted temperature, LABO minus LS",
            followed.gain("ece_scaled", pair),
            Region(-SMALL_ECE, SMALL_ECE),
            followed.then("ece_scaled", ".3f", smoothed, labo),
            f"{ours} “As well” is a difference of less than {SMALL_ECE:g}.",
            **fixed,
        ),
        Claim(
            "Probabilities of translations order them by quality as well with LABO as printed as with LS.",
            (),
            "rank correlation of log-probability per token and sentence chrF, LABO minus LS",
            followed.gain("rank_correlation", pair),
            Region(-SMALL_RANK, SMALL_RANK),
            followed.then("rank_correlation", ".2f", smoothed, labo),
            f"{ours} “As well” is a difference of less than {SMALL_RANK:g}.",
            **fixed,
        ),
    )


study = Study(
    name="beyond-token-labo",
    title="Are next tokens calibrated with LABO, and what temperature repairs them?",
    lead=(
        "Müller et al. (2019) find that label smoothing calibrates next tokens of translation models. Lu et al. (2023) "
        "report probabilities around 0.4 with LABO and do not measure calibration. This page does, for tokens and for "
        "whole translations, before and after a temperature."
    ),
    papers=(MULLER, LU),
    trials=trials,
    keep=KEEP,
    again=Trusted,
    findings=findings,
    claims=claims,
    seeds=SEEDS,
    axes=AXES,
    sizes=SIZES,
)
