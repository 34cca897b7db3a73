"""What LABO's translation studies measure on a model: made where its weights are, kept with its run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softtargets.data import Pairs, load_pairs
from softtargets.exceptions import DataError
from softtargets.runs import Measured, Run
from softtargets.studies.study import Place, Trial
from softtargets.studies.translation.measures import (
    TranslatedRuns,
    Translations,
    bleu_shares,
    chances,
    ece_shares,
    nll_shares,
    shares_of,
)
from softtargets.studies.translation.protocols import SENTENCES
from softtargets.translation import (
    TokenPredictions,
    bleu_of,
    chosen_token_probabilities,
    exact_matches,
    sentence_scores,
    sequence_calibration,
    spearman,
)

Places = NDArray[np.int64]
THIRDS = ("most", "medium", "least")
# A peak is looked for in parts of this width, after smoothing by a normal distribution of this standard deviation.
FINE, SMOOTHED_BY = 0.005, 0.02
# News of 2014: text of another kind for models of everyday sentences.
NEWS = "newstest2014"


def sentences_of(trial: Trial) -> int | None:
    """How many sentences of a split are translated at the size of a trial; all, if nothing is said."""
    return SENTENCES.get(str(trial.labels.get("size", "full")))


def bleu_in_parts(
    translations: Translations, parts: dict[str, Any]
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """BLEU of some parts of a set of translations, by name, and its pseudo-values."""
    statistics = translations.statistics()
    own = {name: statistics[chosen] for name, chosen in parts.items()}
    return (
        {name: bleu_of(rows) for name, rows in own.items()},
        {name: bleu_shares(rows) for name, rows in own.items()},
    )


def tokens_in_parts(
    tokens: TokenPredictions, parts: dict[str, Places]
) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Likelihood and calibration of tokens in some parts of a set of sentences, and their pseudo-values."""
    measures: dict[str, float] = {}
    pseudo: dict[str, list[float]] = {}
    for name, chosen in parts.items():
        own = tokens.part(chosen)
        measures |= {f"nll_{name}": own.nll, f"ece_{name}": own.ece()}
        pseudo |= {f"nll_{name}": nll_shares(own), f"ece_{name}": ece_shares(own)}
    return measures, pseudo


def _step(run: Run) -> dict[str, float]:
    """The step whose weights are kept, where they are those of the best checkpoint."""
    found = [row["best_step"] for row in run.history() if "best_step" in row]
    return {"best_step": float(found[-1])} if found else {}


class OnTest:
    """Translations and tokens of the test set; of Tatoeba's models between German and English also of news."""

    def __init__(self, place: Place) -> None:
        self._runs = TranslatedRuns(place)
        self._place = place

    def __call__(self, trial: Trial, run: Run) -> Measured:
        """BLEU cased and uncased, chrF, NLL, ECE; `bleu_news` on newstest2014 at full size where the file is there."""
        found = self._runs.translations(run, most=sentences_of(trial))
        tokens = self._runs.tokens(run)
        measures = {**found.quality(), "nll": tokens.nll, "ece": tokens.ece(), **_step(run)}
        pseudo = chances(found, tokens)
        source, _, target = str(trial.labels["pair"]).partition("-")
        if trial.labels.get("size") == "full" and {source, target} == {"de", "en"}:
            try:
                pairs = load_pairs("wmt14", source, target, NEWS, self._place.data_dir)
            except DataError:
                pass  # the page does without
            else:
                news, values = bleu_in_parts(self._runs.elsewhere(run, pairs), {"bleu_news": slice(None)})
                measures |= news
                pseudo |= values
        return Measured(measures, {"pseudo_values": pseudo})


class OnEachLanguage:
    """BLEU of each source language of a model for several."""

    def __init__(self, place: Place) -> None:
        self._runs = TranslatedRuns(place)

    def __call__(self, trial: Trial, run: Run) -> Measured:
        """`bleu_de` and `bleu_fr`; at the small size of as many sentences each."""
        task, *_ = self._runs.loaded(run)
        test, most = task.splits["test"], sentences_of(trial)
        measures: dict[str, float] = {**_step(run)}
        pseudo: dict[str, list[float]] = {}
        for name, part in test.parts.items():
            own = Pairs(test.texts.sources[part][:most], test.texts.targets[part][:most])
            bleu, values = bleu_in_parts(
                self._runs.elsewhere(run, own), {f"bleu_{name.partition('-')[0]}": slice(None)}
            )
            measures |= bleu
            pseudo |= values
        return Measured(measures, {"pseudo_values": pseudo})


class ByFrequency:
    """BLEU on the thirds of both held-out sets by the frequency of source tokens (Lu et al. 2023, table 4)."""

    def __init__(self, place: Place) -> None:
        self._runs = TranslatedRuns(place)

    def __call__(self, trial: Trial, run: Run) -> Measured:
        """`bleu_test_most` and the like."""
        most = sentences_of(trial)
        measures: dict[str, float] = {}
        pseudo: dict[str, list[float]] = {}
        for split in ("validation", "test"):
            thirds = self._runs.thirds(run, split, most=most)
            parts = {f"bleu_{split}_{name}": part for name, part in zip(THIRDS, thirds, strict=True)}
            bleu, values = bleu_in_parts(self._runs.translations(run, split, most=most), parts)
            measures |= bleu
            pseudo |= values
        return Measured(measures, {"pseudo_values": pseudo})


class ChosenTokens:
    """How likely beam search found the tokens it chose, on the thirds of the test set (Lu et al. 2023, figure 2)."""

    def __init__(self, place: Place) -> None:
        self._runs = TranslatedRuns(place)

    def __call__(self, trial: Trial, run: Run) -> Measured:
        """For the test set and each third: the peak, mean, standard deviation; the histograms."""
        task, *_ = self._runs.loaded(run)
        most = sentences_of(trial)
        log_probs = self._runs.chosen(run, most=most)
        thirds = self._runs.thirds(run, most=most)
        parts = {"all": np.arange(len(log_probs)), **dict(zip(THIRDS, thirds, strict=True))}
        measures: dict[str, float] = {"vocabulary": float(len(task.tokeniser)), **_step(run)}
        probabilities = [np.exp(np.array(row)) for row in log_probs]
        shares = {}
        for name, chosen in parts.items():
            own = [log_probs[row] for row in chosen]
            found = chosen_token_probabilities(own)
            p = np.concatenate([probabilities[row] for row in chosen])
            measures |= {
                f"peak_{name}": peak(own),
                f"mean_{name}": float(p.mean()),
                f"spread_{name}": float(p.std()),
            }
            shares[name] = [round(float(share), 5) for share in found.shares]

        def spread(chosen: Places) -> float:
            return float(np.concatenate([probabilities[row] for row in chosen]).std())

        pseudo = {"spread_all": shares_of(spread, len(probabilities))}
        return Measured(measures, {"chosen": shares, "pseudo_values": pseudo})


def peak(log_probs: Sequence[Sequence[float]]) -> float:
    """Where the density of probabilities is highest, smoothed by 0.02.

    The middle of the fullest part of a histogram would jump by the width of a part: label smoothing of 0.1 rests on
    0.9, where two parts of 0.05 meet, so that seeds would differ by a whole one.

    >>> round(peak([[np.log(0.903), np.log(0.899)], [np.log(0.9), np.log(0.3)]]), 3)
    0.902
    """
    counts = chosen_token_probabilities(log_probs, FINE).counts
    middles = (np.arange(len(counts)) + 0.5) * FINE
    weights = np.exp(-0.5 * ((middles[:, None] - middles) / SMOOTHED_BY) ** 2)
    return float(middles[int((weights @ counts).argmax())])


class ByReference:
    """BLEU, likelihood and calibration, on the test set and on its thirds by the frequency of target tokens."""

    def __init__(self, place: Place) -> None:
        self._runs = TranslatedRuns(place)

    def __call__(self, trial: Trial, run: Run) -> Measured:
        """`bleu`, `bleu_most` and the like; NLL and ECE of all sentences, also where few are translated."""
        most = sentences_of(trial)
        found, tokens = self._runs.translations(run, most=most), self._runs.tokens(run)
        translated, scored = (
            dict(zip(THIRDS, self._runs.thirds(run, side="target", most=count), strict=True))
            for count in (most, None)
        )
        bleu, bleu_values = bleu_in_parts(found, {f"bleu_{name}": part for name, part in translated.items()})
        own, values = tokens_in_parts(tokens, scored)
        measures = {"bleu": found.bleu(), "nll": tokens.nll, "ece": tokens.ece(), **bleu, **own, **_step(run)}
        return Measured(measures, {"pseudo_values": chances(found, tokens) | bleu_values | values})


class Trusted:
    """How far probabilities of tokens and of whole translations can be trusted, before and after a temperature."""

    def __init__(self, place: Place) -> None:
        self._runs = TranslatedRuns(place)

    def __call__(self, trial: Trial, run: Run) -> Measured:
        """On the test set; the temperature is the one with the best likelihood on the validation set.

        Names end in `_scaled` at that temperature. Translations are those of beam search without it, so that their
        probabilities alone change.
        """
        temperature = self._runs.best_temperature(run)
        measures: dict[str, float] = {"temperature": temperature, **_step(run)}
        pseudo: dict[str, list[float]] = {}
        bins: dict[str, Any] = {}
        for ending, at in (("", 1.0), ("_scaled", temperature)):
            tokens = self._runs.tokens(run, temperature=at)
            own, values = tokens_in_parts(tokens, {"all": np.arange(len(tokens.lengths))})
            sequences, ordered = self._sequences(run, at, sentences_of(trial))
            found = {key.replace("_all", ""): value for key, value in own.items()} | {
                "gap": _gap(tokens),
                **sequences,
            }
            measures |= {f"{key}{ending}": value for key, value in found.items()}
            pseudo |= {f"{key.replace('_all', '')}{ending}": value for key, value in values.items()}
            pseudo[f"gap{ending}"] = _gap_shares(tokens)
            pseudo[f"rank_correlation{ending}"] = ordered
            bins[f"reliability{ending}"] = _bins(tokens)
        return Measured(measures, {"pseudo_values": pseudo, **bins})

    def _sequences(
        self, run: Run, temperature: float, most: int | None
    ) -> tuple[dict[str, float], list[float]]:
        found = self._runs.translations(run, most=most)
        log_probs = self._runs.chosen(run, temperature=temperature, most=most)
        sums = np.array([sum(row) for row in log_probs])
        lengths = np.array([len(row) for row in log_probs])
        scores = np.array(sentence_scores(found.texts, found.references, lowercase=found.lowercase)) / 100
        whole = sequence_calibration(
            sums, lengths, exact_matches(found.texts, found.references), scores.clip(0, 1)
        )
        per_token = sums / lengths
        ordered = shares_of(lambda rows: spearman(per_token[rows], scores[rows]), len(scores))
        return {
            "token_probability": whole.mean_token_probability,
            "score": whole.mean_score,
            "graded_gap": whole.graded_gap,
            "rank_correlation": whole.rank_correlation,
            "expected_exact": whole.expected_exact / whole.sentences,
            "observed_exact": whole.observed_exact / whole.sentences,
        }, ordered


def _gap(tokens: TokenPredictions) -> float:
    return float(tokens.confidence.mean()) - tokens.accuracy


def _gap_shares(tokens: TokenPredictions) -> list[float]:
    """Pseudo-values of confidence less accuracy."""
    return shares_of(lambda chosen: _gap(tokens.part(chosen)), len(tokens.lengths))


def _bins(tokens: TokenPredictions) -> dict[str, list[float]]:
    """Confidence, accuracy and number of tokens of each bin that has some."""
    found = tokens.reliability()
    there = [bool(count) for count in found.counts]
    return {
        key: [round(float(value), 5) for value, kept in zip(values, there, strict=True) if kept]
        for key, values in (
            ("confidence", found.confidence),
            ("accuracy", found.accuracy),
            ("tokens", found.counts),
        )
    }
