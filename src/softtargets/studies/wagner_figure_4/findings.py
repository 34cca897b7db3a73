"""What figure 4 and the last row of table 3 come to: errors with and without padding, diagrams and claims."""

from __future__ import annotations

from softtargets.claims import Claim, above, below, judge, published, sources, zone
from softtargets.report import Figure, Section, Table
from softtargets.report.drawing import BLUE, GREEN, ORANGE, RED
from softtargets.studies.reliabilities import reliability_figure
from softtargets.studies.results import Results, Row
from softtargets.studies.sizes import size_of
from softtargets.studies.study import Findings
from softtargets.studies.translation.corpora import shown_alpha
from softtargets.studies.translation.diagrams import curves
from softtargets.studies.translation.replication import (
    HOW,
    SEEDS,
    WHAT_ITS_CODE_DOES,
    by_protocol,
    deviations,
)
from softtargets.studies.wagner_figure_4.measures import ALPHAS
from softtargets.studies.words import SMALL_DECIDES_NOTHING, answered

# The smoothing that the text is about.
SMOOTHED = 0.3
# Differences in ECE too small to count, and how near the replication's differences ours must come: its pieces of words,
# and so its padding, are others.
SAME, MARGIN = 0.003, 0.05
_ECE = "wagner-2023/ece/multi30k-transformer"
KINDS = {
    alpha: f"{_ECE}/{kind}"
    for alpha, kind in zip(
        ALPHAS, ("hard", "smoothed-0.05", "smoothed", "smoothed-0.15", "smoothed-0.3"), strict=True
    )
}


def claims(results: Results) -> tuple[Claim, ...]:
    """What section 5.2 says, without padding and as it was computed; and what padding does."""
    own = by_protocol(results, ALPHAS)
    hard, soft = {"alpha": 0.0}, {"alpha": SMOOTHED}
    better, stronger = (
        sources("wagner-2023/reliability/transformer"),
        sources("wagner-2023/reliability/transformer-scaled"),
    )
    printed = {kind: published(f"{_ECE}/{kind}").value or 0.0 for kind in ("hard", "scaled", "smoothed-0.3")}
    return (
        Claim(
            f"Label smoothing of {SMOOTHED:g} lowers the calibration error of the Transformer.",
            (*better, *sources(_ECE, "hard", "smoothed-0.3")),
            f"ECE of the test set at alpha {SMOOTHED:g} minus at alpha 0, without padding",
            *below(0, own.difference("ece", soft, hard)),
            own.then("ece", ".3f", hard, soft),
            "",
            seeds=SEEDS,
            zone=zone(SAME),
        ),
        Claim(
            "A temperature lowers the calibration error of the Transformer more than label smoothing does.",
            (*stronger, *sources(_ECE, "scaled", "smoothed-0.3")),
            f"ECE of the test set at alpha 0 with a temperature minus at alpha {SMOOTHED:g}, without padding",
            *below(0, own.contrast((("scaled_ece", hard), ("ece", soft)))),
            f"{own.shown('scaled_ece', '.3f', hard)} with the temperature, "
            f"{own.shown('ece', '.3f', soft)} with smoothing",
            "The temperature has the least ECE of the validation set.",
            seeds=SEEDS,
            zone=zone(SAME),
        ),
        Claim(
            "With padding counted, as in the replication, label smoothing lowers the calibration error.",
            (*better, *sources(_ECE, "hard", "smoothed-0.3")),
            f"ECE with padding, validation set, at alpha {SMOOTHED:g} minus at alpha 0",
            *below(0, own.difference("padded_ece", soft, hard)),
            own.then("padded_ece", ".3f", hard, soft),
            "The number is the difference of the printed errors.",
            seeds=SEEDS,
            zone=zone(SAME),
            printed=round(printed["smoothed-0.3"] - printed["hard"], 6),
            margin=MARGIN,
        ),
        Claim(
            "With padding counted, as in the replication, a temperature lowers the error more than smoothing does.",
            (*stronger, *sources(_ECE, "scaled", "smoothed-0.3")),
            f"ECE with padding, validation set, at alpha 0 with a temperature minus at alpha {SMOOTHED:g}",
            *below(0, own.contrast((("padded_scaled_ece", hard), ("padded_ece", soft)))),
            f"{own.shown('padded_scaled_ece', '.3f', hard)} with the temperature, "
            f"{own.shown('padded_ece', '.3f', soft)} with smoothing",
            "The temperature has the least of these errors, as in the replication.",
            seeds=SEEDS,
            zone=zone(SAME),
            printed=round(printed["scaled"] - printed["smoothed-0.3"], 6),
            margin=MARGIN,
        ),
        Claim(
            "Counting padding raises the calibration error of hard targets.",
            sources(_ECE, "hard"),
            "ECE with padding minus ECE without, validation set, alpha 0",
            *above(0, own.contrast((("padded_ece", hard), ("held_out_ece", hard)))),
            f"{own.shown('held_out_ece', '.3f', hard)}, then {own.shown('padded_ece', '.3f', hard)}",
            "Our own statement: the replication does not say that padding counts; its code does so.",
            seeds=SEEDS,
            zone=zone(SAME),
        ),
    )


def findings(results: Results) -> Findings:
    """Tables, two diagrams, claims."""
    made = claims(results)
    sections = (
        Section.of(
            "The last row of table 3",
            HOW,
            WHAT_ITS_CODE_DOES,
            _errors(results),
            _temperatures(results),
        ),
        Section.of(
            "Reliability diagrams",
            "The replication draws hard targets, hard targets with a temperature, and smoothing of 0.3. The first "
            "diagram leaves padding out, the second counts it.",
            *_figure(results, "", "without padding"),
            *_figure(results, "padded_", "with padding, as in the replication"),
        ),
        Section.of(
            "What the padding holds",
            "At a place of the padding the replication takes the symbol for padding as the right token. The model was "
            "never trained to predict it.",
            _padding(results),
        ),
        Section.of("What differs from the replication", *deviations(results)),
    )
    return Findings(sections, made, _answer(results, made))


def _answer(results: Results, made: tuple[Claim, ...]) -> str:
    """Does smoothing calibrate?"""
    if results.outcomes and size_of(results) == "small":
        return SMALL_DECIDES_NOTHING
    verdicts = [one.verdict for one in judge(made)]
    first = answered(
        verdicts[0],
        "With padding left out, smoothing of 0.3 lowers the calibration error.",
        "With padding left out, smoothing of 0.3 raises the calibration error.",
        nothing="With padding left out, smoothing of 0.3 leaves the calibration error as it is.",
        whether="smoothing lowers the calibration error",
    )
    if "not run yet" in (verdicts[0], verdicts[-1]):
        return first
    second = answered(
        verdicts[-1],
        "Counting padding, as the replication does, raises the error of hard targets.",
        "Counting padding, as the replication does, does not raise the error of hard targets.",
        whether="counting padding raises the error of hard targets",
    )
    return f"{first} {second}"


def _alphas(results: Results) -> list[float]:
    there = set(results.values("alpha")) if results.outcomes else set()
    return [alpha for alpha in ALPHAS if alpha in there]


def _errors(results: Results) -> Table:
    rows: list[Row] = [
        {"targets": shown_alpha(alpha), "paper": published(KINDS[alpha]).value}
        | {key: results.sample(key, alpha=alpha) for key in ("padded_ece", "held_out_ece", "ece", "accuracy")}
        for alpha in _alphas(results)
    ]
    return Table.of(
        "calibration",
        "Calibration error over the strength of smoothing, without a temperature.",
        "targets | paper: ECE, replication | padded_ece: ECE with padding, validation set | "
        "held_out_ece: ECE, validation set | ece: ECE, test set | accuracy .1%: next tokens right, test set",
        rows,
        "Ours: mean ± standard deviation over seeds. The replication measures the validation set, with padding.",
    )


def _temperatures(results: Results) -> Table:
    keys = (
        "padded_temperature",
        "padded_scaled_ece",
        "temperature",
        "held_out_scaled_ece",
        "scaled_ece",
    )
    printed = {
        0.0: {
            "paper_t": published("wagner-2023/temperature/multi30k-transformer/hard").value,
            "paper": published(f"{_ECE}/scaled").value,
        }
    }
    rows: list[Row] = [
        {"targets": shown_alpha(alpha), "paper_t": None, "paper": None}
        | printed.get(alpha, {})
        | {key: results.sample(key, alpha=alpha) for key in keys}
        for alpha in _alphas(results)
    ]
    return Table.of(
        "temperatures",
        "The temperature with the least calibration error, and that error.",
        "targets | paper_t .1f: T, replication | paper: ECE, replication | padded_temperature .2f: T with padding | "
        "padded_scaled_ece: ECE with padding, validation set | temperature .2f: T | "
        "held_out_scaled_ece: ECE, validation set | scaled_ece: ECE, test set",
        rows,
        "Temperatures, in tenths, are chosen on the validation set, as in the replication.",
    )


def _padding(results: Results) -> Table:
    keys = ("padding", "padding_confidence", "padding_accuracy")
    rows: list[Row] = [
        {"targets": shown_alpha(alpha)} | {key: results.sample(key, alpha=alpha) for key in keys}
        for alpha in _alphas(results)
    ]
    return Table.of(
        "padding",
        "Places of the padding, in batches of 128 sentences of the validation set.",
        "targets | padding .1%: share of all places | padding_confidence .1%: mean confidence there | "
        "padding_accuracy .1%: counted as right",
        rows,
        "Mean ± standard deviation over seeds.",
    )


def _figure(results: Results, kind: str, told: str) -> list[Figure]:
    nll = kind or "held_out_"
    drawn = curves(
        results.where(alpha=0.0),
        [
            (f"{kind}bins", f"{nll}nll", "hard targets", RED),
            (f"{kind}scaled_bins", f"{nll}scaled_nll", "hard targets with a temperature", ORANGE),
        ],
    )
    for alpha, colour in ((0.1, GREEN), (SMOOTHED, BLUE)):
        drawn += curves(
            results.where(alpha=alpha), [(f"{kind}bins", f"{nll}nll", shown_alpha(alpha), colour)]
        )
    if not drawn:
        return []
    return [
        reliability_figure(
            f"reliability_{'with' if kind else 'without'}_padding",
            f"Does confidence mean what it says? Next tokens of Multi30k, {told}.",
            drawn,
            "Validation set, given correct prefixes.",
        )
    ]
