"""Is smoothing towards frequent tokens better than smoothing uniformly? Beyond the papers."""

from __future__ import annotations

from typing import Any

from softtargets.claims import Claim, Region, above, below, judge, zone
from softtargets.report import Curve, Figure, Panel, Section, Table, lines
from softtargets.studies.labo_translation.measures import THIRDS, ByReference
from softtargets.studies.labo_translation.protocol import HARD, LS, SEEDS, SMALL_BLEU, cell, trials_of
from softtargets.studies.labo_translation.telling import LOOKS, how_trained
from softtargets.studies.results import Results, Row
from softtargets.studies.sizes import by_protocol, size_of
from softtargets.studies.study import LU, MULLER, Findings, Settings, Study, Trial
from softtargets.studies.translation.protocols import AXES, KEEP, SIZES
from softtargets.studies.words import answered

UNIGRAM = "unigram"
METHODS = (HARD, LS, UNIGRAM)
SHOWN = {HARD: "hard targets", LS: "uniform smoothing", UNIGRAM: "unigram smoothing"}
PARTS = ("", *(f"_{third}" for third in THIRDS))
PART_NAMES = {"": "all", "_most": "most", "_medium": "medium", "_least": "least"}
MEASURES = {"bleu": "BLEU", "nll": "NLL of a token, nats", "ece": "ECE of tokens"}
# Too small to count: of likelihood in nats, and of calibration.
SMALL_NLL, SMALL_ECE = 0.01, 0.005


def trials(settings: Settings) -> list[Trial]:
    """German to English with hard targets and two kinds of smoothing; two of them are runs of table 1."""
    return trials_of(settings, METHODS)


def findings(results: Results) -> Findings:
    """Figure, table and claims."""
    made = claims(results)
    return Findings(_sections(results), made, _answer(made))


def _answer(made: tuple[Claim, ...]) -> str:
    """Is unigram smoothing better?"""
    bleu, nll, *_ = (one.verdict for one in judge(made))
    first = answered(
        bleu,
        "Yes: smoothing towards frequent tokens translates better than uniform smoothing.",
        "No: smoothing towards frequent tokens translates worse than uniform smoothing.",
        nothing="No: for BLEU it makes no difference where the mass goes.",
        whether="smoothing towards frequent tokens translates better than uniform smoothing",
    )
    second = {
        "reproduced": " References are more likely under it.",
        "contradicted": " References are less likely under it.",
        "no effect": " References are as likely under it.",
    }
    return first + second.get(nll, "")


def _sections(results: Results) -> tuple[Section, ...]:
    size = size_of(results)
    return (
        Section.of(
            "Where the mass goes",
            "Label smoothing moves a tenth of each target to other tokens. Uniform smoothing gives every token of the "
            "vocabulary the same share, most of them rare. Unigram smoothing gives each token as much as it occurs in "
            "the training set (Pereyra et al. 2017), so that the model is pulled towards frequent tokens.",
            "Thirds of the test set are by the average frequency of the tokens of the reference, which is what the "
            "model is to write.",
            _figure(results),
            _table(results),
        ),
        Section.of("How it was trained", *how_trained(size)),
    )


def _table(results: Results) -> Table:
    rows: list[Row] = [
        {
            "method": SHOWN[method],
            "part": PART_NAMES[part],
            **{key: results.sample(f"{key}{part}", **cell(method)) for key in MEASURES},
        }
        for part in PARTS
        for method in METHODS
    ]
    return Table.of(
        "thirds",
        "Quality, likelihood and calibration by frequency, Tatoeba, German to English, test set.",
        "part: third | method: trained with | bleu .2f: BLEU | nll .3f: NLL of a token | ece .3f: ECE of tokens",
        rows,
        "Mean ± standard deviation over seeds.",
    )


def _figure(results: Results) -> Figure:
    rows: list[Row] = []
    panels = []
    for key, axis in MEASURES.items():
        curves = []
        for place, method in enumerate(METHODS):
            samples = [results.sample(f"{key}{part}", **cell(method)) for part in PARTS]
            at = [part + 0.1 * (place - 1) for part in range(len(PARTS))]
            curves.append(Curve.of(SHOWN[method], LOOKS[method][0], at, samples, line="none"))
            rows += [
                {"measure": key, "part": PART_NAMES[part], "method": method, "value": sample}
                for part, sample in zip(PARTS, samples, strict=True)
            ]
        ticks = [(place, PART_NAMES[part]) for place, part in enumerate(PARTS)]
        panels.append(
            Panel(axis.partition(",")[0], "frequency of reference tokens", axis, curves, ticks, digits=3)
        )
    return lines(
        "thirds_drawn",
        "The two kinds of smoothing by how frequent tokens are.",
        panels,
        rows,
        "Circles are means over seeds, bars one standard deviation, small dots single seeds. More BLEU is better, less "
        "NLL and ECE.",
        "BLEU, NLL and ECE of hard targets, uniform and unigram smoothing, on the test set and its thirds.",
    )


def claims(results: Results) -> tuple[Claim, ...]:
    """Unigram against uniform smoothing; none is a paper's."""
    followed = by_protocol(results, trials)
    own, other = cell(UNIGRAM), cell(LS)
    pair = [(own, other)]
    fixed: dict[str, Any] = {"seeds": SEEDS}
    than = "with unigram smoothing minus that with uniform smoothing"
    return (
        Claim(
            "Unigram smoothing translates better than uniform smoothing.",
            (),
            f"BLEU {than}",
            *above(0, followed.gain("bleu", pair)),
            followed.then("bleu", ".2f", other, own),
            "No paper here states this.",
            digits=2,
            zone=zone(SMALL_BLEU),
            **fixed,
        ),
        Claim(
            "References are more likely with unigram than with uniform smoothing.",
            (),
            f"NLL of a token {than}",
            *below(0, followed.gain("nll", pair)),
            followed.then("nll", ".3f", other, own),
            "No paper here states this.",
            zone=zone(SMALL_NLL),
            **fixed,
        ),
        Claim(
            "Compared with uniform smoothing, unigram smoothing does worse with rare tokens than with frequent ones.",
            (),
            "NLL of a token, unigram minus uniform smoothing: on the third with the least frequent reference tokens "
            "less that on the third with the most frequent ones",
            *above(
                0,
                followed.contrast(
                    (("nll_least", own), ("nll_least", other)),
                    (("nll_most", other), ("nll_most", own)),
                    scale=2,
                ),
            ),
            f"{followed.then('nll_least', '.3f', other, own)} on the least frequent third",
            "No paper here states this.",
            zone=zone(SMALL_NLL),
            **fixed,
        ),
        Claim(
            "Next tokens are as well calibrated with unigram as with uniform smoothing.",
            (),
            f"ECE of tokens {than}",
            followed.gain("ece", pair),
            Region(-SMALL_ECE, SMALL_ECE),
            followed.then("ece", ".3f", other, own),
            f"“As well” is a difference of less than {SMALL_ECE:g}. No paper here states this.",
            **fixed,
        ),
    )


study = Study(
    name="beyond-unigram",
    title="Is smoothing towards frequent tokens better than smoothing uniformly?",
    lead=(
        "Label smoothing spreads a share of each target over all tokens alike, in Müller et al. (2019) and in Lu et "
        "al. (2023). In a vocabulary most tokens are rare, so most of that share goes to tokens that are rarely right. "
        "Here each token gets of it as much as the token occurs in the training set."
    ),
    papers=(MULLER, LU),
    trials=trials,
    keep=KEEP,
    again=ByReference,
    findings=findings,
    claims=claims,
    seeds=SEEDS,
    axes=AXES,
    sizes=SIZES,
)
