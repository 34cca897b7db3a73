"""Figure 2 of Lu et al. 2023: how likely are the tokens that beam search chooses?"""

from __future__ import annotations

from typing import Any

from softtargets.claims import Claim, Region, Sample, below, judge, sources, zone
from softtargets.report import Curve, Figure, Panel, Section, Table, lines
from softtargets.studies.labo_translation.measures import THIRDS, ChosenTokens
from softtargets.studies.labo_translation.protocol import (
    BASES,
    FIXED,
    HARD,
    LITERAL,
    LS,
    READINGS,
    REVERSED,
    SEEDS,
    cell,
    trials_of,
)
from softtargets.studies.labo_translation.telling import CORPORA, LOOKS, NAMES, claimed_size, what_differs
from softtargets.studies.results import Results, Row, mean
from softtargets.studies.sizes import by_protocol, size_of
from softtargets.studies.study import LU, Findings, Settings, Study, Trial
from softtargets.studies.translation.protocols import AXES, KEEP, SMOOTHING, TAU
from softtargets.studies.translation.protocols import READINGS as OPTIONS
from softtargets.studies.words import answered
from softtargets.theory import labo_rests

METHODS = (HARD, LS, *READINGS)
SIZES = ("small", "full", "iwslt")
PARTS = {"all": "Whole test set", "most": "Most frequent", "medium": "Medium", "least": "Least frequent"}
FIGURE = "lu-2023/probabilities/iwslt14-de-en"
# “On 0.9”, “around 0.4”, and elsewhere than there.
ON_09, AROUND_04, HIGH = Region(0.8, 0.95), Region(0.3, 0.5), 0.8
# How near to the theory the peak must lie, and a difference of spreads too small to count.
NEAR, SMALL_SPREAD = 0.1, 0.01
# Where label smoothing peaks was judged with so many seeds before three came to decide about LABO, and stays so.
SMOOTHED_SEEDS = 5


def trials(settings: Settings) -> list[Trial]:
    """German to English with hard targets, label smoothing and LABO; these are runs of table 1."""
    return trials_of(settings, METHODS)


def predicted(method: str, vocabulary: int) -> float:
    """The probability of the label at which training rests, if all other tokens are alike; 1 where there is no rest.

    >>> round(predicted("labo-literal", 8000), 2), predicted("labo-reversed", 8000), round(predicted("ls", 8000), 2)
    (0.41, 1.0, 0.9)
    """
    if method == LS:
        return 1 - SMOOTHING + SMOOTHING / vocabulary
    if method == HARD:
        return 1.0
    rests = labo_rests(vocabulary, TAU, **OPTIONS[method.removeprefix("labo-")])
    return rests[0].p if rests else 1.0


def _vocabulary(size: str) -> int:
    data: Any = BASES[size].data
    return 1000 if size == "small" else int(data.vocabulary)


def findings(results: Results) -> Findings:
    """Figure, table and claims."""
    made = claims(results)
    return Findings(_sections(results), made, _answer(made))


def _answer(made: tuple[Claim, ...]) -> str:
    """Do LABO's probabilities concentrate around 0.4?"""
    judged = judge(made)
    first = answered(
        judged[1].verdict,
        "Yes: with LABO as printed the probabilities of chosen tokens concentrate around 0.4.",
        "No: with LABO as printed the probabilities of chosen tokens concentrate elsewhere.",
        whether="probabilities concentrate around 0.4 with LABO as printed",
    )
    other = judged[4].verdict
    return first + (" With the other readings of alpha they do not." if other == "reproduced" else "")


def _sections(results: Results) -> tuple[Section, ...]:
    size = size_of(results)
    tokens = _vocabulary(size)
    return (
        Section.of(
            "Probabilities of the chosen tokens",
            "Beam search with beam 5 translates the test set. Of every token of the best translation we take the "
            "probability that the model gave it, the end of the sentence included.",
            "Theory says where training rests if the next token is certain and all others are alike "
            f"(labo_rests in softtargets.theory). With {tokens:,} tokens LABO as printed rests at "
            f"{predicted(LITERAL, tokens):.2f}, with alpha fixed at 0.1 at {predicted(FIXED, tokens):.2f}, and label "
            f"smoothing at {predicted(LS, tokens):.2f}. With the reversed reading there is no rest below 1.",
            _figure(results, size),
            _table(results, size),
        ),
        Section.of(
            "What differs from the paper",
            "The paper does not say on which held-out set its figure was made: the test set here. Thirds are by the "
            "frequency of source tokens, as in the study of table 4.",
            *what_differs(size),
        ),
    )


def _figure(results: Results, size: str) -> Figure | str:
    rows: list[Row] = []
    panels = []
    for part, title in PARTS.items():
        curves = []
        for method in METHODS:
            kept = [
                outcome.details["chosen"][part]
                for outcome in results.where(**cell(method)).outcomes
                if "chosen" in outcome.details
            ]
            if not kept:
                continue
            shares = [mean(column) for column in zip(*kept, strict=True)]
            middles = [(place + 0.5) / len(shares) for place in range(len(shares))]
            colour, line = LOOKS[method]
            curves.append(Curve(NAMES[method], colour, middles, [100 * share for share in shares], line=line))
            rows += [
                {"part": part, "method": method, "p": p, "share": share}
                for p, share in zip(middles, shares, strict=True)
            ]
        if curves:
            top = max(value or 0.0 for curve in curves for value in curve.y)
            rest = predicted(LITERAL, _vocabulary(size))
            colour, _ = LOOKS[LITERAL]
            curves.append(Curve("theory, LABO as printed", colour, [rest, rest], [0.0, top], line="dotted"))
            panels.append(
                Panel(title, "probability of the chosen token", "tokens, %", curves, xlimits=(0, 1), digits=1)
            )
    if not panels:
        return "Probabilities of the chosen tokens: not run yet."
    return lines(
        "chosen_tokens",
        "How likely models find the tokens that beam search chooses.",
        panels,
        rows,
        "The share of chosen tokens in each of 20 equal parts of the probabilities, on average over seeds. Look for "
        "where each method has its peak. The paper has it at 0.9 for label smoothing and around 0.4 for LABO.",
        "Distributions of the probabilities of chosen tokens, by method, on the test set and its thirds.",
    )


def _table(results: Results, size: str) -> Table:
    rows = [
        {
            "name": NAMES[method],
            "paper": {LS: "0.9", LITERAL: "around 0.4"}.get(method, "–"),
            "theory": predicted(method, _vocabulary(size)),
            **{
                key: results.sample(key, **cell(method))
                for key in (*(f"peak_{part}" for part in PARTS), "mean_all", "spread_all")
            },
        }
        for method in METHODS
    ]
    return Table.of(
        "peaks",
        f"Where the probabilities of chosen tokens concentrate, {CORPORA[size]}, German to English, test set.",
        "name: trained with | paper: peak, paper | theory .2f: peak, theory | peak_all .3f: peak, ours | peak_most "
        ".3f: peak, most frequent | peak_medium .3f: peak, medium | peak_least .3f: peak, least frequent | "
        "mean_all .2f: average | spread_all .2f: standard deviation",
        rows,
        "A peak is where the density of probabilities is highest, smoothed by a normal distribution of standard "
        "deviation 0.02, on the test set and on its thirds by the frequency of source tokens. Mean ± standard "
        "deviation over seeds.",
    )


def claims(results: Results) -> tuple[Claim, ...]:
    """Where label smoothing and LABO concentrate, by the paper and by theory, and whether LABO evens tokens out."""
    size = claimed_size(results)
    followed = by_protocol(results, trials)
    where = f"German to English, {CORPORA[size]}, test set"
    fixed: dict[str, Any] = {"digits": 2, "seeds": SEEDS}
    rest = predicted(LITERAL, _vocabulary(size))

    def peaks(method: str) -> dict[str, Sample]:
        return {
            f"{PARTS[third].lower()} tokens": followed.sample(f"peak_{third}", **cell(method))
            for third in THIRDS
        }

    def shown(*methods: str) -> str:
        found = [followed.shown("peak_all", ".2f", cell(method)) for method in methods]
        return ", ".join(found)

    peak = f"where the smoothed density of probabilities is highest, on each third: {where}"
    return (
        Claim.every(
            "With LS the probabilities of chosen tokens concentrate on 0.9, on every third.",
            sources(f"{FIGURE}/ls"),
            peak,
            peaks(LS),
            ON_09,
            shown(LS),
            "“On 0.9” is a peak between 0.80 and 0.95.",
            **fixed | {"seeds": SMOOTHED_SEEDS},
        ),
        Claim.every(
            "With LABO as printed they concentrate around 0.4, on every third.",
            sources(f"{FIGURE}/labo"),
            peak,
            peaks(LITERAL),
            AROUND_04,
            shown(LITERAL),
            "“Around 0.4” is 0.3 to 0.5.",
            **fixed,
        ),
        Claim(
            "LABO as printed makes the probabilities of different tokens more alike than LS does.",
            sources("lu-2023/text/discrepancy"),
            f"standard deviation of the probabilities with LABO minus that with LS: {where}",
            *below(0, followed.gain("spread_all", [(cell(LITERAL), cell(LS))])),
            followed.then("spread_all", ".2f", cell(LS), cell(LITERAL)),
            "A smaller standard deviation is a smaller discrepancy.",
            zone=zone(SMALL_SPREAD),
            **fixed,
        ),
        Claim(
            f"LABO as printed peaks where theory says that training rests, at {rest:.2f}.",
            (),
            f"where the smoothed density of probabilities is highest: {where}",
            followed.sample("peak_all", **cell(LITERAL)),
            Region(round(rest - NEAR, 2), round(rest + NEAR, 2)),
            shown(LITERAL),
            "Our own statement. Theory takes the next token as certain and all others as alike, which they are not.",
            **fixed,
        ),
        Claim.every(
            "With alpha fixed at 0.1 and with the reversed reading the peak is near 1 instead, as theory says.",
            (),
            f"where the smoothed density of probabilities is highest: {where}",
            {NAMES[method]: followed.sample("peak_all", **cell(method)) for method in (FIXED, REVERSED)},
            Region(low=HIGH),
            shown(FIXED, REVERSED),
            "Our own statement: it lets figure 2 tell which reading was trained.",
            **fixed,
        ),
    )


study = Study(
    name="labo-figure-2",
    title="Do chosen tokens have probabilities around 0.4 with LABO?",
    lead=(
        "Figure 2 of Lu et al. (2023) shows how likely a model finds the tokens that beam search chooses. With label "
        "smoothing these probabilities concentrate on 0.9, with LABO around 0.4. That number tells how the paper's "
        "equation 16 was read, since theory says where training rests with each reading."
    ),
    papers=(LU,),
    trials=trials,
    keep=KEEP,
    again=ChosenTokens,
    findings=findings,
    claims=claims,
    seeds=SMOOTHED_SEEDS,
    axes=AXES,
    sizes=SIZES,
)
