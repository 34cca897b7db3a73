"""From a finished run to something that translates."""

from __future__ import annotations

import torch

from softtargets.exceptions import RunError
from softtargets.models import Transformer
from softtargets.recipes import TranslationDataset
from softtargets.runs import Run
from softtargets.training.devices import choose_device
from softtargets.training.tasks.translation.task import TOKENISER
from softtargets.translation import Tokeniser, Translator


def load_translator(run: Run, device: torch.device | str = "auto") -> Translator:
    """The model of a finished run of translation with its tokeniser, in evaluation mode; the corpus is not needed.

    Weights are in single precision, whatever the training computed in. A run of images, one that failed, and one whose
    weights are not here are refused.
    """
    data = run.recipe.data
    if not isinstance(data, TranslationDataset):
        raise RunError(
            f"run {run.id} was trained on {data.name}, which has {data.unit}, so it cannot translate; choose a run "
            "of softtargets translate train: softtargets runs list --where model=transformer"
        )
    if run.status != "finished":
        raise RunError(
            f"run {run.id} failed and has no model: {run.provenance.get('reason', 'no reason was kept')}"
        )
    kept = run.about_weights()
    if TOKENISER not in kept:
        raise RunError(
            f"run {run.id} has no tokeniser beside its weights, as it was made by an older version; delete it with "
            f"`softtargets runs delete {run.id}` and train it again"
        )
    tokeniser = Tokeniser.from_json(kept[TOKENISER])
    with torch.random.fork_rng(devices=[]):
        model = Transformer(vocabulary=len(tokeniser), **vars(run.recipe.model))
    model.load_state_dict(run.weights())
    return Translator(
        model.eval().to(choose_device(device) if isinstance(device, str) else device), tokeniser
    )
