"""Table 4 of Lu et al. 2023: does LABO help with rare tokens?"""

from __future__ import annotations

from typing import Any

from softtargets.claims import Claim, Published, Region, Sample, above, judge, published, sources, zone
from softtargets.report import Curve, Figure, Panel, Section, Table, lines
from softtargets.report.drawing import GREY, ORANGE
from softtargets.studies.labo_translation.measures import THIRDS, ByFrequency
from softtargets.studies.labo_translation.protocol import (
    LITERAL,
    LS,
    READINGS,
    SEEDS,
    SMALL_BLEU,
    cell,
    trials_of,
)
from softtargets.studies.labo_translation.telling import (
    CORPORA,
    LOOKS,
    NAMES,
    SAID,
    claimed_size,
    what_differs,
)
from softtargets.studies.results import Results, Row
from softtargets.studies.sizes import by_protocol, size_of
from softtargets.studies.study import LU, Findings, Settings, Study, Trial
from softtargets.studies.translation.protocols import AXES, KEEP
from softtargets.studies.words import answered

METHODS = (LS, *READINGS)
SPLITS = ("validation", "test")
SIZES = ("small", "full", "iwslt")
# “At least the same magnitude” is a gain that is no more than so much smaller.
SAME = 0.2
# How near a printed gain ours must come: table 4 prints no deviations, and those of table 1 leave so much open.
MARGIN = 0.3
# Order of the claims.
EVERY_SPLIT, RARE_TOO = 1, 4


def trials(settings: Settings) -> list[Trial]:
    """German to English with label smoothing and LABO; these are runs of table 1."""
    return trials_of(settings, METHODS)


def findings(results: Results) -> Findings:
    """Tables, figure and claims."""
    made = claims(results)
    return Findings(_sections(results), made, _answer(made))


def _answer(made: tuple[Claim, ...]) -> str:
    """Does LABO help with rare tokens?"""
    judged = judge(made)
    first = answered(
        judged[EVERY_SPLIT].verdict,
        "LABO as printed translates better than label smoothing for frequent and for rare tokens.",
        "LABO as printed does not translate better than label smoothing on every third.",
        nothing="LABO as printed is as good as label smoothing for frequent and for rare tokens.",
        whether="LABO as printed translates better than label smoothing on every third",
    )
    rare = judged[RARE_TOO].verdict
    second = {
        "reproduced": " It gains with rare tokens at least what it gains with frequent ones.",
        "contradicted": " It gains less with rare tokens than with frequent ones.",
    }
    return first + second.get(rare, "")


def _sections(results: Results) -> tuple[Section, ...]:
    size = size_of(results)
    return (
        Section.of(
            "BLEU by frequency",
            "The frequency score of a sentence is the average number of times that its source tokens occur in the "
            "training set (equation 18 of the paper, after Raunak et al. 2020). Each held-out set is cut into "
            "thirds by it: the most frequent tokens, the medium ones, the least frequent ones.",
            "The printed BLEU is that of IWSLT'14. Tatoeba has other sentences, so compare differences, not numbers."
            if size == "full"
            else "",
            *(_table(results, size, split) for split in SPLITS),
            _figure(results, size),
        ),
        Section.of(
            "What differs from the paper",
            "The paper takes thirds of 2,400 sentences each. Its test set has 6,750, so that they cannot be disjoint "
            "there (appendix D). Here every sentence is in one third.",
            *what_differs(size),
        ),
    )


def _key(split: str, third: str) -> str:
    return f"bleu_{split}_{third}"


def _gained(results: Results, split: str, third: str, method: str) -> Sample:
    return results.gain(_key(split, third), [(cell(method), cell(LS))])


def _printed(split: str, third: str, method: str) -> float:
    return published(f"lu-2023/bleu/iwslt14-de-en-{split}-{third}/{method}").value or 0.0


def _table(results: Results, size: str, split: str) -> Table:
    rows: list[Row] = []
    if size != "small":
        for name, shown in (("ls", "LS, paper"), ("labo", "LABO, paper")):
            row: Row = {"method": shown}
            for third in THIRDS:
                row[third] = _printed(split, third, name)
                row[f"gain_{third}"] = (
                    round(row[third] - _printed(split, third, "ls"), 2) if name == "labo" else None
                )
            rows.append(row)
    for method in METHODS:
        row = {"method": NAMES[method]}
        for third in THIRDS:
            row[third] = results.sample(_key(split, third), **cell(method))
            row[f"gain_{third}"] = _gained(results, split, third, method) if method != LS else None
        rows.append(row)
    columns = [f"{third} .1f: {third} | gain_{third} .2f: {third}, gain over LS" for third in THIRDS]
    return Table.of(
        f"thirds_{split}",
        f"BLEU on thirds of the {split} set, German to English, {CORPORA[size]}.",
        " | ".join(["method", *columns]),
        rows,
        "Thirds by how frequent the source tokens are. Ours: mean ± standard deviation over seeds, beam 5.",
    )


def _figure(results: Results, size: str) -> Figure:
    rows: list[Row] = []
    panels = []
    for split in SPLITS:
        curves = [Curve.level("LS", GREY, 0.0, (-0.4, 2.4))]
        for place, method in enumerate(READINGS):
            samples = [_gained(results, split, third, method) for third in THIRDS]
            colour, _ = LOOKS[method]
            at = [third + 0.12 * (place - 1) for third in range(len(THIRDS))]
            curves.append(Curve.of(NAMES[method], colour, at, samples, line="none"))
            rows += [
                {"split": split, "third": third, "method": method, "gain": sample}
                for third, sample in zip(THIRDS, samples, strict=True)
            ]
        if size != "small":
            printed = [
                round(_printed(split, third, "labo") - _printed(split, third, "ls"), 2) for third in THIRDS
            ]
            at = [third + 0.24 for third in range(len(THIRDS))]
            curves.append(Curve("paper", ORANGE, at, printed, line="none", marker="square"))
            rows += [
                {"split": split, "third": third, "method": "paper", "gain": gain}
                for third, gain in zip(THIRDS, printed, strict=True)
            ]
        ticks = list(enumerate(THIRDS))
        panels.append(
            Panel(
                f"{split.capitalize()} set", "frequency of source tokens", "BLEU gained over LS", curves, ticks,
                xlimits=(-0.4, 2.4), digits=2,
            )
        )  # fmt: skip
    return lines(
        "gains",
        "BLEU that LABO gains over label smoothing, by how frequent tokens are.",
        panels,
        rows,
        "Circles are means over seeds, bars one standard deviation, small dots single seeds."
        + ("" if size == "small" else " Squares are what the paper printed for IWSLT'14."),
        "BLEU that three readings of LABO gain over label smoothing on thirds of both held-out sets.",
    )


def claims(results: Results) -> tuple[Claim, ...]:
    """Frequent sentences are easier; LABO gains on every third; it gains on rare ones as much as on frequent ones."""
    size = claimed_size(results)
    followed = by_protocol(results, trials)
    numbers = (
        [_number(followed, split, third) for split in SPLITS for third in THIRDS] if size == "iwslt" else []
    )
    return (
        _easier(followed, size),
        *(_everywhere(followed, size, method) for method in READINGS),
        _rare_too(followed, size),
        *numbers,
    )


_FIXED: dict[str, Any] = {"digits": 2, "seeds": SEEDS}


def _cited(said: str, *methods: str) -> tuple[Published, ...]:
    """What the paper says of it, and what it printed for these methods; each number stands beside one claim."""
    keys = [
        f"iwslt14-de-en-{split}-{third}/{name}" for split in SPLITS for third in THIRDS for name in methods
    ]
    return (*sources(f"lu-2023/text/{said}"), *(published(f"lu-2023/bleu/{key}") for key in keys))


def _easier(results: Results, size: str) -> Claim:
    def apart(method: str, split: str, third: str) -> Sample:
        own = cell(method)
        return results.contrast(((_key(split, "most"), own), (_key(split, third), own)))

    cells = {
        f"{SAID[method]}, {split}, {third}": apart(method, split, third)
        for method in (LS, LITERAL)
        for split in SPLITS
        for third in THIRDS[1:]
    }
    return Claim.every(
        "All models do better on sentences with the most frequent tokens than on the others.",
        _cited("frequent", "ls"),
        f"BLEU on the third with the most frequent tokens minus BLEU on another, {CORPORA[size]}",
        cells,
        Region(low=0),
        results.shown(_key("test", "most"), ".1f", cell(LS))
        + " on the most frequent third of the test set with LS",
        "LS and LABO as printed, as in the paper's table.",
        **_FIXED,
    )


def _everywhere(results: Results, size: str, method: str) -> Claim:
    return Claim.every(
        f"{SAID[method]} translates better than LS on every third of both sets.",
        _cited("every-third", *(("labo",) if method == LITERAL else ())),
        f"BLEU of {SAID[method]} minus BLEU of LS, German to English, {CORPORA[size]}",
        {f"{split}, {third}": _gained(results, split, third, method) for split in SPLITS for third in THIRDS},
        Region(low=0),
        results.then(_key("test", "least"), ".1f", cell(LS), cell(method)) + " (least frequent third, test)",
        "The paper does not say which reading it trained.",
        zone=zone(SMALL_BLEU),
        **_FIXED,
    )


def _rare_too(results: Results, size: str) -> Claim:
    labo, smoothed = cell(LITERAL), cell(LS)

    def more(split: str, third: str) -> Sample:
        rare, frequent = _key(split, third), _key(split, "most")
        # Contrasts are means, so that of two is doubled to be their sum.
        return results.contrast(
            ((rare, labo), (rare, smoothed)), ((frequent, smoothed), (frequent, labo)), scale=2
        )

    return Claim.every(
        "LABO as printed gains with medium and rare tokens at least what it gains with the most frequent ones.",
        _cited("rare"),
        f"gain over LS on a third minus gain on the most frequent third, {CORPORA[size]}",
        {f"{split}, {third}": more(split, third) for split in SPLITS for third in THIRDS[1:]},
        Region(low=-SAME),
        "",
        f"“At least” leaves {SAME:g} BLEU open.",
        **_FIXED,
    )


def _number(results: Results, split: str, third: str) -> Claim:
    key = f"lu-2023/bleu/iwslt14-de-en-{split}-{third}"
    return Claim(
        f"LABO as printed gains over LS what the paper prints, {split} set, {third} frequent tokens.",
        sources(key, "ls", "labo"),
        "BLEU of LABO as printed minus BLEU of LS",
        *above(0, _gained(results, split, third, LITERAL)),
        results.then(_key(split, third), ".1f", cell(LS), cell(LITERAL)),
        "The table prints no deviation. The margin is what those of table 1 leave open of a difference.",
        zone=zone(SMALL_BLEU),
        printed=round(_printed(split, third, "labo") - _printed(split, third, "ls"), 2),
        margin=MARGIN,
        **_FIXED,
    )


study = Study(
    name="labo-table-4",
    title="Does LABO help with rare tokens?",
    lead=(
        "Table 4 of Lu et al. (2023) cuts held-out sentences into thirds by how frequent their tokens are. LABO "
        "translates better than label smoothing on every third, and gains as much where tokens are rare."
    ),
    papers=(LU,),
    trials=trials,
    keep=KEEP,
    again=ByFrequency,
    findings=findings,
    claims=claims,
    seeds=SEEDS,
    axes=AXES,
    sizes=SIZES,
)
