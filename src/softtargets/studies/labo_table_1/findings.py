"""What the study of table 1 says: BLEU beside the printed one, and what is claimed of every direction."""

from __future__ import annotations

from typing import Any

from softtargets.claims import Claim, Published, Region, Sample, above, judge, published, sources, zone
from softtargets.report import Figure, Section, Table, lines
from softtargets.studies.labo_translation.figures import Gains
from softtargets.studies.labo_translation.protocol import (
    HARD,
    LITERAL,
    LS,
    PAIRS,
    READINGS,
    SEEDS,
    SMALL_BLEU,
    trials_of,
)
from softtargets.studies.labo_translation.telling import (
    CORPORA,
    NAMES,
    SAID,
    claimed_size,
    pair_name,
    paper_name,
    printed_bleu,
    printed_for,
    printed_key,
    what_differs,
)
from softtargets.studies.results import Results, Row
from softtargets.studies.sizes import by_protocol, size_of
from softtargets.studies.study import Findings, Settings, Trial
from softtargets.studies.translation.protocols import WARM_UP, methods
from softtargets.studies.words import answered

METHODS = tuple(methods())
# What must improve on hard targets; FL must not.
HELPFUL, HARMFUL = (LS, "cp", "afl", LITERAL), "fl"
# Sizes whose corpus is the paper's, so that numbers can be compared.
PAPERS_TEXT = ("iwslt", "wmt")


def trials(settings: Settings) -> list[Trial]:
    """Every method in every direction of the size, for each seed."""
    return trials_of(settings, METHODS, PAIRS[settings.size])


def findings(results: Results) -> Findings:
    """Tables, figure and claims."""
    made = claims(results)
    return Findings(_sections(results), made, _answer(made))


def _answer(made: tuple[Claim, ...]) -> str:
    """Does LABO translate better than label smoothing?"""
    judged = judge(made)
    literal, *others = judged[len(HELPFUL) + 1 :][: len(READINGS)]
    first = answered(
        literal.verdict,
        "Yes: LABO as printed translates better than label smoothing in every direction.",
        "No: in some direction LABO as printed translates worse than label smoothing.",
        nothing="No: LABO as printed is as good as label smoothing.",
        whether="LABO as printed translates better than label smoothing in every direction",
    )
    better = [
        SAID[name] for name, one in zip(READINGS[1:], others, strict=True) if one.verdict == "reproduced"
    ]
    return first + (f" Other readings that do: {', '.join(better)}." if better else "")


def _sections(results: Results) -> tuple[Section, ...]:
    size = size_of(results)
    pairs = PAIRS[size]
    return (
        Section.of(
            "BLEU of each method",
            "Each method trains the same Transformer on the same sentences with the same seeds.",
            "The printed BLEU is that of IWSLT'14 in the same direction. Tatoeba has shorter sentences, so compare "
            "differences between methods, not the numbers."
            if size == "full"
            else "",
            *(_table(results, size, pair) for pair in pairs),
            _figure(results, size, pairs),
        ),
        Section.of("What differs from the paper", *what_differs(size)),
    )


def _table(results: Results, size: str, pair: str) -> Table:
    hard = {"pair": pair, "method": HARD}
    rows: list[Row] = []
    for method in METHODS:
        labels = {"pair": pair, "method": method}
        own = {
            key: results.sample(key, **labels)
            for key in ("bleu", "chrf", "bleu_uncased", "nll", "ece", "bleu_news", "best_step")
        }
        rows.append(
            {
                "method": NAMES[method],
                "printed": printed_bleu(size, pair, method),
                "gain": results.gain("bleu", [(labels, hard)]) if method != HARD else None,
                **own,
            }
        )
    paper = "" if size == "small" else "printed .1f: BLEU, paper | "
    news = "bleu_news .2f: BLEU, news of 2014 | " if any(row["bleu_news"].n for row in rows) else ""
    step = " | best_step .0f: step of the checkpoint" if any(row["best_step"].n for row in rows) else ""
    return Table.of(
        f"bleu_{pair}",
        f"{CORPORA[size]}, {pair_name(pair)}, test set.",
        f"method | {paper}bleu .2f: BLEU, ours | gain .2f: gain over hard targets | {news}chrf .2f: chrF | "
        f"ece .3f: ECE of tokens | nll .3f: NLL of a token | bleu_uncased .2f: BLEU, uncased{step}",
        rows,
        "Ours: mean ± standard deviation over seeds, beam 5. NLL and ECE are of the next token after a correct prefix."
        + (
            " News of 2014 (newstest2014) are text of another kind than the models were trained on."
            if news
            else ""
        )
        + (f" LABO's warm-up ends at step {WARM_UP[size]:,}." if step else ""),
    )


def _figure(results: Results, size: str, pairs: tuple[str, ...]) -> Figure:
    shown = [
        Gains(
            f"{CORPORA[size]}, {pair_name(pair)}",
            "bleu",
            {"pair": pair},
            HARD,
            METHODS[1:],
            {method: printed_bleu(size, pair, method) for method in METHODS},
        )
        for pair in pairs
    ]
    paper = " Squares are what the paper printed for IWSLT'14." if size == "full" else ""
    if size in PAPERS_TEXT:
        paper = " Squares are what the paper printed."
    return lines(
        "gains",
        "BLEU gained over hard targets.",
        [one.panel(results) for one in shown],
        [row for one in shown for row in one.rows(results)],
        "Circles are means over seeds, bars one standard deviation, small dots single seeds."
        f"{paper} Above 0 a method translates better than hard targets with the same seed. “Fix” and “rev” are "
        "LABO with alpha fixed at 0.1 and with alpha reversed.",
        "BLEU that each method gains over hard targets, in each direction.",
    )


def claims(results: Results) -> tuple[Claim, ...]:
    """Of every direction: what improves on hard targets, what does not, and LABO against label smoothing."""
    size = claimed_size(results)
    followed, pairs = by_protocol(results, trials), PAIRS[size]
    text = CORPORA[size]
    better = [
        _every(
            followed,
            f"{SAID[method]} translates better than hard targets in every direction of {text}.",
            (method, HARD),
            Region(low=0),
            size,
            _cited(size, "regularisers", *((method, HARD) if method == LS else (method,))),
            _reading_remark(method),
        )
        for method in HELPFUL
    ]
    worse = _every(
        followed,
        f"FL translates worse than hard targets in every direction of {text}.",
        (HARMFUL, HARD),
        Region(high=0),
        size,
        _cited(size, "regularisers", HARMFUL),
    )
    labo = [
        _every(
            followed,
            f"{SAID[method]} translates better than LS in every direction of {text}.",
            (method, LS),
            Region(low=0),
            size,
            _cited(size, "labo", *((method,) if method == LITERAL else ())),
            _reading_remark(method),
        )
        for method in READINGS
    ]
    numbers = [_gain(followed, size, pair) for pair in pairs] if size in PAPERS_TEXT else []
    return (*better, worse, *labo, *numbers)


def _reading_remark(method: str) -> str:
    return "The paper does not say which reading it trained." if method in READINGS else ""


def _cited(size: str, said: str, *methods: str) -> tuple[Published, ...]:
    """What the paper says of it, and what it printed for these methods; each number stands beside one claim."""
    names = [paper_name(method) for method in methods]
    return (*sources(f"lu-2023/text/{said}"), *(printed_for(size, PAIRS[size], *names) if names else ()))


def _every(
    results: Results,
    statement: str,
    pair_of: tuple[str, str],
    region: Region,
    size: str,
    cited: tuple[Published, ...],
    remark: str = "",
) -> Claim:
    this, that = pair_of
    pairs = PAIRS[size]

    def gained(pair: str) -> Sample:
        return results.gain("bleu", [({"pair": pair, "method": this}, {"pair": pair, "method": that})])

    fixed: dict[str, Any] = {"digits": 2, "seeds": SEEDS, "zone": zone(SMALL_BLEU)}
    first = {"pair": pairs[0]}
    return Claim.every(
        statement,
        cited,
        f"BLEU of {SAID[this]} minus BLEU of {SAID[that]}",
        {pair_name(pair): gained(pair) for pair in pairs},
        region,
        f"{results.then('bleu', '.1f', {**first, 'method': that}, {**first, 'method': this})} ({pair_name(pairs[0])})",
        remark,
        **fixed,
    )


def _gain(results: Results, size: str, pair: str) -> Claim:
    """The printed gain of LABO over LS, within two standard deviations of the difference of two printed numbers."""
    key = printed_key(size, pair)
    labo, smoothed = (published(f"{key}/{name}") for name in ("labo", "ls"))
    spreads = [float(one.printed.partition("±")[2]) for one in (labo, smoothed)]
    margin = round(2 * sum(spread**2 for spread in spreads) ** 0.5, 2)
    this, that = ({"pair": pair, "method": method} for method in (LITERAL, LS))
    return Claim(
        f"LABO as printed gains over LS what the paper prints, {pair_name(pair)}.",
        printed_for(size, (pair,), "ls", "labo"),
        "BLEU of LABO as printed minus BLEU of LS",
        *above(0, results.gain("bleu", [(this, that)])),
        results.then("bleu", ".1f", that, this),
        "The margin is two standard deviations of the difference of the printed numbers.",
        digits=2,
        seeds=SEEDS,
        zone=zone(SMALL_BLEU),
        printed=round((labo.value or 0.0) - (smoothed.value or 0.0), 2),
        margin=margin,
    )
