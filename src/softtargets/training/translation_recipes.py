"""A recipe for somebody who has sentence pairs and wants a model: what is not said is chosen by text and device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from softtargets.data import Pairs
from softtargets.exceptions import SofttargetsError, nearest
from softtargets.models import TRANSFORMER_SIZES
from softtargets.recipes import LABO, Adam, InverseSqrt, Recipe, Regulariser, Transformer, TranslationDataset

# What one may ask for by name, with the learning rate at its peak. iwslt and base have fairseq's, and the others ours.
TRANSLATION_SIZES: Mapping[str, tuple[Mapping[str, Any], float]] = MappingProxyType(
    {
        "tiny": (
            {
                "width": 128,
                "heads": 4,
                "inner": 512,
                "encoder_layers": 3,
                "decoder_layers": 3,
                "dropout": 0.1,
                "norm": "pre",
            },
            2e-3,
        ),
        "small": (TRANSFORMER_SIZES["multi30k"], 1e-3),
        "iwslt": (TRANSFORMER_SIZES["iwslt"], 5e-4),
        "base": (TRANSFORMER_SIZES["base"], 7e-4),
    }
)
# The most pairs that each size is for where a GPU trains.
_PAIRS = {"small": 60_000, "iwslt": 1_000_000}
# Steps that a training has unless told: enough for a first look on a CPU, about what papers do on a GPU.
_STEPS = {"cpu": 2_000, "small": 10_000, "iwslt": 40_000, "base": 100_000}
_LONGEST_WARMUP = 4000
_LABO_WARMUP = 5000  # steps (Lu et al. 2023)
_MOST_EPOCHS = 100
_CHARACTERS_PER_PIECE = 4  # about: only the length of a training is guessed by it
_CPU_SPEED = 5e10  # operations a second that two cores come to, about
_AVERAGED = 5  # epochs at the end whose weights are averaged, in a long training


@dataclass(frozen=True)
class Choice:
    """A recipe, the size of its model, and in plain sentences what was chosen and why."""

    recipe: Recipe
    size: str
    reasons: tuple[str, ...]


def vocabulary_for(train: Pairs) -> int:
    """How many pieces suit a text: 2,000 of a small one, 32,000 of millions of pairs; more of many characters.

    >>> vocabulary_for(Pairs(("a b",) * 5000, ("c d",) * 5000))
    8000
    """
    bounds = {3_000: 2_000, 100_000: 8_000, 300_000: 10_000, 1_000_000: 16_000}
    usual = next((size for most, size in bounds.items() if len(train) < most), 32_000)
    characters = len(set().union(*map(set, train.sources), *map(set, train.targets)))
    return max(usual, -(-2 * characters // 1000) * 1000)


def translation_recipe(
    data: TranslationDataset,
    train: Pairs,
    regulariser: Regulariser,
    *,
    gpu: bool,
    size: str | None = None,
    epochs: int | None = None,
    batch: int | None = None,
    seed: int = 0,
) -> Choice:
    """Choose what is not given by the number of training pairs and by whether a GPU trains."""
    if size is not None and size not in TRANSLATION_SIZES:
        raise SofttargetsError(
            f"must be one of {', '.join(TRANSLATION_SIZES)}, not {size}{nearest(size, TRANSLATION_SIZES)}",
            argument="size",
        )
    chosen = size or (_size_on_a_gpu(len(train)) if gpu else "tiny")
    model, rate = TRANSLATION_SIZES[chosen]
    tokens = _tokens(train)
    tokens_at_a_time = batch or _batch(tokens)
    steps = max(1, tokens // tokens_at_a_time)
    wanted = _STEPS[chosen if gpu and chosen in _STEPS else "cpu"]
    rounds = epochs or max(3, min(_MOST_EPOCHS, round(wanted / steps)))
    total = steps * rounds
    warmup = max(10, min(_LONGEST_WARMUP, _round(total // 10)))
    if isinstance(regulariser, LABO) and regulariser.warmup_steps == 0:
        options = {**vars(regulariser), "warmup_steps": min(_LABO_WARMUP, _round(max(10, total // 5)))}
        regulariser = LABO(**options)
    recipe = Recipe(
        data=data,
        model=Transformer(**model),
        regulariser=regulariser,
        optimiser=Adam(lr=rate, betas=(0.9, 0.98), weight_decay=1e-4, decoupled=True),
        schedule=InverseSqrt(warmup=warmup),
        epochs=rounds,
        batch=tokens_at_a_time,
        clip=1.0,
        seed=seed,
        precision="bf16" if gpu else "fp32",
        average_last=_AVERAGED if rounds >= 4 * _AVERAGED else None,
    )
    return Choice(recipe, chosen, tuple(_reasons(recipe, chosen, train, tokens, given=size, gpu=gpu)))


def _reasons(
    recipe: Recipe, size: str, train: Pairs, tokens: int, *, given: str | None, gpu: bool
) -> list[str]:
    model = recipe.model
    assert isinstance(model, Transformer)
    assert isinstance(recipe.data, TranslationDataset)
    why = "as asked" if given else f"chosen for {len(train):,} training pairs on a {'GPU' if gpu else 'CPU'}"
    said = [
        f"Model: {size}, {why}: {model.encoder_layers} + {model.decoder_layers} layers of width {model.width}, "
        f"{model.heads} heads, dropout {model.dropout:g}.",
        f"Training: {recipe.epochs} {'epoch' if recipe.epochs == 1 else 'epochs'} in batches of {recipe.batch:,} "
        f"tokens, {recipe.precision}, AdamW with a learning rate of {recipe.optimiser.lr:g} after "
        f"{recipe.schedule.warmup:,} steps of warm-up"
        + (
            f"; the weights of the last {recipe.average_last} epochs are averaged."
            if recipe.average_last
            else "."
        ),
    ]
    layers = model.encoder_layers * (4 * model.width**2 + 2 * model.width * model.inner)
    layers += model.decoder_layers * (8 * model.width**2 + 2 * model.width * model.inner)
    weights = layers + recipe.data.vocabulary * model.width
    hours = 6 * weights * tokens * (recipe.epochs or 1) / _CPU_SPEED / 3600
    if not gpu and hours >= 1:
        said.append(
            f"There is no GPU here: we estimate that this takes {_hours(hours)} on a CPU. --size tiny and fewer "
            "--epochs take less time; --for 30m stops after 30 minutes, and the same command resumes."
        )
    return said


def _hours(hours: float) -> str:
    return f"{hours:.0f} hours" if hours >= 1.5 else "an hour"


def _size_on_a_gpu(pairs: int) -> str:
    return next((size for size, most in _PAIRS.items() if pairs < most), "base")


def _tokens(train: Pairs) -> int:
    characters = sum(max(len(source), len(target)) for source, target in train)
    return max(1, characters // _CHARACTERS_PER_PIECE)


def _batch(tokens: int) -> int:
    """4,096 tokens; of a small text a power of two that makes at least 100 steps of an epoch, but no less than 512."""
    return max(512, min(4096, 1 << max(0, (tokens // 100).bit_length() - 1)))


def _round(steps: int) -> int:
    """To two digits, which read better."""
    return int(float(f"{steps:.1e}")) if steps >= 100 else steps
