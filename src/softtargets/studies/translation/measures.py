"""What studies measure on translation models: translations, BLEU, and tokens over temperatures.

Measuring needs the weights, so it is done where a run was trained, and what comes of it is kept with the run. Several
studies ask for the same translations: they are made once in a process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from softtargets.calibration import ConfidenceSums, SweepSums, TemperatureSweep, reliability_of
from softtargets.data import Pairs
from softtargets.models import Transformer
from softtargets.recipes import Recipe
from softtargets.runs import Run
from softtargets.studies.examples import count_groups, groups_of, pseudo_values, pseudo_values_of
from softtargets.studies.measures import TrainedNets
from softtargets.studies.study import Place
from softtargets.training import autocast
from softtargets.training.tasks import TranslationTask
from softtargets.translation import (
    FrequencySplits,
    Hypothesis,
    TokenPredictions,
    bleu_of,
    chrf,
    decode,
    frequency_splits,
    rows_of,
    score,
    sentence_statistics,
)

BEAM = 5
_REMEMBERED = 64
_TENTHS = tuple(step / 10 for step in range(3, 31))
_TRANSLATIONS: dict[tuple[Any, ...], Translations] = {}


@dataclass(frozen=True)
class Translations:
    """The best translation of each sentence of a split, and what it is compared with.

    `parts` are the directions of a model of several languages: which sentences belong to each.
    """

    texts: list[str]
    references: list[str]
    hypotheses: list[Hypothesis]
    sources: list[list[int]]
    parts: dict[str, slice]
    lowercase: bool
    _counted: dict[bool, NDArray[np.uint16]] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def bleu(self, chosen: Any = slice(None), lowercase: bool | None = None) -> float:
        """Corpus BLEU of some sentences; cased, unless the model knows no capitals or it is asked for."""
        return bleu_of(self.statistics(lowercase)[chosen])

    def statistics(self, lowercase: bool | None = None) -> NDArray[np.uint16]:
        """Of each sentence what corpus BLEU needs of it."""
        low = self.lowercase if lowercase is None else lowercase
        if low not in self._counted:
            self._counted[low] = sentence_statistics(self.texts, self.references, lowercase=low)
        return self._counted[low]

    def quality(self) -> dict[str, float]:
        """BLEU, cased and uncased, and chrF."""
        return {
            "bleu": self.bleu(),
            "bleu_uncased": self.bleu(lowercase=True),
            "chrf": chrf(self.texts, self.references, lowercase=self.lowercase).value,
        }


class TranslatedRuns:
    """Models of a study's runs, and what they say; loaded when they are first asked for."""

    def __init__(self, place: Place) -> None:
        self._nets = TrainedNets(place)
        self._last: tuple[Path, tuple[TranslationTask, Recipe, Transformer]] | None = None

    def loaded(self, run: Run) -> tuple[TranslationTask, Recipe, Transformer]:
        """The corpus, the recipe and the finished model of a run; the last one is kept, since it is asked for often."""
        if self._last is None or self._last[0] != run.directory:
            supplies = self._nets.supplies(run)
            task = supplies.task(run.recipe.data)
            model = supplies.finished(run.recipe)
            assert isinstance(task, TranslationTask)
            assert isinstance(model, Transformer)
            self._last = run.directory, (task, run.recipe, model)
        return self._last[1]

    def translations(
        self,
        run: Run,
        split: str = "test",
        temperature: float = 1.0,
        beam: int = BEAM,
        most: int | None = None,
    ) -> Translations:
        """The first so many sentences of a split, translated by beam search; length penalty 1, as in fairseq."""
        key = (run.directory, run.provenance.get("finished"), split, temperature, beam, most)
        if key not in _TRANSLATIONS:
            while len(_TRANSLATIONS) >= _REMEMBERED:
                _TRANSLATIONS.pop(next(iter(_TRANSLATIONS)))
            _TRANSLATIONS[key] = self._translated(run, split, temperature, beam, most)
        return _TRANSLATIONS[key]

    def _translated(
        self, run: Run, split: str, temperature: float, beam: int, most: int | None
    ) -> Translations:
        task, recipe, model = self.loaded(run)
        found = task.translate(recipe, model, split, most, beam=beam, temperature=temperature)
        sentences, count = task.splits[split], len(found)
        best = [hypotheses[0] for hypotheses in found]
        return Translations(
            task.tokeniser.decode([one.tokens for one in best]),
            list(sentences.texts.targets[:count]),
            best,
            [sentences.sources[row][:-1] for row in range(count)],
            {name: slice(part.start, min(part.stop, count)) for name, part in sentences.parts.items()},
            task.tokeniser.lowercase,
        )

    def tokens(self, run: Run, split: str = "test", temperature: float = 1.0) -> TokenPredictions:
        """What the model says of every token, given a correct prefix, with logits divided by the temperature."""
        task, recipe, model = self.loaded(run)
        return task.token_predictions(recipe, model, split, temperature)

    def sweep(self, run: Run, temperatures: Sequence[float], split: str = "test") -> TemperatureSweep:
        """Likelihood and calibration of tokens with a correct prefix, at each temperature."""
        _, _, model = self.loaded(run)
        sums = SweepSums(temperatures)
        for states, labels in self.states(run, split):
            for logits, targets in rows_of(states, labels, model.head):
                sums.add(logits, targets)
        return sums.result()

    def chosen(
        self, run: Run, split: str = "test", temperature: float = 1.0, most: int | None = None
    ) -> list[list[float]]:
        """The log-probabilities, at a temperature, of all tokens of the translations that are best at temperature 1."""
        _, recipe, model = self.loaded(run)
        found = self.translations(run, split, most=most)
        with autocast(recipe.precision, model.head.weight.device):
            return score(model, found.sources, [one.tokens for one in found.hypotheses], temperature)

    def thirds(
        self, run: Run, split: str = "test", side: str = "source", most: int | None = None
    ) -> FrequencySplits:
        """The first so many sentences of a split in thirds, by how frequent their tokens are in the training set.

        Counted on one side of both: source, as in Lu et al. 2023, or target. Each third is in the order of the split,
        so that neighbours stay neighbours (`shares_of`).
        """
        task, *_ = self.loaded(run)
        train, there = (
            one.sources if side == "source" else one.targets
            for one in (task.splits["train"], task.splits[split])
        )
        counts = np.bincount(train.flat, minlength=len(task.tokeniser))
        count = min(len(there), most or len(there))
        found = frequency_splits([there[row][:-1] for row in range(count)], counts)
        return FrequencySplits(*(np.sort(part) for part in found))

    def elsewhere(self, run: Run, pairs: Pairs) -> Translations:
        """Text of another kind, translated in the same way."""
        task, recipe, model = self.loaded(run)
        sources = task.tokeniser.encode(pairs.sources)
        with autocast(recipe.precision, model.head.weight.device):
            best = [one for one, *_ in decode(model, sources, beam=BEAM)]
        texts = task.tokeniser.decode([one.tokens for one in best])
        return Translations(texts, list(pairs.targets), best, sources, {}, task.tokeniser.lowercase)

    def best_temperature(self, run: Run, split: str = "validation", by: str = "nll") -> float:
        """The temperature from 0.3 to 3 with the least NLL or ECE of a split, to a hundredth.

        In tenths first, and in hundredths around the best of these: an ECE may have its least elsewhere by a little.
        """
        tenth = self.sweep(run, _TENTHS, split).best(by)
        around = [round(tenth + step / 100, 2) for step in range(-9, 10)]
        return self.sweep(run, around, split).best(by)

    def states(self, run: Run, split: str = "test", every: int = 1) -> Iterator[tuple[Tensor, Tensor]]:
        """Penultimate states and labels, every so many-th batch; padding has the label -100."""
        task, recipe, model = self.loaded(run)
        for states, labels, *_ in task.states(recipe, model, split, every):
            yield states, labels


def shares_of(of: Callable[[NDArray[np.int64]], float], sentences: int) -> list[float]:
    """Pseudo-values of a measure of sentences (`softtargets.studies.examples.pseudo_values`), to be kept with a run.

    `of` takes places of sentences. Results takes what is in ``details["pseudo_values"]`` for the chance of the test
    set. Groups are neighbours: a test set of Tatoeba has all translations of a sentence one after another, one of WMT
    the sentences of a text, and these are right or wrong together.
    """
    return _rounded(pseudo_values(of, sentences, neighbours=True))


def _rounded(values: NDArray[np.float64]) -> list[float]:
    return [round(float(value), 10) for value in values]


def bleu_shares(statistics: NDArray[Any]) -> list[float]:
    """Of BLEU, by what each sentence contributes to it."""
    return shares_of(lambda chosen: bleu_of(statistics[chosen]), len(statistics))


def nll_shares(tokens: TokenPredictions) -> list[float]:
    """Of the likelihood of tokens."""
    return shares_of(lambda chosen: tokens.part(chosen).nll, len(tokens.lengths))


def ece_shares(tokens: TokenPredictions) -> list[float]:
    """Of the calibration of tokens; sums of bins are taken away, counting again takes ten times as long."""
    sentences = len(tokens.lengths)
    member = np.repeat(groups_of(sentences, neighbours=True), tokens.lengths)
    confidence, right = tokens.confidence, tokens.right
    parts = [
        ConfidenceSums.empty().add(confidence[member == group], right[member == group])
        for group in range(count_groups(sentences))
    ]
    whole = ConfidenceSums.empty()
    for part in parts:
        whole.merge(part)
    if any(part.examples == whole.examples for part in parts):
        raise ValueError(
            f"all {whole.examples} tokens are in one of {len(parts)} groups of sentences; measure more"
        )
    errors = [reliability_of(sums).expected_calibration_error for sums in map(whole.without, parts)]
    return _rounded(pseudo_values_of(tokens.ece(), errors))


def chances(translations: Translations, tokens: TokenPredictions) -> dict[str, list[float]]:
    """Pseudo-values of what most studies of translation compare."""
    return {
        "bleu": bleu_shares(translations.statistics()),
        "nll": nll_shares(tokens),
        "ece": ece_shares(tokens),
    }
