"""What can be found out about a translation model from source sentences and their reference translations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from softtargets.calibration import (
    ConfidenceCalibration,
    ConfidenceSums,
    SweepSums,
    TemperatureSweep,
    confidence_calibration_of,
    perplexity,
)
from softtargets.exceptions import SofttargetsError
from softtargets.inspection.shared.measured import numbers_of, overconfidence
from softtargets.inspection.shared.numbers import LEVEL, Estimate
from softtargets.inspection.shared.reading import Told, quiet
from softtargets.inspection.translate.unknown import Unknown
from softtargets.translation import (
    Penalty,
    Score,
    SequenceCalibration,
    TemperatureOptima,
    Tokeniser,
    TokenPredictions,
    Translator,
    bleu,
    bleu_interval,
    chrf,
    chrf_interval,
    decode,
    exact_matches,
    predict_tokens,
    sentence_scores,
    sequence_calibration,
    temperature_optima,
)

# Temperatures at which likelihood and calibration are measured beside those that are decoded at: cheap, all at once.
CURVE = tuple(round(0.5 + 0.1 * step, 1) for step in range(16))
RESAMPLES = 1000


@dataclass(frozen=True)
class TextScore:
    """BLEU and chrF of translations, with their signatures and 95 % intervals."""

    sentences: int
    bleu: Score
    bleu_interval: Estimate
    chrf: Score
    chrf_interval: Estimate

    def numbers(self) -> dict[str, Any]:
        """As plain data."""
        return {
            "sentences": self.sentences,
            **{
                name: {
                    "value": score.value,
                    "interval": [ends.low, ends.high],
                    "signature": score.signature,
                    **score.details,
                }
                for name, score, ends in (
                    ("bleu", self.bleu, self.bleu_interval),
                    ("chrf", self.chrf, self.chrf_interval),
                )
            },
        }


@dataclass(frozen=True)
class Assessment:
    """All about one model on one test set.

    `tokens` are next-token predictions with correct prefixes, `sequences` is about the translations that beam search
    found. `sweep` has likelihood and calibration over temperature, and `bleu_at` BLEU at those that were decoded at.
    `unknown` says what of both sides the model has never seen.
    """

    text: TextScore
    beam: int
    length_penalty: float
    translations: tuple[str, ...]
    sources: tuple[str, ...]
    references: tuple[str, ...]
    unfinished: int
    tokens: TokenPredictions
    calibration: ConfidenceCalibration
    overconfidence: Estimate
    sequences: SequenceCalibration
    sweep: TemperatureSweep | None
    bleu_at: dict[float, float]
    optima: TemperatureOptima | None
    unknown: tuple[str, ...] = ()

    def numbers(self) -> dict[str, Any]:
        """All of it as plain data, for scripts."""
        whole = self.sequences
        return {
            **self.text.numbers(),
            "beam": self.beam,
            "length_penalty": self.length_penalty,
            "unfinished": self.unfinished,
            "tokens": {
                "count": len(self.tokens),
                "nll": self.tokens.nll,
                "perplexity": self.tokens.perplexity,
                **(numbers_of(self.calibration) or {}),
                "overconfidence": vars(self.overconfidence),
            },
            "sequences": {
                "expected_exact": whole.expected_exact,
                "observed_exact": whole.observed_exact,
                "exact_ece": whole.exact.expected_calibration_error,
                "mean_token_probability": whole.mean_token_probability,
                "mean_chrf": whole.mean_score,
                "rank_correlation": _known(whole.rank_correlation),
            },
            "temperatures": self.rows(),
            "best_temperatures": None if self.optima is None else vars(self.optima),
        }

    def rows(self) -> list[dict[str, Any]]:
        """BLEU where it was measured, NLL and ECE at each temperature."""
        if self.sweep is None:
            return []
        columns = zip(self.sweep.temperatures, self.sweep.nll, self.sweep.ece, strict=True)
        return [
            {
                "temperature": t,
                "bleu": self.bleu_at.get(t),
                "nll": nll,
                "perplexity": perplexity(nll),
                "ece": ece,
            }
            for t, nll, ece in columns
        ]


def score_text(translations: Sequence[str], references: Sequence[str], lowercase: bool = False) -> TextScore:
    """BLEU and chrF of translations against one reference each."""
    counts = bleu_interval(translations, references, RESAMPLES, level=LEVEL, lowercase=lowercase)
    letters = chrf_interval(translations, references, RESAMPLES, level=LEVEL, lowercase=lowercase)
    return TextScore(
        sentences=len(translations),
        bleu=bleu(translations, references, lowercase),
        bleu_interval=Estimate(counts.value, counts.low, counts.high),
        chrf=chrf(translations, references, lowercase),
        chrf_interval=Estimate(letters.value, letters.low, letters.high),
    )


def assess(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    *,
    temperatures: Sequence[float] = (),
    beam: int = 5,
    length_penalty: float = 1.0,
    penalty: Penalty = "length",
    bins: int = 15,
    lowercase: bool = False,
    told: Told = quiet,
) -> Assessment:
    """Translate, and compare with the references; with `temperatures` also decode with logits divided by each.

    Everything but the sweep is at temperature 1. Scores ignore case where the model knows lower case alone.
    """
    if len(sources) != len(references):
        raise SofttargetsError(
            f"there are {len(sources)} source sentences and {len(references)} references; there must be one for each"
        )
    codec, model = translator.tokeniser, translator.model
    uncased = lowercase or (isinstance(codec, Tokeniser) and codec.lowercase)
    encoded, wanted = codec.encode(sources), codec.encode(references)
    strange = {"source": Unknown(codec), "reference": Unknown(codec)}
    strange["source"].add(sources, encoded)
    strange["reference"].add(references, wanted)

    def found_at(temperature: float) -> tuple[list[str], list[Any]]:
        said = "translating" if temperature == 1 else f"translating at temperature {temperature:g}"
        told(said, 0, len(encoded))
        best = decode(
            model,
            encoded,
            beam,
            length_penalty,
            temperature,
            penalty=penalty,
            progress=lambda done, every: told(said, done, every),
        )
        first = [one[0] for one in best]
        return codec.decode([one.tokens for one in first]), first

    # Tokens first: a sentence that the model cannot take is refused before long searches.
    sums = SweepSums(sorted({*CURVE, 1.0, *temperatures}), bins=bins) if temperatures else None
    told("measuring tokens", 0, len(encoded))
    tokens = predict_tokens(
        model, encoded, wanted, sums, progress=lambda done, every: told("measuring tokens", done, every)
    )
    texts, hypotheses = found_at(1.0)
    text = score_text(texts, references, uncased)
    bleu_at = {1.0: text.bleu.value} if temperatures else {}
    for one in temperatures:
        if one not in bleu_at:
            bleu_at[one] = bleu(found_at(one)[0], references, uncased).value
    told("computing intervals", 0, 0)
    cells = ConfidenceSums.empty(bins).add(tokens.confidence, tokens.right)
    sweep = sums.result() if sums is not None else None
    return Assessment(
        text=text,
        beam=beam,
        length_penalty=length_penalty,
        translations=tuple(texts),
        sources=tuple(sources),
        references=tuple(references),
        unfinished=sum(not one.finished for one in hypotheses),
        tokens=tokens,
        calibration=confidence_calibration_of(cells, level=LEVEL),
        overconfidence=overconfidence(cells),
        sequences=sequence_calibration(
            [one.log_prob for one in hypotheses],
            [len(one.tokens) for one in hypotheses],
            exact_matches(texts, references),
            [score / 100 for score in sentence_scores(texts, references, lowercase=uncased)],
            bins,
        ),
        sweep=sweep,
        bleu_at=dict(sorted(bleu_at.items())),
        optima=temperature_optima(sweep, bleu_at) if sweep is not None and len(bleu_at) > 1 else None,
        unknown=tuple(said for what, one in strange.items() if (said := one.told(what))),
    )


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
