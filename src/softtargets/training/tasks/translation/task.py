"""Translation: a corpus as tokens on a device, and all that depends on what sentences are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from softtargets import models
from softtargets.data import CleaningReport, clean_pairs
from softtargets.exceptions import RecipeError, SofttargetsError
from softtargets.losses import REGULARISERS, BetaSmoothing, SoftTargetLoss
from softtargets.models import Classifier, evaluating
from softtargets.recipes import Dataset, Distillation, Recipe, Transformer, TranslationDataset
from softtargets.training.machinery import Machinery
from softtargets.training.nets import Nets
from softtargets.training.pack_loss import ALONE
from softtargets.training.precision import autocast
from softtargets.training.tasks.task import LEARNT, Adviser, Epoch, Feed, Task, Teachers
from softtargets.training.tasks.translation.corpus import Corpus, read_corpus
from softtargets.training.tasks.translation.layout import Layout, Shape
from softtargets.training.tasks.translation.sentences import Sentences, Table
from softtargets.translation import (
    Hypothesis,
    Searcher,
    TokenCollector,
    Tokeniser,
    TokenPredictions,
    decode,
    divided,
)

# Tokens on either side that a model is shown at a time where it is not trained.
MEASURED = 4096
TOKENISER = "tokeniser"  # its name among what is kept with weights
_INTEGER, _FLOAT = 8, 4


@dataclass(frozen=True, eq=False)
class TranslationTask(Task):
    """All a training needs to know of its corpus."""

    splits: dict[str, Sentences]
    tokeniser: Tokeniser
    report: CleaningReport
    _layouts: dict[int, Layout] = field(default_factory=dict, init=False, repr=False)  # by tokens of a batch
    takes: ClassVar[frozenset[str]] = frozenset({"distillation", "beta_smoothing", "bleu", "calibration"})
    shapes_vary: ClassVar[bool] = True

    @property
    def classes(self) -> tuple[str, ...]:  # type: ignore[override]
        """The pieces that words are made of."""
        return self.tokeniser.pieces

    @classmethod
    def prepare(cls, data: Dataset, device: torch.device, data_dir: Path | None = None) -> TranslationTask:
        """Read a corpus, learn its pieces on the training text, and leave out pairs that are too long or lopsided.

        Held-out sentences are taken as they are.
        """
        assert isinstance(data, TranslationDataset)
        corpus = read_corpus(data, data_dir)
        train = corpus.splits["train"]
        try:
            tokeniser = Tokeniser.learn(chain(train.sources, train.targets), data.vocabulary, data.lowercase)
        except SofttargetsError as error:
            if error.argument != "size":
                raise
            raise RecipeError(str(error).removeprefix("size "), "data.vocabulary") from None
        return cls(*_encoded(corpus, tokeniser, data, device))

    def net_arguments(self, recipe: Recipe) -> dict[str, Any]:
        """The number of pieces."""
        return {"vocabulary": len(self.tokeniser)}

    def frequencies(self) -> Tensor:
        """How often each piece is a label of the training set, the end of a sentence included."""
        return self._frequencies

    @cached_property
    def _frequencies(self) -> Tensor:
        # Every run of a corpus asks for it, and of millions of pairs it takes a second.
        labels = self.splits["train"].targets.flat
        counts = torch.from_numpy(np.bincount(labels, minlength=len(self.tokeniser))).double()
        return counts / counts.sum()

    def check(self, recipe: Recipe, taught: Task | None) -> None:
        """Model, batch, teacher."""
        super().check(recipe, taught)
        if not isinstance(recipe.model, Transformer):
            raise RecipeError(f"{recipe.model.name} is for images; translate with transformer", "model")
        longest = max(max(bucket.source, bucket.target) for bucket in self.splits["train"].buckets)
        if recipe.batch < longest:
            raise RecipeError(
                f"a batch of {recipe.batch} tokens is too small for a sentence of {longest}; give larger batches, or "
                "a smaller data.longest",
                "batch",
            )
        for name, split in self.splits.items():
            sides = np.maximum(split.sources.lengths, split.targets.lengths)
            if (side := int(sides.max())) > recipe.model.longest:
                which = "" if name == "train" else f", pair {int(sides.argmax()) + 1:,}"
                raise RecipeError(
                    f"{recipe.model.longest} is less than the {side:,} tokens of the longest sentence in the {name} "
                    f"split{which}; shorten that sentence, or leave it out",
                    "model.longest",
                )
        if isinstance(recipe.regulariser, Distillation) and recipe.regulariser.view != "student":
            raise RecipeError(
                f"{recipe.regulariser.view} is for images; a translation teacher predicts every batch, so leave view "
                "out",
                "regulariser.view",
            )

    # --- training ---

    def layout(self, recipe: Recipe) -> Layout:
        """The batches of a training."""
        if recipe.batch not in self._layouts:
            train = self.splits["train"]
            self._layouts[recipe.batch] = Layout(train.buckets, train.targets.lengths, recipe.batch)
        return self._layouts[recipe.batch]

    def epoch(self, recipe: Recipe, epoch: int) -> Epoch:
        """Every pair once, in batches of sentences of similar length, which come in any order."""
        return self.layout(recipe).epoch(recipe.seed, epoch)

    def feed(self, recipes: Sequence[Recipe], tasks: Sequence[Any], machinery: Machinery) -> Feed:
        """Orders of each run."""
        from softtargets.training.tasks.translation.feed import TranslationFeed

        return TranslationFeed(recipes, self.splits, self.layout(recipes[0]), MEASURED, machinery)

    def adviser(
        self, recipes: Sequence[Recipe], nets: Nets, loss: SoftTargetLoss | None, teachers: Teachers
    ) -> Adviser | None:
        """A teacher, or an averaged model."""
        from softtargets.training.tasks.translation import advisers

        (teacher,) = teachers
        if teacher is not None:
            return advisers.TokenTeacher(teacher, self.splits["train"].device)
        return advisers.AveragedModel(loss) if isinstance(loss, BetaSmoothing) else None

    def fuses_head(self, recipe: Recipe) -> bool:
        """Wherever the loss sees rows one by one: thousands of logits for every token are a waste of memory."""
        loss = REGULARISERS[recipe.regulariser.name]
        return not loss.shares_state and not issubclass(loss, ALONE)

    # --- what is kept ---

    @torch.no_grad()
    def states(
        self, recipe: Recipe, model: Classifier, split: str, every: int = 1
    ) -> Iterator[tuple[Tensor, Tensor, Table, Tensor]]:
        """Penultimate states (rows, T, width) with correct prefixes, labels (rows, T), and which sentences they are.

        In evaluation mode, a batch at a time: those of `chosen` rows of a table, some of which may be the empty one.
        Of a large split `every` so many-th batch is enough for many questions: there are batches of all lengths.
        """
        tables = self.splits[split].tables
        batches = ((table, chosen) for table in tables for chosen in table.batches(MEASURED))
        with evaluating(model):
            for table, chosen in islice(batches, 0, None, every):
                sources, prefixes, labels = table.shown(chosen)
                with autocast(recipe.precision, labels.device):
                    states = model.features(sources, prefixes)
                yield states.float(), labels, table, chosen

    def token_predictions(
        self, recipe: Recipe, model: Classifier, split: str, temperature: float = 1.0
    ) -> TokenPredictions:
        """What a model says of every token of a split, given a correct prefix, sentence after sentence.

        Its logits are divided by the temperature.
        """
        collector = TokenCollector()
        head = divided(model.head, temperature)
        places = np.zeros(len(self.splits[split]), np.int64)
        seen = 0
        for states, labels, table, chosen in self.states(recipe, model, split):
            collector.add(states, labels, head)
            rows = table.bucket.members[chosen[chosen < len(table)].cpu().numpy()]
            places[rows] = seen + np.arange(len(rows))
            seen += len(chosen)
        return collector.finish().part(places)

    def predict(self, recipe: Recipe, model: Classifier, split: str) -> dict[str, Tensor]:
        """Of each token its label, the predicted one, and codes of both probabilities; lengths of sentences."""
        said = self.token_predictions(recipe, model, split)
        kept = {
            "labels": said.labels,
            "predicted": said.predicted,
            "codes": said.codes,
            "lengths": said.lengths,
        }
        return {name: torch.from_numpy(values) for name, values in kept.items()}

    def translate(
        self,
        recipe: Recipe,
        model: Classifier,
        split: str,
        most: int | None = None,
        searcher: Searcher | None = None,
        **options: Any,
    ) -> list[list[Hypothesis]]:
        """Translations of the first so many sentences of a split; options as for `softtargets.translation.decode`.

        searcher: one of this model, for many calls; it has its own options.
        """
        assert isinstance(model, models.Transformer)
        sentences = self.splits[split]
        chosen = range(min(len(sentences), most or len(sentences)))
        sources = [sentences.sources[row][:-1] for row in chosen]
        with autocast(recipe.precision, sentences.device):
            return decode(model, sources, **options) if searcher is None else searcher(sources)

    def about_weights(self) -> dict[str, str]:
        """The tokeniser: without it nobody knows what the rows of an embedding are for."""
        return {TOKENISER: self.tokeniser.to_json()}

    @property
    def learnt(self) -> str:
        """The digest of the tokeniser: another version of the package that learns it might find other pieces."""
        return self.tokeniser.digest

    def provenance(self) -> dict[str, Any]:
        """Numbers of pairs, the tokeniser, and what became of the training text."""
        return {
            "examples": {name: len(split) for name, split in self.splits.items()},
            "vocabulary": len(self.tokeniser),
            LEARNT: self.learnt,
            "padding": round(self.splits["train"].padding, 4),
            "cleaning": str(self.report),
        }

    # --- memory ---

    def examples(self, shape: Shape) -> int:
        """So many sentences."""
        return shape.rows

    def rows(self, shape: Shape) -> int:
        """One label for each position."""
        return shape.rows * shape.target

    def blank(self, recipe: Recipe, shape: Shape, device: torch.device) -> tuple[Tensor, ...]:
        """So many sources and prefixes."""
        sides = (shape.source, shape.target)
        return tuple(torch.zeros(shape.rows, side, dtype=torch.int64, device=device) for side in sides)

    def measured_at_a_time(self, runs: int, on_gpu: bool) -> int:
        """Sentences of the shortest bucket."""
        held_out = [split for name, split in self.splits.items() if name != "train"]
        return max(bucket.rows(MEASURED) for split in held_out for bucket in split.buckets)

    def table_bytes(self, recipe: Recipe) -> int:
        """Orders, and the words that they are drawn from."""
        return _INTEGER * 14 * self.layout(recipe).size

    def advice_bytes(self, recipe: Recipe, shown: int) -> int:
        """What a teacher says of a batch, all logits included."""
        if recipe.teacher is None:
            return 0
        rows = max(self.rows(shape) for shape in self.layout(recipe).shapes)
        return shown + 2 * _FLOAT * rows * len(self.tokeniser)


def _encoded(
    corpus: Corpus, tokeniser: Tokeniser, data: TranslationDataset, device: torch.device
) -> tuple[dict[str, Sentences], Tokeniser, CleaningReport]:
    """All splits as pieces; of the training set what cleaning leaves."""
    known: dict[str, list[int]] = {}

    def pieces(sentences: Sequence[str]) -> list[list[int]]:
        new = [sentence for sentence in dict.fromkeys(sentences) if sentence not in known]
        known.update(zip(new, tokeniser.encode(new), strict=True))
        return [known[sentence] for sentence in sentences]

    cleaned = clean_pairs(
        corpus.splits["train"],
        longest=data.longest,
        ratio=data.ratio,
        count=lambda sentences: [len(row) for row in pieces(sentences)],
    )
    if not len(cleaned.pairs):
        raise RecipeError(f"nothing is left to train on: {cleaned.report}", "data")
    splits = {}
    for name, pairs in {**corpus.splits, "train": cleaned.pairs}.items():
        sides = pieces(pairs.sources), pieces(pairs.targets)
        splits[name] = Sentences.of(*sides, pairs, corpus.parts.get(name, {}), device)
    return splits, tokeniser, cleaned.report
