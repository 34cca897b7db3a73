"""The replication's Transformer on Multi30k, measured as it should be and as the replication's code measures it.

Its code counts padding in the calibration error, normalises likelihoods over time instead of the vocabulary, and
translates greedily with hidden states that are divided by the temperature before the last layer, whose bias is not
(ERRATA.md, the replication). All of that can be computed on our models too, so that pages show what it does.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import torch
from torch import Tensor, nn

from softtargets.calibration import SweepSums, TemperatureSweep
from softtargets.models import Classifier, evaluating
from softtargets.recipes import Recipe
from softtargets.runs import Run
from softtargets.studies import sizes
from softtargets.studies.grids import SMOOTHING_AXES, each_seed, smoothing
from softtargets.studies.results import Results
from softtargets.studies.sizes import size_of
from softtargets.studies.study import Settings, Trial
from softtargets.studies.translation.measures import TranslatedRuns
from softtargets.studies.translation.protocols import REPLICATED, sized
from softtargets.training import autocast
from softtargets.training.tasks import TranslationTask
from softtargets.translation import (
    IGNORED,
    PAD,
    TokenCollector,
    TokenPredictions,
    bleu_of,
    divided,
    prefixes,
    rows_of,
)
from softtargets.translation import sentence_statistics as statistics_of

SIZES = ("small", "full")
SEEDS = 3
AXES = ("seed", "data.source", "data.target", *SMOOTHING_AXES)
# Its batches: so many sentences in the order of the file, padded to the longest of them.
BATCH = 128
_PIECE = 32
# Tenths, as the temperatures that it prints.
TEMPERATURES = tuple(step / 10 for step in range(5, 31))


def trials_over(settings: Settings, alphas: Sequence[float]) -> list[Trial]:
    """Its training with each strength of smoothing, for each seed."""
    cells = [({"regulariser": smoothing(alpha)}, {"alpha": alpha}) for alpha in alphas]
    return each_seed(settings, sized(settings, REPLICATED), cells)


def by_protocol(results: Results, alphas: Sequence[float]) -> Results:
    """The runs that claims are about: of the full size, without a user's changes."""
    return sizes.by_protocol(results, partial(trials_over, alphas=alphas))


# --- its computations ---


@torch.no_grad()
def batches(
    task: TranslationTask, recipe: Recipe, model: Classifier, split: str
) -> Iterator[tuple[Tensor, Tensor]]:
    """Penultimate states (rows, T, width) and labels (rows, T), padded as in the replication; -100 is padding."""
    sentences = task.splits[split]
    with evaluating(model):
        for begin in range(0, len(sentences), BATCH):
            rows = np.arange(begin, min(begin + BATCH, len(sentences)))
            source, target = (
                torch.from_numpy(side.padded(rows, int(side.lengths[rows].max()), fill))
                .long()
                .to(sentences.device)
                for side, fill in ((sentences.sources, PAD), (sentences.targets, IGNORED))
            )
            with autocast(recipe.precision, source.device):
                states = model.features(source, prefixes(target))
            yield states.float(), target


class AsReplicated:
    """What the replication's code would say of a run, on the validation set as there."""

    def __init__(self, runs: TranslatedRuns, run: Run, split: str = "validation") -> None:
        self._task, self._recipe, self._model = runs.loaded(run)
        self._split = split

    def _batches(self) -> Iterator[tuple[Tensor, Tensor]]:
        return batches(self._task, self._recipe, self._model, self._split)

    def _pieces(self) -> Iterator[tuple[Tensor, Tensor]]:
        """The same in pieces whose logits a CPU has room for; the padding is that of the whole batch."""
        for states, labels in self._batches():
            yield from zip(states.split(_PIECE), labels.split(_PIECE), strict=True)

    def tokens(self, temperature: float = 1.0) -> TokenPredictions:
        """Predictions of all places, padding included, where the right token is said to be padding."""
        collector = TokenCollector()
        head = divided(self._model.head, temperature)
        for states, labels in self._pieces():
            collector.add(states, _counted(labels), head)
        return collector.finish()

    def sweep(self, temperatures: Sequence[float] = TEMPERATURES) -> TemperatureSweep:
        """Its calibration error, padding included, at each temperature."""
        sums = SweepSums(temperatures)
        for states, labels in self._pieces():
            for logits, targets in rows_of(states, _counted(labels), self._model.head):
                sums.add(logits, targets)
        return sums.result()

    @torch.no_grad()
    def likelihood_over_time(self, temperatures: Sequence[float]) -> list[float]:
        r"""Its negative log-likelihood at each temperature: a softmax over the places of a sentence, not the tokens.

        .. math:: -\log \frac{\exp(z_{t y_t} / T)}{\sum_s \exp(z_{s y_t} / T)}

        with the sum over all places of the batch, padding included; the mean over tokens of each batch, then over
        batches.
        """
        found = []
        for states, labels in self._batches():
            there = labels != IGNORED
            own = labels.masked_fill(~there, 0)
            # Of each place s the logit of the token that is right at place t: (rows, s, t).
            over = own.unsqueeze(1).expand(-1, own.shape[1], -1)
            columns = self._model.head(states).float().gather(2, over)
            right = columns.diagonal(dim1=1, dim2=2)
            found.append(
                [float(((columns / t).logsumexp(1) - right / t)[there].mean()) for t in temperatures]
            )
        return [float(value) for value in np.mean(found, axis=0)]

    def bleu(self, temperature: float, most: int | None = None) -> float:
        """BLEU of its decoding: greedy, hidden states divided by the temperature; sacreBLEU instead of torchtext's."""
        task, sentences = self._task, self._task.splits[self._split]
        model = with_divided_states(self._model, temperature)
        found = task.translate(self._recipe, model, self._split, most, beam=1)
        texts = task.tokeniser.decode([best.tokens for best, *_ in found])
        references = list(sentences.texts.targets[: len(texts)])
        return bleu_of(statistics_of(texts, references, lowercase=task.tokeniser.lowercase))


def with_divided_states(model: Classifier, temperature: float) -> Classifier:
    """A copy whose last layer sees its input divided by a temperature: W (x / T) + b."""
    other = copy.deepcopy(model)
    # A matrix of its own, since embeddings may share the layer's; the rest of the layer stays, its precision too.
    other.head.weight = nn.Parameter(model.head.weight.detach() / temperature)
    return other


def _counted(labels: Tensor) -> Tensor:
    """With the symbol for padding as what is right where nothing is to be predicted."""
    return labels.masked_fill(labels == IGNORED, PAD)


# --- words ---

HOW = (
    "The replication takes PyTorch's tutorial: 3 + 3 layers of width 512 with 512 inner units, no dropout, Adam at a "
    "constant rate of 1e-4, 18 epochs, 29,000 captions from English to German."
)
WHAT_ITS_CODE_DOES = (
    "Its code also counts padding. Sentences of a batch are filled up to the longest, and the predictions there enter "
    "the calibration error, although the model was never trained to predict anything there. This is computed here "
    "too, on the same models: batches of 128 sentences of the validation set, as there."
)


def deviations(results: Results, *more: str) -> tuple[str, ...]:
    """What differs from the replication, for the end of a page."""
    return (*(_SMALL if size_of(results) == "small" else _FULL), _PIECES, *more)


_SMALL = (
    "This is the small size, for a CPU: 2 + 2 layers of width 64, 3,000 pairs, 1,000 pieces of words, 8 epochs. It "
    "shows how the page is made and decides nothing. With --set size=full the replication's model is trained.",
)
_FULL = (
    "Batches of the replication have 128 sentences in the order of the file, ours 2,048 tokens, drawn anew in each "
    "epoch. Its encoder and its decoder end with one layer norm more, and its embeddings and last layer begin three to "
    "four times smaller. Matrix products are in bf16.",
)
_PIECES = (
    "Our words are cut into pieces that both languages share. The replication has whole words of spaCy, with the "
    "tokenisers of the two languages exchanged. Its decoder does not look at padding before a place, ours does; that "
    "changes predictions in the padding alone."
)
