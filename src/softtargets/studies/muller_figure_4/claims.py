"""What section 3 of the paper says of BLEU, calibration and likelihood over temperatures."""

from __future__ import annotations

import math
from collections.abc import Mapping

from softtargets.claims import Claim, Region, Sample, above, below, sources, zone
from softtargets.studies.results import Results
from softtargets.studies.translation.corpora import ALPHAS, SEEDS, Corpus, by_protocol, claimed, shown_alpha
from softtargets.studies.translation.curves import TEMPERATURES, at

# Differences too small to count: of BLEU, of ECE, and of NLL in nats per token.
SAME_BLEU, SAME_ECE, SAME_NLL = 0.1, 0.003, 0.005
FULL = TEMPERATURES["full"]
_PRINTED = "muller-2019/temperature-bleu"


def claims(results: Results) -> tuple[Claim, ...]:
    """Six statements on each corpus; without results they are not run yet."""
    own = by_protocol(results)
    return tuple(claim for corpus in claimed(results) for claim in _claims(own, corpus))


def _claims(results: Results, corpus: Corpus) -> tuple[Claim, ...]:
    hard, soft = ({"corpus": corpus.key, "alpha": alpha} for alpha in ALPHAS)
    on, now = f"On {corpus.title}", at("bleu", 1.0)
    hotter = (
        "Of the temperatures above 1 that were tried, the one with the least ECE of the held-out pairs; the test set "
        "judges."
    )
    apart = [temperature for temperature in FULL if temperature != 1]
    worse_ece = {_named(t): results.contrast(((at("ece", t), soft), (at("ece", 1.0), soft))) for t in apart}
    worse_bleu = {_named(t): results.contrast(((at("bleu", t), soft), (now, soft))) for t in apart}
    ahead = {_named(t): results.contrast(((now, soft), (at("bleu", t), hard))) for t in FULL}
    likelier = {_named(t): results.difference(at("nll", t), soft, hard) for t in FULL}
    return (
        Claim(
            f"{on} a higher temperature calibrates the model with hard targets better.",
            sources(f"{_PRINTED}/hard"),
            f"{corpus.title}: ECE at a temperature above 1 minus ECE at 1, alpha 0",
            *below(0, results.contrast((("ece_hotter", hard), (at("ece", 1.0), hard)))),
            _two(results, at("ece", 1.0), "ece_hotter", hard, 3),
            hotter,
            seeds=SEEDS,
            zone=zone(SAME_ECE),
        ),
        Claim(
            f"{on} a higher temperature raises the BLEU of the model with hard targets.",
            sources(f"{_PRINTED}/hard"),
            f"{corpus.title}: BLEU at a temperature above 1 minus BLEU at 1, alpha 0",
            *above(0, results.contrast((("bleu_hotter", hard), (now, hard)))),
            _two(results, now, "bleu_hotter", hard, 1),
            hotter,
            digits=2,
            seeds=SEEDS,
            zone=zone(SAME_BLEU),
        ),
        Claim.every(
            f"{on} every temperature but 1 calibrates the model with label smoothing worse.",
            sources(f"{_PRINTED}/smoothed"),
            f"{corpus.title}: ECE minus ECE at temperature 1, alpha 0.1, for every other temperature",
            worse_ece,
            Region(low=0),
            _worst(worse_ece, 3, least=True),
            "",
            seeds=SEEDS,
            zone=zone(SAME_ECE),
        ),
        Claim.every(
            f"{on} every temperature but 1 lowers the BLEU of the model with label smoothing.",
            sources(f"{_PRINTED}/smoothed"),
            f"{corpus.title}: BLEU minus BLEU at temperature 1, alpha 0.1, for every other temperature",
            worse_bleu,
            Region(high=0),
            _worst(worse_bleu, 2, least=False),
            "",
            digits=2,
            seeds=SEEDS,
            zone=zone(SAME_BLEU),
        ),
        Claim.every(
            f"{on} label smoothing has a higher BLEU than hard targets at any temperature.",
            sources(f"{_PRINTED}/insufficient"),
            f"{corpus.title}: BLEU at alpha 0.1 and temperature 1 minus BLEU at alpha 0, for every temperature",
            ahead,
            Region(low=0),
            _worst(ahead, 2, least=True),
            "",
            digits=2,
            seeds=SEEDS,
            zone=zone(SAME_BLEU),
        ),
        Claim.every(
            f"{on} hard targets have the better likelihood at every temperature.",
            sources("muller-2019/nll/en-de"),
            f"{corpus.title}: NLL at alpha 0.1 minus NLL at alpha 0, for every temperature",
            likelier,
            Region(low=0),
            _worst(likelier, 3, least=True),
            "",
            seeds=SEEDS,
            zone=zone(SAME_NLL),
        ),
        Claim(
            f"{on} the least ECE predicts the temperature with the highest BLEU better than the least NLL does.",
            sources(f"{_PRINTED}/prediction"),
            f"{corpus.title}: BLEU at the temperature of the least ECE minus BLEU at that of the least NLL, mean of "
            "alpha 0 and 0.1",
            *above(0, results.contrast(*((("bleu_by_ece", c), ("bleu_by_nll", c)) for c in (hard, soft)))),
            "; ".join(
                f"{results.shown('bleu_by_ece', '.1f', cell)} by ECE, {results.shown('bleu_by_nll', '.1f', cell)} by "
                f"NLL ({shown_alpha(alpha)})"
                for alpha, cell in zip(ALPHAS, (hard, soft), strict=True)
            ),
            "Both are the least of the held-out pairs, among the temperatures that were tried; the test set judges.",
            digits=2,
            seeds=SEEDS,
            zone=zone(SAME_BLEU),
        ),
    )


def _named(temperature: float) -> str:
    return f"T = {temperature:g}"


def _two(results: Results, first: str, second: str, cell: Mapping[str, object], digits: int) -> str:
    both = (results.shown(name, f".{digits}f", dict(cell)) for name in (first, second))
    return ", then ".join(both)


def _worst(cells: Mapping[str, Sample], digits: int, *, least: bool) -> str:
    """The cell that speaks most against the statement."""
    known = {name: sample.mean for name, sample in cells.items() if not math.isnan(sample.mean)}
    if not known:
        return "–"
    name = (min if least else max)(known, key=lambda key: known[key])
    return f"{known[name]:+.{digits}f} at {name}".replace("-", "−")
