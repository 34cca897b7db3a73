"""Instruments that look at a net while it trains."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from softtargets.calibration import reliability
from softtargets.information import estimate_information, information_against_others
from softtargets.models import Transformer
from softtargets.recipes import Recipe
from softtargets.training.building import build_model
from softtargets.training.tasks import Moment, Task, TranslationTask
from softtargets.training.tasks.images.augmented_logits import augmented_differences


def calibration(moment: Moment, split: str, bins: int) -> dict[str, float]:
    """Expected calibration error and mean confidence."""
    if isinstance(moment.task, TranslationTask):
        tokens = moment.task.token_predictions(moment.recipe, moment.model, split)
        return {f"{split}_ece": tokens.ece(bins), f"{split}_confidence": float(tokens.confidence.mean())}
    said = moment.predictions(split)
    probabilities = said["logits"].softmax(-1)
    found = reliability(probabilities, said["labels"], bins=bins)
    confidence = float(probabilities.amax(-1).double().mean())
    return {f"{split}_ece": found.expected_calibration_error, f"{split}_confidence": confidence}


def information(
    moment: Moment, split: str, classes: tuple[int, int], examples: int, draws: int, inner: str
) -> dict[str, float]:
    """Mutual information between an example and a logit difference, its standard error, and log(examples), in nats.

    Names have the two classes in them: a recipe may look at several pairs. The estimate is the unclipped one, which
    can be a little below 0 where there is nothing to find: clipped, a mean over seeds would be above 0 there.
    """
    samples = augmented_differences(moment, split, classes, examples, draws)
    nats = error = math.nan  # a net may say so of augmented images only, and goes on training
    if bool(samples.isfinite().all()):
        found = (estimate_information if inner == "all" else information_against_others)(samples)
        nats, error = found.unclipped, found.standard_error
    prefix = f"{split}_{classes[0]}_{classes[1]}" + ("" if inner == "all" else f"_{inner}")
    return {
        f"{prefix}_nats": nats,
        f"{prefix}_standard_error": error,
        f"{prefix}_bound": math.log(len(samples)),
    }


def bleu(moment: Moment, split: str, beam: int, sentences: int | None) -> dict[str, float]:
    """BLEU of translations, as sacreBLEU has it, cased unless the corpus is lowercased."""
    from softtargets.translation import Searcher
    from softtargets.translation import bleu as score

    task, model, kept = moment.task, moment.model, moment.kept
    assert isinstance(model, Transformer)
    if beam not in kept.setdefault("searchers", {}):  # what a GPU records takes as long as to translate
        kept["searchers"][beam] = Searcher(model, beam=beam)
    found = task.translate(moment.recipe, model, split, sentences, kept["searchers"][beam])
    texts = task.tokeniser.decode([best.tokens for best, *_ in found])
    references = task.splits[split].texts.targets[: len(texts)]
    lowercase = task.tokeniser.lowercase
    return {f"{split}_bleu": score(texts, references, lowercase=lowercase).value}


# The names by which recipes call them. Each takes (moment, **options of the part but `every`) and gives numbers.
PROBES: dict[str, Callable[..., dict[str, float]]] = {
    "bleu": bleu,
    "calibration": calibration,
    "information": information,
}


class Stand:
    """Where nets stand that instruments look at: of Transformers one object for all runs, with the weights of each.

    To make a net of tens of millions of weights anew takes as long as to look at it. Other nets are made anew: what a
    user's class keeps besides its weights may depend on the seed.
    """

    def __init__(self) -> None:
        self._model: Transformer | None = None
        self._kept: dict[Any, Any] = {}

    def moment(
        self, recipe: Recipe, step: int, task: Task, weights: Mapping[str, Tensor], device: torch.device
    ) -> Moment:
        """The net of a run with these weights; all runs of a stand have nets of one kind."""
        model = self._model or build_model(recipe, task).to(device)
        model.load_state_dict(weights)
        if not isinstance(model, Transformer):
            return Moment(recipe, step, model, task)
        self._model = model
        return Moment(recipe, step, model, task, self._kept)


def probed(moment: Moment, at_the_end: bool) -> dict[str, float | None]:
    """What all instruments of a recipe that are due find; None for what is no number."""
    row: dict[str, float | None] = {}
    for part in moment.recipe.probes:
        if at_the_end or moment.step % part.every == 0:
            options: dict[str, Any] = {name: value for name, value in vars(part).items() if name != "every"}
            for key, value in PROBES[part.name](moment, **options).items():
                row[f"{part.name}.{key}"] = value if math.isfinite(value) else None
    return row
