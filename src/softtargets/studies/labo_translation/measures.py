"""What LABO's translation studies measure on a model: made where its weights are, kept with its run."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softtargets.data import Pairs, load_pairs
from softtargets.exceptions import DataError
from softtargets.runs import Measured, Run
from softtargets.studies.study import Place, Trial
from softtargets.studies.translation.measures import TranslatedRuns, Translations, chances, pseudo_values
from softtargets.studies.translation.protocols import SENTENCES
from softtargets.translation import TokenPredictions, bleu_of, chosen_token_probabilities

Places = NDArray[np.int64]
THIRDS = ("most", "medium", "least")
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
        {name: pseudo_values(partial(_bleu, rows), len(rows)) for name, rows in own.items()},
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
        pseudo |= {
            f"nll_{name}": pseudo_values(partial(_nll, own), len(chosen)),
            f"ece_{name}": pseudo_values(partial(_ece, own), len(chosen)),
        }
    return measures, pseudo


def _nll(tokens: TokenPredictions, chosen: Places) -> float:
    return tokens.part(chosen).nll


def _ece(tokens: TokenPredictions, chosen: Places) -> float:
    return tokens.part(chosen).ece()


def _bleu(rows: NDArray[np.uint16], chosen: Places) -> float:
    return bleu_of(rows[chosen])


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
        """`bleu_de-en` and `bleu_fr-en`; at the small size of as many sentences each."""
        task, *_ = self._runs.loaded(run)
        test, most = task.splits["test"], sentences_of(trial)
        measures: dict[str, float] = {**_step(run)}
        pseudo: dict[str, list[float]] = {}
        for name, part in test.parts.items():
            own = Pairs(test.texts.sources[part][:most], test.texts.targets[part][:most])
            bleu, values = bleu_in_parts(self._runs.elsewhere(run, own), {f"bleu_{name}": slice(None)})
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
        """For the test set and each third: the middle of the fullest bin, mean, standard deviation; the histograms."""
        task, *_ = self._runs.loaded(run)
        most = sentences_of(trial)
        log_probs = self._runs.chosen(run, most=most)
        thirds = self._runs.thirds(run, most=most)
        parts = {"all": np.arange(len(log_probs)), **dict(zip(THIRDS, thirds, strict=True))}
        measures: dict[str, float] = {"vocabulary": float(len(task.tokeniser)), **_step(run)}
        shares = {}
        for name, chosen in parts.items():
            own = [log_probs[row] for row in chosen]
            found = chosen_token_probabilities(own)
            p = np.exp(np.array([value for row in own for value in row]))
            measures |= {
                f"mode_{name}": found.mode,
                f"mean_{name}": float(p.mean()),
                f"spread_{name}": float(p.std()),
            }
            shares[name] = [round(float(share), 5) for share in found.shares]
        return Measured(measures, {"chosen": shares})
